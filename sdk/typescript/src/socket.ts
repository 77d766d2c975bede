import type { Cancel, Clock } from "./clock.js";
import { codes } from "./codes.js";
import { type ClientFrame, type Limits, readFrame, type ServerFrame } from "./frames.js";
import type { Timing } from "./timing.js";

/** The part of a WebSocket that is used: that of browsers or of the package `ws`. */
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

/** Callbacks of a socket. */
export interface SocketListener {
  ready(limits: Limits): void;
  frame(frame: ServerFrame): void;
  closed(code: number, reason: string): void;
}

const OPEN = 1;

/** One connection: authenticates, sends heartbeats, and reports its end once. */
export class Socket {
  private readonly socket: SocketLike;
  private isReady = false;
  private isClosed = false;
  private pingAfterMs: number;
  private timer: Cancel;
  /** Pending calls of `ping`. */
  private pingWaiters: Array<(isThere: boolean) => void> = [];
  /** Why the server closes the connection, in case its close frame does not arrive. */
  private closeReason: string | undefined;

  constructor(
    make: SocketClass,
    url: string,
    private readonly token: string,
    private readonly clock: Clock,
    private readonly timing: Timing,
    private readonly listener: SocketListener,
  ) {
    this.socket = new make(url);
    this.pingAfterMs = timing.pingAfterMs;
    this.timer = clock.after(timing.connectTimeoutMs, () => this.onClosed(1006, "no AUTH_OK in time"));
    this.socket.onopen = () => this.send({ type: "AUTH", token: this.token });
    this.socket.onmessage = (event: { data: unknown }) => this.handle(event.data);
    this.socket.onerror = () => {}; // `onclose` follows
    this.socket.onclose = (event: { code: number; reason: string }) => {
      this.onClosed(event.code, String(event.reason));
    };
  }

  /** Returns whether it was handed to the socket. */
  send(frame: ClientFrame): boolean {
    return this.write(JSON.stringify(frame));
  }

  write(text: string): boolean {
    if (this.isClosed || this.socket.readyState !== OPEN) return false;
    this.socket.send(text);
    return true;
  }

  /** Pings the server: true with the next frame, false if the connection ends first. */
  ping(): Promise<boolean> {
    return new Promise((answer) => {
      if (!this.send({ type: "PING" })) return answer(false);
      this.pingWaiters.push(answer);
    });
  }

  /** Closes the socket without a callback. */
  close(): void {
    this.isClosed = true;
    this.timer();
    this.socket.close();
    this.resolvePings(false);
  }

  private resolvePings(isThere: boolean): void {
    const waiters = this.pingWaiters;
    this.pingWaiters = [];
    for (const answer of waiters) answer(isThere);
  }

  private handle(data: unknown): void {
    if (this.isClosed) return;
    const frame = readFrame(data);
    if (frame === undefined) return;
    if (this.isReady) this.restartHeartbeat();
    this.resolvePings(true);
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
        this.restartHeartbeat();
        this.listener.ready(frame.limits);
        return;
      case "AUTH_FAIL":
        this.closeReason = frame.reason;
        return;
      case "ERROR":
        if (typeof codes[frame.reason]?.close !== "number") break;
        this.closeReason = frame.reason; // the close frame follows and decides
        if (frame.clientMsgId === undefined) return;
    }
    if (this.isReady) this.listener.frame(frame);
  }

  /** Sends a ping after a time without frames, and gives up if none follows. Any frame counts as an answer. */
  private restartHeartbeat(): void {
    this.timer();
    this.timer = this.clock.after(this.pingAfterMs, () => {
      this.send({ type: "PING" });
      const { pongTimeoutMs } = this.timing;
      this.timer = this.clock.after(pongTimeoutMs, () => this.onClosed(1006, "no answer"));
    });
  }

  private onClosed(code: number, reason: string): void {
    if (this.isClosed) return;
    this.close();
    const announced = this.closeReason as keyof typeof codes | undefined;
    const closeCode = announced === undefined ? undefined : codes[announced].close;
    if (code < 4000 && announced !== undefined && typeof closeCode === "number") {
      this.listener.closed(closeCode, announced);
    } else {
      this.listener.closed(code, reason);
    }
  }
}
