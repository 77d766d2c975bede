import type { Clock } from "./clock.js";

export interface BackoffTimes {
  /** The first wait is up to this long. */
  baseMs: number;
  /** No wait is longer. */
  maxMs: number;
}

/** Exponential backoff with full jitter, so that many clients spread out. */
export class Backoff {
  private tries = 0;

  constructor(
    private readonly clock: Clock,
    private readonly times: BackoffTimes,
  ) {}

  /** The next wait; at least `leastMs`. */
  next(leastMs = 0): number {
    const bound = Math.min(this.times.maxMs, this.times.baseMs * 2 ** Math.min(this.tries, 30));
    this.tries += 1;
    return Math.round(leastMs + this.clock.random() * bound);
  }

  reset(): void {
    this.tries = 0;
  }
}

/** What to do after a close code. */
export type AfterClose = "reconnect" | "refresh" | "giveUp";

/** 41xx: refresh the token first. 44xx: do not reconnect. Anything else: reconnect with backoff. */
export function afterClose(code: number): AfterClose {
  if (code >= 4100 && code < 4200) return "refresh";
  if (code >= 4400 && code < 4500) return "giveUp";
  return "reconnect";
}

/** The minimum wait after a close for exceeding a limit. */
export function leastWaitMs(code: number): number {
  return code === 4029 || code === 4030 ? 1000 : 0;
}
