import type { Clock } from "./clock.js";

export interface BackoffTimes {
  /** The first wait is up to this long. */
  baseMs: number;
  /** No wait is longer. */
  maxMs: number;
}

/** Waits that grow, each somewhere between nothing and its bound, so that many clients spread out. */
export class Backoff {
  private tries = 0;

  constructor(
    private readonly clock: Clock,
    private readonly times: BackoffTimes,
  ) {}

  /** How long to wait now; `leastMs` if somebody told us. */
  next(leastMs = 0): number {
    const bound = Math.min(this.times.maxMs, this.times.baseMs * 2 ** Math.min(this.tries, 30));
    this.tries += 1;
    return Math.round(leastMs + this.clock.random() * bound);
  }

  reset(): void {
    this.tries = 0;
  }
}

/** What a close code asks for. */
export type AfterClose = "reconnect" | "refresh" | "giveUp";

/** 41xx: refresh the token first. 44xx: do not come back. Anything else: come back with backoff. */
export function afterClose(code: number): AfterClose {
  if (code >= 4100 && code < 4200) return "refresh";
  if (code >= 4400 && code < 4500) return "giveUp";
  return "reconnect";
}

/** Whoever was too fast stays away for at least this long. */
export function leastWaitMs(code: number): number {
  return code === 4029 || code === 4030 ? 1000 : 0;
}
