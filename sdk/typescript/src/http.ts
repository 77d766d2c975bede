import type { Clock } from "./clock.js";
import { codes, type Reason } from "./codes.js";
import { Refused, Unreachable } from "./refusal.js";

/** Where a token comes from; tells what it replaces if that one is too old. */
export interface TokenSource {
  /** Which sign-in this is: each has a number of its own. */
  readonly which: number;
  token(): Promise<string>;
  renew(stale: string): Promise<string>;
  /** The server says that this sign-in is over. */
  refused(reason: Reason): void;
}

type Query = Record<string, string | number | boolean | undefined>;

/** What is sent with a request, in the names of HTTP. */
export type RequestBody = Record<string, unknown>;

/** A whole answer of the server, in the names of HTTP. */
export interface Reply<Data> {
  code: number;
  message: string;
  data: Data;
  request_id: string;
  /** Of some lists. */
  has_more?: boolean;
}

type Answer = Reply<unknown>;

/** Asks over HTTP. Every answer is an envelope; a refusal becomes an error with its reason. */
export class Http {
  constructor(
    private readonly url: string,
    private readonly fetch: typeof globalThis.fetch,
    private readonly clock: Clock,
    private readonly timeoutMs: number,
    private readonly tokens: TokenSource,
  ) {}

  async get<T>(path: string, query: Query = {}): Promise<T> {
    return (await this.ask("GET", path + search(query))).data as T;
  }

  /** For answers whose `data` is a list. */
  async list<T>(path: string, query: Query): Promise<{ items: T[]; hasMore: boolean }> {
    const answer = await this.ask("GET", path + search(query));
    return { items: answer.data as T[], hasMore: answer.has_more === true };
  }

  async post<T>(path: string, body: object = {}): Promise<T> {
    return (await this.ask("POST", path, body)).data as T;
  }

  async put<T>(path: string, body: object): Promise<T> {
    return (await this.ask("PUT", path, body)).data as T;
  }

  /** Anything, as the app gives it. */
  async request<T>(
    method: string,
    path: string,
    body: RequestBody | undefined,
    isSignedIn: boolean,
  ): Promise<Reply<T>> {
    // Anything else would name another host, which must not get the token.
    if (!path.startsWith("/")) throw new TypeError("a path begins with /");
    const verb = method.toUpperCase();
    const hasNoBody = verb === "GET" || verb === "DELETE" || verb === "HEAD";
    const [target, sent] = hasNoBody ? [path + search((body ?? {}) as Query), undefined] : [path, body ?? {}];
    const answer = isSignedIn ? this.ask(verb, target, sent) : this.once(verb, target, sent);
    return (await answer) as Reply<T>;
  }

  /** For those who have no token yet. */
  async postOpenly<T>(path: string, body: object, timeoutMs = this.timeoutMs): Promise<T> {
    return (await this.once("POST", path, body, undefined, timeoutMs)).data as T;
  }

  private async ask(method: string, path: string, body?: object): Promise<Answer> {
    const { which } = this.tokens;
    const token = await this.tokens.token();
    try {
      return await this.once(method, path, body, token);
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 401) throw error;
      // A late answer says nothing about a sign-in that came after it, nor is it asked again under that.
      if (this.tokens.which !== which) throw error;
      if (error.reason !== "token_expired") {
        this.tokens.refused(error.reason);
        throw error;
      }
      return this.once(method, path, body, await this.tokens.renew(token));
    }
  }

  private async once(
    method: string,
    path: string,
    body?: object,
    token?: string,
    timeoutMs = this.timeoutMs,
  ): Promise<Answer> {
    const headers: Record<string, string> = {};
    if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    const giveUp = new AbortController();
    const cancel = this.clock.after(timeoutMs, () => giveUp.abort());
    try {
      const request: RequestInit = { method, headers, signal: giveUp.signal };
      if (body !== undefined) request.body = JSON.stringify(body);
      const response = await this.fetch(this.url + path, request);
      return envelope(response, await response.json());
    } catch (error) {
      if (error instanceof Refused) throw error;
      throw new Unreachable(`${method} ${this.url}${path.split("?")[0]}: no answer`, { cause: error });
    } finally {
      cancel();
    }
  }
}

function envelope(response: Response, answer: unknown): Answer {
  const told = (answer ?? {}) as Partial<Answer> & {
    reason?: string;
    message?: string;
    request_id?: string;
  };
  if (response.ok) return told as Answer;
  if (told.reason === undefined || !(told.reason in codes)) {
    throw new Unreachable(`status ${response.status} without a reason`);
  }
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : undefined;
  const reason = told.reason as Reason;
  throw new Refused(reason, told.message, response.status, retryAfterMs, told.request_id);
}

function search(query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  if (given.length === 0) return "";
  return "?" + new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
}
