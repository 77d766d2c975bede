/** How long things may take. The defaults suit people on ordinary networks. */
export interface Timing {
  /** From opening a socket to being let in. */
  connectTimeoutMs: number;
  /** A silent server is asked whether it is there, and given up if it does not answer. */
  pingAfterMs: number;
  pongTimeoutMs: number;
  /** Waits between tries to connect. */
  backoffBaseMs: number;
  backoffMaxMs: number;
  /** A connection that lasted this long was a good one: the waits start small again. */
  stableMs: number;
  httpTimeoutMs: number;
  /** A refresh is asked for again soon: the server repeats an answer that was lost, but only for a minute. */
  refreshTimeoutMs: number;
  /** A message without an answer is sent again after this long. */
  silenceMs: number;
  /** Unanswered messages of a conversation on the wire at a time. */
  sendWindow: number;
  /** At most one delivered acknowledgement per conversation in this time. */
  ackWindowMs: number;
  /** A hole may close by itself for this long before it is pulled. */
  gapDelayMs: number;
  /** Heads are compared this often while nothing happens … */
  headsEveryMs: number;
  /** … and once when it has become quiet for this long, since the last push may be the lost one. */
  quietMs: number;
  /** Typing is told at most this often, and believed for a little longer. */
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
