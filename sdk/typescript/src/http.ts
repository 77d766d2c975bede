import type { Clock } from "./clock.js";
import { codes, type Reason } from "./codes.js";
import { Refused, Unreachable } from "./refusal.js";

/** Provides access tokens and replaces expired ones. */
export interface TokenSource {
  /** The number of the current sign-in. */
  readonly signInNumber: number;
  token(): Promise<string>;
  renew(stale: string): Promise<string>;
  /** Called when the server refuses the sign-in itself, other than for an expired token. */
  refused(reason: Reason): void;
}

type Query = Record<string, string | number | boolean | undefined>;

/** The body or query of a request, with the names of HTTP. */
export type RequestBody = Record<string, unknown>;

/** The envelope of an answer, with the names of HTTP. */
export interface Reply<Data> {
  code: number;
  message: string;
  data: Data;
  request_id: string;
  /** Only for lists. */
  has_more?: boolean;
}

/** HTTP requests. Every answer is an envelope; a refusal becomes an error with its reason. */
export class Http {
  constructor(
    private readonly url: string,
    private readonly fetch: typeof globalThis.fetch,
    private readonly clock: Clock,
    private readonly timeoutMs: number,
    private readonly tokens: TokenSource,
  ) {}

  async get<T>(path: string, query: Query = {}): Promise<T> {
    return (await this.sendAuthorized("GET", path + queryString(query))).data as T;
  }

  /** For answers whose `data` is a list. */
  async list<T>(path: string, query: Query): Promise<{ items: T[]; hasMore: boolean }> {
    const reply = await this.sendAuthorized("GET", path + queryString(query));
    return { items: reply.data as T[], hasMore: reply.has_more === true };
  }

  async post<T>(path: string, body: object = {}): Promise<T> {
    return (await this.sendAuthorized("POST", path, body)).data as T;
  }

  async put<T>(path: string, body: object): Promise<T> {
    return (await this.sendAuthorized("PUT", path, body)).data as T;
  }

  /** Any request of the app. */
  async request<T>(
    method: string,
    path: string,
    body: RequestBody | undefined,
    isSignedIn: boolean,
  ): Promise<Reply<T>> {
    // Anything else could name another host, which must not get the token.
    if (!path.startsWith("/")) throw new TypeError("a path begins with /");
    const verb = method.toUpperCase();
    const hasNoBody = verb === "GET" || verb === "DELETE" || verb === "HEAD";
    const [target, payload] = hasNoBody ? [path + queryString((body ?? {}) as Query), undefined] : [path, body ?? {}];
    const reply = isSignedIn ? this.sendAuthorized(verb, target, payload) : this.sendOnce(verb, target, payload);
    return (await reply) as Reply<T>;
  }

  /** Without a token: registration, login, refresh and password reset. */
  async postWithoutToken<T>(path: string, body: object, timeoutMs = this.timeoutMs): Promise<T> {
    return (await this.sendOnce("POST", path, body, undefined, timeoutMs)).data as T;
  }

  private async sendAuthorized(method: string, path: string, body?: object): Promise<Reply<unknown>> {
    const { signInNumber } = this.tokens;
    const token = await this.tokens.token();
    try {
      return await this.sendOnce(method, path, body, token);
    } catch (error) {
      if (!(error instanceof Refused) || !concernsSignIn(error)) throw error;
      // An answer to an earlier sign-in must not end the current one, nor be retried under it.
      if (this.tokens.signInNumber !== signInNumber) throw error;
      if (error.reason !== "token_expired") {
        this.tokens.refused(error.reason);
        throw error;
      }
      return this.sendOnce(method, path, body, await this.tokens.renew(token));
    }
  }

  private async sendOnce(
    method: string,
    path: string,
    body?: object,
    token?: string,
    timeoutMs = this.timeoutMs,
  ): Promise<Reply<unknown>> {
    const headers: Record<string, string> = {};
    if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    const timeout = new AbortController();
    const cancel = this.clock.after(timeoutMs, () => timeout.abort());
    try {
      const request: RequestInit = { method, headers, signal: timeout.signal };
      if (body !== undefined) request.body = JSON.stringify(body);
      const response = await this.fetch(this.url + path, request);
      return readEnvelope(response, await response.json());
    } catch (error) {
      if (error instanceof Refused) throw error;
      throw new Unreachable(`${method} ${this.url}${path.split("?")[0]}: no answer`, { cause: error });
    } finally {
      cancel();
    }
  }
}

/** Whether the server refused the sign-in rather than what was asked for. */
function concernsSignIn({ status, reason }: Refused): boolean {
  return status === 401 || reason === "account_disabled";
}

function readEnvelope(response: Response, json: unknown): Reply<unknown> {
  const body = (json ?? {}) as Partial<Reply<unknown>> & {
    reason?: string;
    message?: string;
    request_id?: string;
  };
  if (response.ok) return body as Reply<unknown>;
  if (body.reason === undefined || !(body.reason in codes)) {
    throw new Unreachable(`status ${response.status} without a reason`);
  }
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : undefined;
  const reason = body.reason as Reason;
  throw new Refused(reason, body.message, response.status, retryAfterMs, body.request_id);
}

function queryString(query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  if (given.length === 0) return "";
  return "?" + new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
}
