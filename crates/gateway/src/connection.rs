//! What others may know of a socket: its outbox, and that it has to end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use nexo_chat::Reason;
use nexo_chat::ids::{ConnectionId, ConversationId, LoginId, Millis, Seq, UserId};
use nexo_chat::model::Caller;

use crate::outbox::Outbox;

/// The shared side of a session.
pub struct Connection {
    /// Which.
    pub id: ConnectionId,
    /// Whose.
    pub user: UserId,
    /// Signed in how.
    pub login: LoginId,
    /// What waits to be written.
    pub outbox: Outbox,
    heard_at: AtomicU64,
    expires_at: AtomicU64,
    pinged: AtomicU64,
    ending: OnceLock<Reason>,
    missed: Mutex<BTreeMap<ConversationId, Seq>>,
}

/// Conversations with dropped pushes that are remembered; with more, the socket ends and starts
/// anew.
const MISSED_MAX: usize = 1000;

impl Connection {
    /// A socket that was just authenticated.
    pub fn new(id: ConnectionId, caller: &Caller, outbox: Outbox, now: Millis) -> Self {
        Self {
            id,
            user: caller.user.clone(),
            login: caller.login,
            outbox,
            heard_at: AtomicU64::new(now.0),
            expires_at: AtomicU64::new(caller.expires_at.0),
            pinged: AtomicU64::new(0),
            ending: OnceLock::new(),
            missed: Mutex::default(),
        }
    }

    /// Notes that the push of a message, or of something that happened to it, was dropped.
    pub fn miss(&self, conversation: &ConversationId, seq: Seq) {
        let mut missed = self.missed();
        if missed.len() >= MISSED_MAX && !missed.contains_key(conversation) {
            drop(missed);
            return self.end(Reason::SlowConsumer);
        }
        let first = missed.entry(conversation.clone()).or_insert(seq);
        *first = seq.min(*first);
        drop(missed);
        self.outbox.wake(); // the session may have drained everything since
    }

    /// Whether pushes were dropped and there is room again.
    pub fn has_recovered(&self) -> bool {
        !self.outbox.is_full() && !self.missed().is_empty()
    }

    /// Where to start again, per conversation, for what was dropped; forgets it.
    pub fn take_missed(&self) -> BTreeMap<ConversationId, Seq> {
        let missed = std::mem::take(&mut *self.missed());
        missed.into_iter().map(|(conversation, first)| (conversation, first.previous())).collect()
    }

    fn missed(&self) -> MutexGuard<'_, BTreeMap<ConversationId, Seq>> {
        self.missed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that something was heard.
    pub fn heard(&self, now: Millis) {
        self.heard_at.store(now.0, Ordering::Relaxed);
    }

    /// When something was last heard.
    pub fn heard_at(&self) -> Millis {
        Millis(self.heard_at.load(Ordering::Relaxed))
    }

    /// When the token behind it dies.
    pub fn expires_at(&self) -> Millis {
        Millis(self.expires_at.load(Ordering::Relaxed))
    }

    /// Carries on with a newer token.
    pub fn renew(&self, expires_at: Millis) {
        self.expires_at.store(expires_at.0, Ordering::Relaxed);
    }

    /// Whether to ask if anybody is there: once per silence.
    pub fn should_ping(&self) -> bool {
        let silence = self.heard_at().0.max(1);
        self.pinged.swap(silence, Ordering::Relaxed) != silence
    }

    /// Asks the session to end. The first reason is the one that is told.
    pub fn end(&self, reason: Reason) {
        if self.ending.set(reason).is_ok() {
            self.outbox.wake();
        }
    }

    /// Why the session has to end, if it has to.
    pub fn ending(&self) -> Option<Reason> {
        self.ending.get().copied()
    }
}
