import { afterClose, Backoff, leastWaitMs } from "./backoff.js";
import type { Cancel, Clock } from "./clock.js";
import { codes, type Reason } from "./codes.js";
import type { ClientFrame, Limits, ServerFrame } from "./frames.js";
import { endsSession, Refused } from "./refusal.js";
import { Socket, type SocketClass } from "./socket.js";
import type { Timing } from "./timing.js";
import type { SignIn } from "./tokens.js";
import type { State } from "./types.js";

/** Callbacks of the link. */
export interface LinkListener {
  /** Runs before a socket is opened. If it throws, the attempt has failed. */
  prepare(): Promise<void>;
  online(limits: Limits): void;
  offline(): void;
  frame(frame: ServerFrame): void;
  state(state: State): void;
}

/** Keeps the client connected: opens one socket after the other, as close codes allow. */
export class Link {
  private socket: Socket | undefined;
  private isOnline = false;
  private isWanted = false;
  /** The number of the current attempt: callbacks of an abandoned one are ignored. */
  private attemptNumber = 0;
  private timer: Cancel | undefined;
  private stableTimer: Cancel | undefined;
  private readonly backoff: Backoff;

  constructor(
    private readonly url: string,
    private readonly make: SocketClass,
    private readonly tokens: SignIn,
    private readonly clock: Clock,
    private readonly timing: Timing,
    private readonly listener: LinkListener,
  ) {
    const { backoffBaseMs: baseMs, backoffMaxMs: maxMs } = timing;
    this.backoff = new Backoff(clock, { baseMs, maxMs });
  }

  start(): void {
    if (this.isWanted) return;
    this.isWanted = true;
    void this.attempt();
  }

  /** Closes the connection and does not reconnect. */
  stop(state: State): void {
    this.isWanted = false;
    this.dropConnection();
    this.listener.state(state);
  }

  /** Connects now instead of waiting for the backoff: the network is back, or the app is visible again. */
  retryNow(): void {
    if (!this.isWanted || this.timer === undefined) return;
    this.backoff.reset();
    void this.attempt();
  }

  get isConnected(): boolean {
    return this.isOnline;
  }

  /** Pings the server; false if there is no connection or it ends first. */
  async ping(): Promise<boolean> {
    return this.isOnline && ((await this.socket?.ping()) ?? false);
  }

  /** Drops a connection on which the server does not answer and opens a new one. */
  reconnect(): void {
    if (!this.isWanted || !this.isOnline) return;
    this.dropConnection();
    this.scheduleAttempt(0);
  }

  send(frame: ClientFrame): boolean {
    return this.isOnline && (this.socket?.send(frame) ?? false);
  }

  write(text: string): boolean {
    return this.isOnline && (this.socket?.write(text) ?? false);
  }

  private async attempt(stale?: string): Promise<void> {
    this.timer?.();
    this.timer = undefined;
    const round = ++this.attemptNumber;
    this.listener.state({ name: "connecting" });
    try {
      const { tokens, listener } = this;
      const token = await (stale === undefined ? tokens.token() : tokens.renew(stale));
      await listener.prepare();
      if (round !== this.attemptNumber || !this.isWanted) return;
      this.socket = new Socket(this.make, this.url, token, this.clock, this.timing, {
        ready: (limits) => this.onReady(limits),
        frame: (frame) => listener.frame(frame),
        closed: (code, reason) => this.onClosed(code, reason, token),
      });
    } catch (error) {
      const wait = error instanceof Refused ? error.retryAfterMs : undefined;
      if (round === this.attemptNumber && this.isWanted) this.scheduleAttempt(wait, stale);
    }
  }

  private onReady(limits: Limits): void {
    this.isOnline = true;
    this.stableTimer = this.clock.after(this.timing.stableMs, () => this.backoff.reset());
    this.listener.state({ name: "online" });
    this.listener.online(limits);
  }

  private onClosed(code: number, word: string, token: string): void {
    this.dropConnection();
    if (!this.isWanted) return;
    switch (afterClose(code)) {
      case "refresh":
        this.scheduleAttempt(0, token);
        return;
      case "giveUp": {
        const reason = word in codes ? (word as Reason) : "session_invalid";
        if (endsSession(reason)) this.tokens.end(reason);
        else this.stop({ name: "signedOut", reason }); // the sign-in is valid, but the server refuses this client
        return;
      }
      case "reconnect":
        this.scheduleAttempt(leastWaitMs(code));
    }
  }

  private scheduleAttempt(leastMs = 0, stale?: string): void {
    const retryInMs = this.backoff.next(leastMs);
    this.timer = this.clock.after(retryInMs, () => void this.attempt(stale));
    this.listener.state({ name: "offline", retryInMs });
  }

  private dropConnection(): void {
    this.attemptNumber += 1;
    this.timer?.();
    this.timer = undefined;
    this.stableTimer?.();
    this.socket?.close();
    this.socket = undefined;
    if (!this.isOnline) return;
    this.isOnline = false;
    this.listener.offline();
  }
}
