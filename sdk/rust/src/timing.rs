//! Timeouts and intervals.
use std::time::Duration;

use serde::Deserialize;

/// Timeouts and intervals, in milliseconds. The defaults suit ordinary networks.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Timing {
    /// From opening a socket to `AUTH_OK`.
    pub connect_timeout_ms: u64,
    /// A ping is sent after this long without frames …
    pub ping_after_ms: u64,
    /// … and the connection is dropped if no frame follows within this.
    pub pong_timeout_ms: u64,
    /// The first wait between attempts to connect is up to this long …
    pub backoff_base_ms: u64,
    /// … and none is longer than this.
    pub backoff_max_ms: u64,
    /// A connection that lasted this long is stable: the backoff is reset.
    pub stable_ms: u64,
    /// From sending an HTTP request to the whole answer.
    pub http_timeout_ms: u64,
    /// The same for a token refresh. Short, since the server repeats a lost answer for a minute
    /// only.
    pub refresh_timeout_ms: u64,
    /// A message without an answer is sent again after this long.
    pub silence_ms: u64,
    /// Unanswered messages of a conversation in flight.
    pub send_window: usize,
    /// At most one delivered acknowledgement per conversation in this time.
    pub ack_window_ms: u64,
    /// A gap may close by itself for this long before it is pulled.
    pub gap_delay_ms: u64,
    /// Heads are compared this often while nothing happens …
    pub heads_every_ms: u64,
    /// … and once when it has become quiet for this long, since the last push may be the lost one.
    pub quiet_ms: u64,
    /// TYPING is sent at most this often, and expires after twice as long.
    pub typing_every_ms: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect_timeout_ms: 10_000,
            ping_after_ms: 25_000,
            pong_timeout_ms: 10_000,
            backoff_base_ms: 500,
            backoff_max_ms: 30_000,
            stable_ms: 5_000,
            http_timeout_ms: 15_000,
            refresh_timeout_ms: 4_000,
            silence_ms: 5_000,
            send_window: 64,
            ack_window_ms: 200,
            gap_delay_ms: 150,
            heads_every_ms: 45_000,
            quiet_ms: 4_000,
            typing_every_ms: 3_000,
        }
    }
}

pub(crate) const fn ms(many: u64) -> Duration {
    Duration::from_millis(many)
}
