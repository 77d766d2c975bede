/** Timers do not reach further. */
const FURTHEST_MS = 2 ** 31 - 1;

/** A time that moves when it matters. */
export class Now {
  at = $state(Date.now());

  /** Moves once this time is over; what it gives ends that. */
  until(end: number | undefined): (() => void) | undefined {
    if (end === undefined) return undefined;
    const timer = setTimeout(() => (this.at = Date.now()), Math.min(Math.max(0, end - Date.now()) + 500, FURTHEST_MS));
    return () => clearTimeout(timer);
  }
}
