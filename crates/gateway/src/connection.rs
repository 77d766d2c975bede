//! What others may know of a socket: its outbox, and that it has to end.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use nexo_chat::Reason;
use nexo_chat::ids::{ConnectionId, ConversationId, LoginId, Millis, Seq, UserId};
use nexo_chat::model::Caller;
use nexo_wire::dialect::Dialect;

use crate::outbox::Outbox;

/// The shared side of a session.
pub struct Connection {
    /// Which.
    pub id: ConnectionId,
    /// Whose.
    pub user: UserId,
    /// Signed in how.
    pub login: LoginId,
    /// How it speaks.
    pub dialect: Dialect,
    /// What waits to be written.
    pub outbox: Outbox,
    heard_at: AtomicU64,
    expires_at: AtomicU64,
    pinged: AtomicU64,
    ending: OnceLock<Reason>,
    missed: Mutex<BTreeMap<ConversationId, Seq>>,
    has_missed: AtomicBool,
    /// The groups it hears, to be taken out of when it goes.
    heard: Mutex<Vec<ConversationId>>,
    /// What its owner does not want to hear.
    blocked: Mutex<HashSet<ConversationId>>,
    has_blocked: AtomicBool,
    /// How often its owner's places or choices changed since it is here.
    unsettled: AtomicU64,
}

/// Conversations with dropped pushes that are remembered; with more, the socket ends and starts
/// anew.
const MISSED_MAX: usize = 1000;

impl Connection {
    /// A socket that was just authenticated.
    pub fn new(
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
            heard_at: AtomicU64::new(now.0),
            expires_at: AtomicU64::new(caller.expires_at.0),
            pinged: AtomicU64::new(0),
            ending: OnceLock::new(),
            missed: Mutex::default(),
            has_missed: AtomicBool::new(false),
            heard: Mutex::default(),
            blocked: Mutex::default(),
            has_blocked: AtomicBool::new(false),
            unsettled: AtomicU64::new(0),
        }
    }

    /// Notes that it hears a group.
    pub fn hears(&self, conversation: ConversationId) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).push(conversation);
    }

    /// Notes that it does not hear a group any more.
    pub fn hears_no_more(&self, conversation: &ConversationId) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.retain(|heard| heard != conversation);
    }

    /// The groups it hears.
    pub fn heard_groups(&self) -> Vec<ConversationId> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The groups it hears; forgets them.
    pub fn take_heard(&self) -> Vec<ConversationId> {
        std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Its owner's places or choices changed: whoever is reading them looks again.
    pub fn unsettle(&self) {
        self.unsettled.fetch_add(1, Ordering::SeqCst);
    }

    /// How often they changed.
    pub fn unsettled(&self) -> u64 {
        self.unsettled.load(Ordering::SeqCst)
    }

    /// Its owner does not want to hear of these, and of no others.
    pub fn block_only(&self, conversations: HashSet<ConversationId>) {
        let mut blocked = self.blocked();
        *blocked = conversations;
        self.has_blocked.store(!blocked.is_empty(), Ordering::SeqCst);
    }

    /// Its owner does not want to hear of this one, or does again.
    pub fn block(&self, conversation: &ConversationId, on: bool) {
        let mut blocked = self.blocked();
        if on {
            blocked.insert(conversation.clone());
        } else {
            blocked.remove(conversation);
        }
        self.has_blocked.store(!blocked.is_empty(), Ordering::SeqCst);
    }

    /// Whether there is anything its owner does not want to hear of.
    pub fn blocks_anything(&self) -> bool {
        self.has_blocked.load(Ordering::SeqCst)
    }

    /// Whether its owner does not want to hear of this one.
    pub fn blocks(&self, conversation: &ConversationId) -> bool {
        self.blocks_anything() && self.blocked().contains(conversation)
    }

    fn blocked(&self) -> MutexGuard<'_, HashSet<ConversationId>> {
        self.blocked.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.has_missed.store(true, Ordering::SeqCst);
        drop(missed);
        self.outbox.wake(); // the session may have drained everything since
    }

    /// Whether pushes were dropped and there is room again.
    pub fn has_recovered(&self) -> bool {
        self.has_missed.load(Ordering::SeqCst) && !self.outbox.is_full()
    }

    /// Where to start again, per conversation, for what was dropped; forgets it.
    pub fn take_missed(&self) -> BTreeMap<ConversationId, Seq> {
        let mut missed = self.missed();
        self.has_missed.store(false, Ordering::SeqCst);
        let missed = std::mem::take(&mut *missed);
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
