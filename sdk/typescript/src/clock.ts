/** Calls a timer off. */
export type Cancel = () => void;

/** Time and chance, so that tests own both. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** From 0 up to 1, never 1. */
  random(): number;
  /** Calls once, later. */
  after(ms: number, call: () => void): Cancel;
}

/** The clock on the wall. */
export const wallClock: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
  after(ms, call) {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  },
};
