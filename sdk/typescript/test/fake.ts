import { Client, type ClientOptions, type Clock, MemoryStore } from "../src/index.js";
import type { SocketClass, SocketLike } from "../src/socket.js";

/** A clock that only moves when advanced. */
export class FakeClock implements Clock {
  private time = 1_000_000;
  private next = 0;
  private readonly timers = new Map<number, { at: number; call: () => void }>();
  chance = 0.5;

  now(): number {
    return this.time;
  }

  random(): number {
    return this.chance;
  }

  after(ms: number, call: () => void): () => void {
    const id = this.next++;
    this.timers.set(id, { at: this.time + ms, call });
    return () => void this.timers.delete(id);
  }

  /** Advances the clock and runs what is due. */
  async pass(ms: number): Promise<void> {
    const end = this.time + ms;
    for (;;) {
      await calm();
      const due = [...this.timers].filter(([, { at }]) => at <= end);
      const first = due.sort(([a, x], [b, y]) => x.at - y.at || a - b)[0];
      if (first === undefined) break;
      this.time = Math.max(this.time, first[1].at);
      this.timers.delete(first[0]);
      first[1].call();
    }
    this.time = end;
    await calm();
  }
}

/** Lets promises settle, also those of a response's body. */
export async function calm(): Promise<void> {
  for (let i = 0; i < 6; i += 1) await new Promise((later) => setImmediate(later));
}

export type Said = Record<string, unknown> & { type: string };

/** The server's end of a socket. */
export class FakeSocket implements SocketLike {
  readyState = 0;
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  readonly heard: Said[] = [];

  send(text: string): void {
    this.heard.push(JSON.parse(text) as Said);
  }

  close(): void {
    this.readyState = 3;
  }

  open(): void {
    this.readyState = 1;
    this.onopen?.({} as never);
  }

  say(frame: object): void {
    this.onmessage?.({ data: JSON.stringify(frame) } as never);
  }

  end(code: number, reason = ""): void {
    this.readyState = 3;
    this.onclose?.({ code, reason } as never);
  }

  welcome(limits: object = {}): void {
    const none = { connectionFramesPerSecond: 0, userSendsPerSecond: 0, frameBytesMax: 131072 };
    this.open();
    this.say({ type: "AUTH_OK", from: "me", tokenExpiresAt: 0, limits: { ...none, ...limits }, ts: 0 });
  }

  of(type: string): Said[] {
    return this.heard.filter((frame) => frame.type === type);
  }
}

type Answer = object | { status: number; reason: string };

/** A client with a fake clock, store, socket and server. */
export class World {
  readonly clock = new FakeClock();
  readonly sockets: FakeSocket[] = [];
  readonly asked: Array<{ path: string; query: URLSearchParams; body: unknown }> = [];
  readonly states: string[] = [];
  readonly store = new MemoryStore();
  readonly client: Client;
  answers: Record<string, (query: URLSearchParams, body: never) => Answer> = {
    "/auth/login": () => this.grant("token-1"),
    "/conversation/heads": () => ({ heads: [], has_more: false }),
    "/conversation/all": () => ({ list: [], has_more: false }),
  };

  /** May answer later. */
  slow: (path: string, request?: RequestInit) => Promise<Response> | undefined = () => undefined;

  constructor(options: Partial<ClientOptions> = {}) {
    const sockets = this.sockets;
    const make = class extends FakeSocket {
      constructor() {
        super();
        sockets.push(this);
      }
    };
    this.client = new Client({
      url: "http://server",
      webSocket: make as unknown as SocketClass,
      fetch: (url, request) => this.fetch(String(url), request),
      clock: this.clock,
      store: this.store,
      ...options,
    });
    this.client.on("state", ({ name }) => this.states.push(name));
  }

  get socket(): FakeSocket {
    return this.sockets.at(-1) as FakeSocket;
  }

  grant(token: string) {
    return { token, refresh_token: `${token}-refresh`, expires_in: 1800, user_info: { user_id: "me" } };
  }

  /** Signed in and connected. */
  async online(limits: object = {}): Promise<void> {
    await this.client.login("me", "password");
    await calm();
    this.socket.welcome(limits);
    await calm();
  }

  private async fetch(url: string, request?: RequestInit): Promise<Response> {
    const { pathname: path, searchParams: query } = new URL(url);
    const body = request?.body as string | undefined;
    const given = body === undefined ? undefined : JSON.parse(body);
    this.asked.push({ path, query, body: given });
    const slow = this.slow(path, request);
    if (slow !== undefined) return slow;
    const answer = this.answers[path]?.(query, given as never);
    if (answer === undefined) throw new Error(`no answer set for ${path}`);
    const status = "status" in answer ? (answer.status as number) : 200;
    const envelope = status === 200 ? { code: 0, data: answer } : { code: 1, ...answer };
    return new Response(JSON.stringify(envelope), { status });
  }
}
