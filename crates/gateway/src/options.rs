//! The limits of a connection.

use std::net::IpAddr;
use std::time::Duration;

use nexo_chat::rules::Rules;
use nexo_wire::dialect::Limits;

/// What an operator may set about sockets and HTTP.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of a WebSocket frame or message.
    pub frame_bytes_max: usize,
    /// Bytes of an HTTP request body.
    pub body_bytes_max: usize,
    /// How long a socket may stay anonymous.
    pub auth_timeout: Duration,
    /// How long a request's header may take, and an idle HTTP connection may stay.
    pub header_timeout: Duration,
    /// A socket that was silent for this long is asked whether it is there.
    pub ping_after_ms: u64,
    /// A socket that was silent for this long is closed.
    pub idle_timeout_ms: u64,
    /// Frames of one connection per second; zero is no limit.
    pub frames_per_second: u32,
    /// Frames of one connection in a burst.
    pub frames_burst: u32,
    /// A full outbox takes frames again below this many bytes.
    pub outbox_low_bytes: usize,
    /// An outbox with more bytes is full.
    pub outbox_high_bytes: usize,
    /// A socket whose outbox stays full for this long is closed.
    pub unwritable_close_ms: u64,
    /// Open TCP connections of the whole process.
    pub connections_max: usize,
    /// Pages of other sites that may ask and open a WebSocket, such as `https://app.example.com`.
    pub allowed_origins: Vec<String>,
    /// Proxies whose word on where a request comes from is taken.
    pub trusted_proxies: Vec<IpAddr>,
    /// A peer that takes nothing for this long is cut off.
    pub write_timeout: Duration,
    /// What `/metrics` asks for as a bearer token; without one it is closed.
    pub metrics_token: Option<String>,
    /// What lets the operator speak with the system's voice; without one nobody does.
    pub system_token: Option<String>,
    /// How long a drain may take.
    pub drain: Duration,
    /// Which version of the program this is, for whoever asks.
    pub version: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            frame_bytes_max: 128 * 1024,
            body_bytes_max: 128 * 1024,
            auth_timeout: Duration::from_secs(3),
            header_timeout: Duration::from_secs(10),
            ping_after_ms: 60_000,
            idle_timeout_ms: 90_000,
            frames_per_second: 60,
            frames_burst: 120,
            outbox_low_bytes: 256 * 1024,
            outbox_high_bytes: 512 * 1024,
            unwritable_close_ms: 3_000,
            connections_max: 100_000,
            allowed_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            write_timeout: Duration::from_secs(30),
            metrics_token: None,
            system_token: None,
            drain: Duration::from_secs(10),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

impl Options {
    /// What clients are told of it.
    pub fn limits(&self, rules: &Rules) -> Limits {
        Limits {
            frame_bytes_max: self.frame_bytes_max,
            text_chars_max: rules.text_chars_max,
            connection_frames_per_second: self.frames_per_second,
            user_sends_per_second: rules.user_sends_per_second,
            user_requests_per_second: rules.user_requests_per_second,
            idle_timeout_ms: self.idle_timeout_ms,
            group_members_max: rules.groups.members_max,
            mentions_max: rules.groups.mentions_max,
            recall_window_ms: rules.recall_window_ms,
        }
    }
}
