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

/// Who may make an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Registration {
    /// Whoever wants one.
    #[default]
    Open,
    /// Nobody.
    Closed,
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
    /// How long a rotated refresh token gives the same next one, before showing it ends the sign-in.
    pub refresh_grace_ms: u64,
    /// How long a message is shown that was accepted and then lost, before it is taken away.
    pub preview_ms: u64,
    /// Messages of one resend page.
    pub resend_page: usize,
    /// Bytes of one page of messages, sent again or read.
    pub page_bytes_max: usize,
    /// Sends of one user per second; zero is no limit.
    pub user_sends_per_second: u32,
    /// Sends of one user in a burst.
    pub user_sends_burst: u32,
    /// Requests of one user over HTTP per second; zero is no limit.
    pub user_requests_per_second: u32,
    /// Requests of one user in a burst.
    pub user_requests_burst: u32,
    /// Who may make an account.
    pub registration: Registration,
    /// Registrations from one address per minute; zero is none at all.
    pub registrations_per_minute: u32,
    /// Choices about groups.
    pub groups: GroupRules,
}

/// Limits and choices about groups.
#[derive(Clone, Copy, Debug)]
pub struct GroupRules {
    /// Members of one group.
    pub members_max: u32,
    /// Admins of one group.
    pub admins_max: usize,
    /// People one request may speak of.
    pub batch_max: usize,
    /// People who may wait to be let in.
    pub requests_max: u32,
    /// People one message may mention.
    pub mentions_max: usize,
    /// How long a code stays before it may be replaced.
    pub code_cooldown_ms: u64,
    /// Read receipts and typing go to all members up to this size.
    pub receipts_members_max: u32,
    /// How messages reach those who are online.
    pub strategy: Strategy,
    /// From this many members on, `auto` notifies.
    pub notify_members: u32,
    /// From this many members online, `auto` notifies.
    pub notify_online: usize,
    /// From this many members on, `auto` tells nobody.
    pub none_members: u32,
    /// From this many members online, `auto` tells nobody.
    pub none_online: usize,
}

/// How a group's messages reach those who are online.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// As messages.
    Push,
    /// As a word that there is one, to be pulled.
    Notify,
    /// Not at all: they look.
    None,
    /// By the size of the group and of its audience.
    #[default]
    Auto,
}

impl Rules {
    /// Who may make an account: no tries are no accounts, never as many as one likes.
    pub fn registration(&self) -> Registration {
        if self.registrations_per_minute == 0 { Registration::Closed } else { self.registration }
    }
}

impl Default for GroupRules {
    fn default() -> Self {
        Self {
            members_max: 100_000,
            admins_max: 50,
            batch_max: 500,
            requests_max: 1000,
            mentions_max: 50,
            code_cooldown_ms: 24 * 60 * 60 * 1000,
            receipts_members_max: 200,
            strategy: Strategy::Auto,
            notify_members: 2000,
            notify_online: 500,
            none_members: 10_000,
            none_online: 2000,
        }
    }
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
            refresh_grace_ms: 60_000,
            preview_ms: 30_000,
            resend_page: 200,
            page_bytes_max: 1024 * 1024,
            user_sends_per_second: 30,
            user_sends_burst: 60,
            user_requests_per_second: 50,
            user_requests_burst: 100,
            registration: Registration::Open,
            registrations_per_minute: 600,
            groups: GroupRules::default(),
        }
    }
}
