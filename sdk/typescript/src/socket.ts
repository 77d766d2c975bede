import type { Cancel, Clock } from "./clock.js";
import { codes } from "./codes.js";
import { type ClientFrame, type Limits, readFrame, type ServerFrame } from "./frames.js";
import type { Timing } from "./timing.js";

/** As much of a WebSocket as we use: that of browsers, or of the package `ws`. */
export interface SocketLike {
  send(text: string): void;
  close(): void;
  readonly readyState: number;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
}

export type SocketClass = new (url: string) => SocketLike;

/** Who hears of a socket. */
export interface SocketEars {
  ready(limits: Limits): void;
  frame(frame: ServerFrame): void;
  closed(code: number, reason: string): void;
}

const OPEN = 1;

/** One connection: says who we are, keeps it alive, and tells once that it ended. */
export class Socket {
  private readonly socket: SocketLike;
  private isReady = false;
  private isOver = false;
  private pingAfterMs: number;
  private timer: Cancel;
  /** Those who asked whether somebody is there. */
  private asked: Array<(isThere: boolean) => void> = [];
  /** Why the server ends the connection, if its close frame does not arrive. */
  private lastWord: string | undefined;

  constructor(
    make: SocketClass,
    url: string,
    private readonly token: string,
    private readonly clock: Clock,
    private readonly timing: Timing,
    private readonly ears: SocketEars,
  ) {
    this.socket = new make(url);
    this.pingAfterMs = timing.pingAfterMs;
    this.timer = clock.after(timing.connectTimeoutMs, () => this.over(1006, "no welcome"));
    this.socket.onopen = () => this.send({ type: "AUTH", token: this.token });
    this.socket.onmessage = (event: { data: unknown }) => this.hear(event.data);
    this.socket.onerror = () => {}; // a close follows
    this.socket.onclose = (event: { code: number; reason: string }) => {
      this.over(event.code, String(event.reason));
    };
  }

  /** Whether it went out, as far as one can know. */
  send(frame: ClientFrame): boolean {
    return this.write(JSON.stringify(frame));
  }

  write(text: string): boolean {
    if (this.isOver || this.socket.readyState !== OPEN) return false;
    this.socket.send(text);
    return true;
  }

  /** Asks whether somebody is there: true with the next frame, false if the connection ends before. */
  ping(): Promise<boolean> {
    return new Promise((answer) => {
      if (!this.send({ type: "PING" })) return answer(false);
      this.asked.push(answer);
    });
  }

  /** Ends it and tells nobody. */
  close(): void {
    this.isOver = true;
    this.timer();
    this.socket.close();
    this.answer(false);
  }

  private answer(isThere: boolean): void {
    const asked = this.asked;
    this.asked = [];
    for (const answer of asked) answer(isThere);
  }

  private hear(data: unknown): void {
    if (this.isOver) return;
    const frame = readFrame(data);
    if (frame === undefined) return;
    if (this.isReady) this.watch();
    this.answer(true);
    switch (frame.type) {
      case "PING":
        this.send({ type: "PONG" });
        return;
      case "PONG":
        return;
      case "AUTH_OK":
        if (this.isReady) return; // the answer to REAUTH
        this.isReady = true;
        this.pingAfterMs = Math.min(this.pingAfterMs, (frame.limits.idleTimeoutMs || 90_000) / 3);
        this.watch();
        this.ears.ready(frame.limits);
        return;
      case "AUTH_FAIL":
        this.lastWord = frame.reason;
        return;
      case "ERROR":
        if (typeof codes[frame.reason]?.close !== "number") break;
        this.lastWord = frame.reason; // the close follows, and that is what counts
        if (frame.clientMsgId === undefined) return;
    }
    if (this.isReady) this.ears.frame(frame);
  }

  /** After a time of silence asks whether somebody is there. Any frame is an answer. */
  private watch(): void {
    this.timer();
    this.timer = this.clock.after(this.pingAfterMs, () => {
      this.send({ type: "PING" });
      const { pongTimeoutMs } = this.timing;
      this.timer = this.clock.after(pongTimeoutMs, () => this.over(1006, "no answer"));
    });
  }

  private over(code: number, reason: string): void {
    if (this.isOver) return;
    this.close();
    const told = this.lastWord as keyof typeof codes | undefined;
    const meant = told === undefined ? undefined : codes[told].close;
    if (code < 4000 && told !== undefined && typeof meant === "number") {
      this.ears.closed(meant, told);
    } else {
      this.ears.closed(code, reason);
    }
  }
}
