//! The numbers and choices an operator may set. Dialects differ through these values, never by
//! asking who is speaking.

use std::sync::Arc;

use crate::words::Words;

/// How many devices of one user may be connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionPolicy {
    /// As many as `connections_max` allows.
    #[default]
    Multi,
    /// One per platform: the newer one wins.
    PerPlatform,
    /// One: the newer one wins.
    Single,
}

/// Limits and choices of the domain.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Who gives way when a second device comes.
    pub session_policy: SessionPolicy,
    /// Sockets per user.
    pub connections_max: usize,
    /// How long an access token lives.
    pub access_ttl_ms: u64,
    /// How long a sign-in lives without being refreshed.
    pub refresh_ttl_ms: u64,
    /// Characters of a text message.
    pub text_chars_max: usize,
    /// Bytes of any other content, and of the extra map.
    pub content_bytes_max: usize,
    /// Entries of the extra map.
    pub extra_entries_max: usize,
    /// Words that are not shown.
    pub words: Option<Arc<Words>>,
    /// How long a sender may take a message back.
    pub recall_window_ms: u64,
    /// How long a rotated refresh token is only refused, before showing it ends the sign-in.
    pub refresh_grace_ms: u64,
    /// Messages of one resend page.
    pub resend_page: usize,
    /// Bytes of one page of messages, sent again or read.
    pub page_bytes_max: usize,
    /// Sends of one user per second; zero is no limit.
    pub user_sends_per_second: u32,
    /// Sends of one user in a burst.
    pub user_sends_burst: u32,
    /// Registrations from one address per minute; zero is no limit.
    pub registrations_per_minute: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            session_policy: SessionPolicy::Multi,
            connections_max: 16,
            access_ttl_ms: 30 * 60 * 1000,
            refresh_ttl_ms: 30 * 24 * 60 * 60 * 1000,
            text_chars_max: 4096,
            content_bytes_max: 64 * 1024,
            extra_entries_max: 32,
            words: None,
            recall_window_ms: 120_000,
            refresh_grace_ms: 10_000,
            resend_page: 200,
            page_bytes_max: 1024 * 1024,
            user_sends_per_second: 30,
            user_sends_burst: 60,
            registrations_per_minute: 600,
        }
    }
}
