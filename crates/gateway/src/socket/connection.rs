//! The part of a session that other tasks see: its outbox, its groups, and whether it has to close.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use nexo_chat::Reason;
use nexo_chat::ids::{ConnectionId, ConversationId, LoginId, Millis, Seq, UserId};
use nexo_chat::model::Caller;
use nexo_wire::dialect::Dialect;

use crate::socket::outbox::Outbox;

/// An authenticated socket, shared by its session, delivery and the sweep.
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) user: UserId,
    pub(crate) login: LoginId,
    pub(crate) dialect: Dialect,
    pub(crate) outbox: Outbox,
    last_activity: AtomicU64,
    expires_at: AtomicU64,
    /// The `last_activity` for which a ping was sent.
    pinged_for: AtomicU64,
    close_reason: OnceLock<Reason>,
    /// The lowest seq of each conversation whose push was dropped.
    missed: Mutex<BTreeMap<ConversationId, Seq>>,
    has_missed: AtomicBool,
    /// The groups it is subscribed to, so that closing it finds its subscriptions.
    groups: Mutex<Vec<ConversationId>>,
    /// The conversations its user has blocked.
    blocked: Mutex<HashSet<ConversationId>>,
    has_blocked: AtomicBool,
    /// How often a membership or a receive setting of its user changed since it was registered.
    standing_changes: AtomicU64,
}

/// Conversations with dropped pushes that a connection remembers. With more it is closed, and the
/// client catches up on a new one.
const MISSED_MAX: usize = 1000;

impl Connection {
    pub(crate) fn new(
        id: ConnectionId,
        caller: &Caller,
        dialect: Dialect,
        outbox: Outbox,
        now: Millis,
    ) -> Self {
        Self {
            id,
            dialect,
            user: caller.user.clone(),
            login: caller.login,
            outbox,
            last_activity: AtomicU64::new(now.0),
            expires_at: AtomicU64::new(caller.expires_at.0),
            pinged_for: AtomicU64::new(0),
            close_reason: OnceLock::new(),
            missed: Mutex::default(),
            has_missed: AtomicBool::new(false),
            groups: Mutex::default(),
            blocked: Mutex::default(),
            has_blocked: AtomicBool::new(false),
            standing_changes: AtomicU64::new(0),
        }
    }

    /// Records that the connection is subscribed to a group.
    pub(crate) fn add_group(&self, conversation: ConversationId) {
        self.subscribed().push(conversation);
    }

    pub(crate) fn remove_group(&self, conversation: &ConversationId) {
        self.subscribed().retain(|group| group != conversation);
    }

    pub(crate) fn groups(&self) -> Vec<ConversationId> {
        self.subscribed().clone()
    }

    pub(crate) fn take_groups(&self) -> Vec<ConversationId> {
        std::mem::take(&mut *self.subscribed())
    }

    fn subscribed(&self) -> MutexGuard<'_, Vec<ConversationId>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a membership or a receive setting of the user changed, so that a task that is
    /// reading them reads again.
    pub(crate) fn note_standing_change(&self) {
        self.standing_changes.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn standing_changes(&self) -> u64 {
        self.standing_changes.load(Ordering::SeqCst)
    }

    /// Replaces the set of blocked conversations.
    pub(crate) fn replace_blocked(&self, conversations: HashSet<ConversationId>) {
        let mut blocked = self.blocked();
        *blocked = conversations;
        self.has_blocked.store(!blocked.is_empty(), Ordering::SeqCst);
    }

    pub(crate) fn set_blocked(&self, conversation: &ConversationId, on: bool) {
        let mut blocked = self.blocked();
        if on {
            blocked.insert(conversation.clone());
        } else {
            blocked.remove(conversation);
        }
        self.has_blocked.store(!blocked.is_empty(), Ordering::SeqCst);
    }

    /// Whether any conversation is blocked. Takes no lock.
    pub(crate) fn blocks_any(&self) -> bool {
        self.has_blocked.load(Ordering::SeqCst)
    }

    pub(crate) fn blocks(&self, conversation: &ConversationId) -> bool {
        self.blocks_any() && self.blocked().contains(conversation)
    }

    fn blocked(&self) -> MutexGuard<'_, HashSet<ConversationId>> {
        self.blocked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the push of a message, or of a change to it, was dropped. Returns the lowest seq
    /// of the conversation that the connection has missed; `None` if it is closed instead.
    pub(crate) fn record_missed(&self, conversation: &ConversationId, seq: Seq) -> Option<Seq> {
        let mut missed = self.missed();
        if missed.len() >= MISSED_MAX && !missed.contains_key(conversation) {
            drop(missed);
            self.close(Reason::SlowConsumer);
            return None;
        }
        let first = missed.entry(conversation.clone()).or_insert(seq);
        *first = seq.min(*first);
        let first = *first;
        self.has_missed.store(true, Ordering::SeqCst);
        drop(missed);
        self.outbox.wake(); // the session may have drained everything since
        Some(first)
    }

    /// Whether pushes were dropped and the outbox has room to resend them.
    pub(crate) fn can_recover(&self) -> bool {
        self.has_missed.load(Ordering::SeqCst) && !self.outbox.is_full()
    }

    /// Takes the cursors to resend from: per conversation, the seq before the first dropped one.
    pub(crate) fn take_missed(&self) -> BTreeMap<ConversationId, Seq> {
        let mut missed = self.missed();
        self.has_missed.store(false, Ordering::SeqCst);
        let missed = std::mem::take(&mut *missed);
        missed.into_iter().map(|(conversation, first)| (conversation, first.previous())).collect()
    }

    fn missed(&self) -> MutexGuard<'_, BTreeMap<ConversationId, Seq>> {
        self.missed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a frame arrived.
    pub(crate) fn note_activity(&self, now: Millis) {
        self.last_activity.store(now.0, Ordering::Relaxed);
    }

    pub(crate) fn last_activity(&self) -> Millis {
        Millis(self.last_activity.load(Ordering::Relaxed))
    }

    /// When its access token expires.
    pub(crate) fn expires_at(&self) -> Millis {
        Millis(self.expires_at.load(Ordering::Relaxed))
    }

    pub(crate) fn set_expires_at(&self, expires_at: Millis) {
        self.expires_at.store(expires_at.0, Ordering::Relaxed);
    }

    /// Marks this silence as pinged. Returns `true` the first time, so that each silence gets one
    /// ping.
    pub(crate) fn mark_pinged(&self) -> bool {
        let silence = self.last_activity().0.max(1);
        self.pinged_for.swap(silence, Ordering::Relaxed) != silence
    }

    /// Asks the session to close. The client is told the first reason.
    pub(crate) fn close(&self, reason: Reason) {
        if self.close_reason.set(reason).is_ok() {
            self.outbox.wake();
        }
    }

    /// Why the session has to close, if it has to.
    pub(crate) fn close_reason(&self) -> Option<Reason> {
        self.close_reason.get().copied()
    }
}
