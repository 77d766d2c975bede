//! Limits and choices that an operator sets. Dialects differ through these values; no feature asks which
//! dialect a request came from.

use std::sync::Arc;

use crate::word_filter::WordFilter;

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

/// Who may register an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RegistrationPolicy {
    /// Everyone.
    #[default]
    Open,
    /// Whoever has an invite link.
    Invite,
    Closed,
}

/// Limits and choices of the domain.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Which sessions close when another device connects.
    pub session_policy: SessionPolicy,
    /// Sockets per user.
    pub connections_max: usize,
    /// Lifetime of an access token.
    pub access_ttl_ms: u64,
    /// How long a sign-in lasts without a refresh.
    pub refresh_ttl_ms: u64,
    /// Characters of a text message.
    pub text_chars_max: usize,
    /// Bytes of any other content, and of the extra map.
    pub content_bytes_max: usize,
    /// Entries of the extra map.
    pub extra_entries_max: usize,
    /// Replaces words in text messages.
    pub word_filter: Option<Arc<WordFilter>>,
    /// How long a sender may recall a message.
    pub recall_window_ms: u64,
    /// How long a rotated refresh token still yields the same next token. After that, presenting it ends the
    /// sign-in.
    pub refresh_grace_ms: u64,
    /// How long a client shows an accepted message that was lost, before it is dropped.
    pub preview_ms: u64,
    /// Messages per resend page.
    pub resend_page: usize,
    /// Bytes per page of messages, resent or read.
    pub page_bytes_max: usize,
    /// Sends of one user per second; zero is no limit.
    pub user_sends_per_second: u32,
    /// Sends of one user in a burst.
    pub user_sends_burst: u32,
    /// Requests of one user over HTTP per second; zero is no limit.
    pub user_requests_per_second: u32,
    /// Requests of one user in a burst.
    pub user_requests_burst: u32,
    /// Who may register an account.
    pub registration: RegistrationPolicy,
    /// Whether members may make invite links; otherwise only operators.
    pub members_invite: bool,
    /// Registrations from one address per minute; zero is none at all.
    pub registrations_per_minute: u32,
    /// Private conversations that a user may begin per hour; zero is no limit.
    pub strangers_per_hour: u32,
    /// Messages of a broadcast per second.
    pub broadcast_per_second: u32,
    /// Whether somebody who is blocked is told so when they send; otherwise their messages just do not arrive.
    pub tell_blocked: bool,
    /// What a new password must be.
    pub passwords: PasswordRules,
    /// Choices about groups.
    pub groups: GroupRules,
}

/// What a new password must be.
#[derive(Clone, Copy, Debug)]
pub struct PasswordRules {
    pub min_chars: usize,
    /// Whether those that everybody guesses first are refused.
    pub refuse_common: bool,
}

impl Default for PasswordRules {
    fn default() -> Self {
        Self { min_chars: 8, refuse_common: true }
    }
}

/// Limits and choices about groups.
#[derive(Clone, Copy, Debug)]
pub struct GroupRules {
    pub members_max: u32,
    pub admins_max: usize,
    /// Groups that a user may be in and still create or join another one.
    pub per_user_max: usize,
    /// Groups that a user may be put into per hour by people they share no conversation with; zero is no limit.
    pub by_strangers_per_hour: u32,
    /// Users that one request may name.
    pub batch_max: usize,
    /// Open requests to join per group.
    pub requests_max: u32,
    /// Users that one message may mention.
    pub mentions_max: usize,
    /// Minimum age of a join code before it may be replaced.
    pub code_cooldown_ms: u64,
    /// Up to this many members, read receipts and typing go to all members.
    pub receipts_members_max: u32,
    /// How messages reach online members.
    pub strategy: DeliveryStrategy,
    /// From this many members on, `auto` notifies.
    pub notify_members: u32,
    /// From this many members online, `auto` notifies.
    pub notify_online: usize,
    /// From this many members on, `auto` pushes nothing.
    pub none_members: u32,
    /// From this many members online, `auto` pushes nothing.
    pub none_online: usize,
}

/// How a group's messages reach online members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeliveryStrategy {
    Push,
    /// As a notification without content; clients pull the message.
    Notify,
    /// Nothing is sent; clients poll.
    None,
    /// Chosen by the number of members and of online members.
    #[default]
    Auto,
}

impl Rules {
    /// Zero registrations per minute closes the registration. Everywhere else a rate of zero means "no limit".
    pub fn registration(&self) -> RegistrationPolicy {
        if self.registrations_per_minute == 0 {
            RegistrationPolicy::Closed
        } else {
            self.registration
        }
    }
}

impl Default for GroupRules {
    fn default() -> Self {
        Self {
            members_max: 100_000,
            admins_max: 50,
            per_user_max: 5000,
            by_strangers_per_hour: 20,
            batch_max: 500,
            requests_max: 1000,
            mentions_max: 50,
            code_cooldown_ms: 24 * 60 * 60 * 1000,
            receipts_members_max: 200,
            strategy: DeliveryStrategy::Auto,
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
            word_filter: None,
            recall_window_ms: 120_000,
            refresh_grace_ms: 60_000,
            preview_ms: 30_000,
            resend_page: 200,
            page_bytes_max: 1024 * 1024,
            user_sends_per_second: 30,
            user_sends_burst: 60,
            user_requests_per_second: 50,
            user_requests_burst: 100,
            registration: RegistrationPolicy::Open,
            members_invite: false,
            registrations_per_minute: 600,
            strangers_per_hour: 100,
            broadcast_per_second: 200,
            tell_blocked: false,
            passwords: PasswordRules::default(),
            groups: GroupRules::default(),
        }
    }
}
