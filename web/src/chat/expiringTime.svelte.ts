/** The limit of timers. */
const FURTHEST_MS = 2 ** 31 - 1;

/** The current time, updated shortly after something expired. */
export class ExpiringTime {
  at = $state(Date.now());

  /** Updates the time after `end`; returns a function that cancels it. */
  until(end: number | undefined): (() => void) | undefined {
    if (end === undefined) return undefined;
    const timer = setTimeout(() => (this.at = Date.now()), Math.min(Math.max(0, end - Date.now()) + 500, FURTHEST_MS));
    return () => clearTimeout(timer);
  }
}
