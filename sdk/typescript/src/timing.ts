/** Timeouts and intervals. The defaults suit ordinary networks. */
export interface Timing {
  /** From opening a socket to `AUTH_OK`. */
  connectTimeoutMs: number;
  /** A ping is sent after this long without frames, and the connection dropped if none follows. */
  pingAfterMs: number;
  pongTimeoutMs: number;
  /** Waits between attempts to connect. */
  backoffBaseMs: number;
  backoffMaxMs: number;
  /** A connection that lasted this long is stable: the backoff is reset. */
  stableMs: number;
  httpTimeoutMs: number;
  /** Short, since the server repeats a lost answer to a refresh for a minute only. */
  refreshTimeoutMs: number;
  /** A message without an answer is sent again after this long. */
  silenceMs: number;
  /** Unanswered messages of a conversation in flight. */
  sendWindow: number;
  /** At most one delivered acknowledgement per conversation in this time. */
  ackWindowMs: number;
  /** A gap may close by itself for this long before it is pulled. */
  gapDelayMs: number;
  /** Heads are compared this often while nothing happens … */
  headsEveryMs: number;
  /** … and once when it has become quiet for this long, since the last push may be the lost one. */
  quietMs: number;
  /** TYPING is sent at most this often, and expires after twice as long. */
  typingEveryMs: number;
}

export const defaultTiming: Timing = {
  connectTimeoutMs: 10_000,
  pingAfterMs: 25_000,
  pongTimeoutMs: 10_000,
  backoffBaseMs: 500,
  backoffMaxMs: 30_000,
  stableMs: 5_000,
  httpTimeoutMs: 15_000,
  refreshTimeoutMs: 4_000,
  silenceMs: 5_000,
  sendWindow: 64,
  ackWindowMs: 200,
  gapDelayMs: 150,
  headsEveryMs: 45_000,
  quietMs: 4_000,
  typingEveryMs: 3_000,
};
