/** Cancels a timer. */
export type Cancel = () => void;

/** Time and randomness, so that tests control both. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** From 0 up to 1, never 1. */
  random(): number;
  /** Calls once after this long. */
  after(ms: number, call: () => void): Cancel;
}

/** The real clock. */
export const wallClock: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
  after(ms, call) {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  },
};
