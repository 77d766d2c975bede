import type { Clock } from "./clock.js";

/** Keeps below a rate: the server ends connections that are too fast. */
export class Pace {
  private perMs = 0;
  private most = 0;
  private left = 0;
  private at = 0;

  constructor(private readonly clock: Clock) {}

  /** So many a second, zero for no limit. Stays a little below, since clocks and networks are not exact. */
  limit(perSecond: number): void {
    const perMs = (perSecond * 0.9) / 1000;
    if (perMs === this.perMs) return;
    this.perMs = perMs;
    this.most = Math.max(1, perSecond * 0.9);
    this.left = this.most;
    this.at = this.clock.now();
  }

  /** Takes one and returns 0, or says after how many milliseconds there is one. */
  take(): number {
    if (this.perMs === 0) return 0;
    const now = this.clock.now();
    this.left = Math.min(this.most, this.left + Math.max(0, now - this.at) * this.perMs);
    this.at = now;
    if (this.left >= 1) {
      this.left -= 1;
      return 0;
    }
    return Math.ceil((1 - this.left) / this.perMs);
  }
}
