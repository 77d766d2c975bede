import type { Clock } from "./clock.js";

/** A token bucket that stays below the server's limits: it closes connections that exceed them. */
export class RateLimiter {
  private perMs = 0;
  private burst = 0;
  private available = 0;
  private refilledAt = 0;

  constructor(private readonly clock: Clock) {}

  /** Sets the rate per second; zero is no limit. It uses 90 % of it, since clocks and networks are not exact. */
  setRate(perSecond: number): void {
    const perMs = (perSecond * 0.9) / 1000;
    if (perMs === this.perMs) return;
    this.perMs = perMs;
    this.burst = Math.max(1, perSecond * 0.9);
    this.available = this.burst;
    this.refilledAt = this.clock.now();
  }

  /** Takes one token and returns 0, or returns the milliseconds until there is one. */
  take(): number {
    if (this.perMs === 0) return 0;
    const now = this.clock.now();
    this.available = Math.min(this.burst, this.available + Math.max(0, now - this.refilledAt) * this.perMs);
    this.refilledAt = now;
    if (this.available >= 1) {
      this.available -= 1;
      return 0;
    }
    return Math.ceil((1 - this.available) / this.perMs);
  }
}
