import { afterClose, Backoff, leastWaitMs } from "./backoff.js";
import type { Cancel, Clock } from "./clock.js";
import { codes, type Reason } from "./codes.js";
import type { ClientFrame, Limits, ServerFrame } from "./frames.js";
import { endsSession, Refused } from "./refusal.js";
import { Socket, type SocketClass } from "./socket.js";
import type { Timing } from "./timing.js";
import type { SignIn } from "./tokens.js";
import type { State } from "./types.js";

/** Who hears of the link. */
export interface LinkEars {
  /** Before a socket is opened. What it throws counts as a failed try. */
  prepare(): Promise<void>;
  online(limits: Limits): void;
  offline(): void;
  frame(frame: ServerFrame): void;
  state(state: State): void;
}

/** Stays connected: opens one socket after the other, as close codes allow. */
export class Link {
  private socket: Socket | undefined;
  private isOnline = false;
  private isWanted = false;
  /** Tells tries apart, so that one that was given up changes nothing. */
  private round = 0;
  private timer: Cancel | undefined;
  private stable: Cancel | undefined;
  private readonly backoff: Backoff;

  constructor(
    private readonly url: string,
    private readonly make: SocketClass,
    private readonly tokens: SignIn,
    private readonly clock: Clock,
    private readonly timing: Timing,
    private readonly ears: LinkEars,
  ) {
    const { backoffBaseMs: baseMs, backoffMaxMs: maxMs } = timing;
    this.backoff = new Backoff(clock, { baseMs, maxMs });
  }

  start(): void {
    if (this.isWanted) return;
    this.isWanted = true;
    void this.attempt();
  }

  /** Ends the connection and stays away. */
  stop(state: State): void {
    this.isWanted = false;
    this.drop();
    this.ears.state(state);
  }

  /** The network is back, or somebody looks: tries now if it was waiting. */
  hurry(): void {
    if (!this.isWanted || this.timer === undefined) return;
    this.backoff.reset();
    void this.attempt();
  }

  /** Whether the server answers on the connection; false if there is none, or it ends before. */
  async ping(): Promise<boolean> {
    return this.isOnline && ((await this.socket?.ping()) ?? false);
  }

  /** Gives a connection up on which nobody answers, and tries a new one. */
  reconnect(): void {
    if (!this.isWanted || !this.isOnline) return;
    this.drop();
    this.later(0);
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
    const round = ++this.round;
    this.ears.state({ name: "connecting" });
    try {
      const { tokens, ears } = this;
      const token = await (stale === undefined ? tokens.token() : tokens.renew(stale));
      await ears.prepare();
      if (round !== this.round || !this.isWanted) return;
      this.socket = new Socket(this.make, this.url, token, this.clock, this.timing, {
        ready: (limits) => this.ready(limits),
        frame: (frame) => ears.frame(frame),
        closed: (code, reason) => this.closed(code, reason, token),
      });
    } catch (error) {
      const wait = error instanceof Refused ? error.retryAfterMs : undefined;
      if (round === this.round && this.isWanted) this.later(wait, stale);
    }
  }

  private ready(limits: Limits): void {
    this.isOnline = true;
    this.stable = this.clock.after(this.timing.stableMs, () => this.backoff.reset());
    this.ears.state({ name: "online" });
    this.ears.online(limits);
  }

  private closed(code: number, word: string, token: string): void {
    this.drop();
    if (!this.isWanted) return;
    switch (afterClose(code)) {
      case "refresh":
        this.later(0, token);
        return;
      case "giveUp": {
        const reason = word in codes ? (word as Reason) : "session_invalid";
        if (endsSession(reason)) this.tokens.end(reason);
        else this.stop({ name: "signedOut", reason }); // the sign-in is good, the client is not
        return;
      }
      case "reconnect":
        this.later(leastWaitMs(code));
    }
  }

  private later(leastMs = 0, stale?: string): void {
    const retryInMs = this.backoff.next(leastMs);
    this.timer = this.clock.after(retryInMs, () => void this.attempt(stale));
    this.ears.state({ name: "offline", retryInMs });
  }

  private drop(): void {
    this.round += 1;
    this.timer?.();
    this.timer = undefined;
    this.stable?.();
    this.socket?.close();
    this.socket = undefined;
    if (!this.isOnline) return;
    this.isOnline = false;
    this.ears.offline();
  }
}
