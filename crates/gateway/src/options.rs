//! The limits of a connection.

use std::net::IpAddr;
use std::time::Duration;

use nexo_chat::rules::Rules;
use nexo_wire::dialect::ClientLimits;

use crate::ip_network::IpNetwork;

/// The settings of sockets and HTTP.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of a WebSocket frame or message.
    pub frame_bytes_max: usize,
    /// Bytes of an HTTP request body.
    pub body_bytes_max: usize,
    /// How long a socket may take to authenticate.
    pub auth_timeout: Duration,
    /// How long a client may take to send a request head, and an idle HTTP connection stays open.
    pub header_timeout: Duration,
    /// A socket that was silent for this long is pinged.
    pub ping_after_ms: u64,
    /// A socket that was silent for this long is closed.
    pub idle_timeout_ms: u64,
    /// Frames of one connection per second; zero is no limit.
    pub frames_per_second: u32,
    /// Frames of one connection in a burst.
    pub frames_burst: u32,
    /// The low water mark: a full outbox takes pushes again below it.
    pub outbox_low_bytes: usize,
    /// The high water mark: an outbox with more bytes is full and drops pushes.
    pub outbox_high_bytes: usize,
    /// How long a receipt may wait for other frames, to leave together with them.
    pub receipt_delay: Duration,
    /// A socket whose outbox stays full for this long is closed.
    pub unwritable_close_ms: u64,
    /// Open TCP connections of clients.
    pub connections_max: usize,
    /// Those of one address; zero is no limit.
    pub connections_per_address: usize,
    /// Those that have not authenticated.
    pub unauthenticated_max: usize,
    /// Origins whose pages may send requests and open a WebSocket, such as `https://app.example.com`.
    pub allowed_origins: Vec<String>,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNetwork>,
    /// Whether a token may be in the query of a WebSocket.
    pub token_in_query: bool,
    /// A connection whose peer acknowledges nothing for this long is reset.
    pub write_timeout: Duration,
    /// How long a shutdown may take.
    pub drain: Duration,
    /// The version of the program.
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
            receipt_delay: Duration::from_millis(10),
            unwritable_close_ms: 3_000,
            connections_max: 100_000,
            connections_per_address: 1000,
            unauthenticated_max: 25_000,
            allowed_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            token_in_query: true,
            write_timeout: Duration::from_secs(30),
            drain: Duration::from_secs(10),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

impl Options {
    /// Whether a peer is a proxy whose `X-Forwarded-For` is trusted.
    pub(crate) fn is_trusted_proxy(&self, peer: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(peer))
    }

    /// The limits that clients are told.
    pub fn limits(&self, rules: &Rules) -> ClientLimits {
        ClientLimits {
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
