//! The state that the engine's tasks share.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use nexo_chat::event::Event;
use nexo_chat::ids::{ConversationId, MessageId};
use nexo_chat::model::Message;
use nexo_chat::store::{CommitListener, StoreError};

use super::delivered::DeliveredCursors;
use super::known_users::KnownUsers;
use super::pool::Pool;
use super::transaction::TransactionIds;
use crate::meters::Meters;

/// Conversations that are known to have a row.
const CONVERSATIONS_MAX: usize = 200_000;
/// Ids of messages that are known to be stored.
const RECENT_IDS_MAX: usize = 200_000;
/// Messages that are cached with their content.
const RECENT_MESSAGES_MAX: usize = 20_000;
/// A larger message is not cached.
const RECENT_MESSAGE_BYTES_MAX: usize = 8 << 10;

pub(crate) struct Core {
    pub(crate) pool: Arc<Pool>,
    pub(crate) transaction_ids: TransactionIds,
    pub(crate) patience: Duration,
    pub(crate) closed: AtomicBool,
    pub(crate) meters: Meters,
    listener: OnceLock<Arc<dyn CommitListener>>,
    /// Held while the listener is called, so that it is called from one thread at a time.
    announcing: Mutex<()>,
    known_conversations: Mutex<HashSet<ConversationId>>,
    /// Messages that were stored through this node recently. A message that is not here may be
    /// stored all the same.
    pub(crate) recent_ids: RecentCache<MessageId, ()>,
    /// Messages that this or another node stored recently.
    pub(crate) recent_messages: RecentCache<MessageId, Arc<Message>>,
    pub(crate) known_users: KnownUsers,
    pub(crate) delivered: DeliveredCursors,
}

/// A bounded cache. When it is full, the older half is dropped.
pub(crate) struct RecentCache<K, V> {
    halves: Mutex<[HashMap<K, V>; 2]>,
    max: usize,
}

impl<K: Eq + Hash, V: Clone> RecentCache<K, V> {
    pub(crate) fn new(max: usize) -> Self {
        Self { halves: Mutex::new([HashMap::new(), HashMap::new()]), max }
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        halves.iter().find_map(|half| half.get(key).cloned())
    }

    pub(crate) fn insert(&self, key: K, value: V) {
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        if halves[0].len() >= self.max / 2 {
            halves[1] = std::mem::take(&mut halves[0]);
        }
        halves[0].insert(key, value);
    }

    pub(crate) fn remove(&self, key: &K) {
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        for half in halves.iter_mut() {
            half.remove(key);
        }
    }

    /// Changes a value in place, if it is there.
    pub(crate) fn update<R>(&self, key: &K, change: impl FnOnce(&mut V) -> R) -> Option<R> {
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        halves.iter_mut().find_map(|half| half.get_mut(key)).map(change)
    }
}

impl Core {
    pub(crate) fn new(pool: Arc<Pool>, patience: Duration) -> Self {
        Self {
            pool,
            transaction_ids: TransactionIds::new(),
            patience,
            closed: AtomicBool::new(false),
            meters: Meters::new(),
            listener: OnceLock::new(),
            announcing: Mutex::default(),
            known_conversations: Mutex::default(),
            recent_ids: RecentCache::new(RECENT_IDS_MAX),
            recent_messages: RecentCache::new(RECENT_MESSAGES_MAX),
            known_users: KnownUsers::new(),
            delivered: DeliveredCursors::new(),
        }
    }

    pub(crate) fn set_listener(&self, listener: Arc<dyn CommitListener>) {
        if self.listener.set(listener).is_err() {
            tracing::warn!("a second listener for commits was ignored");
        }
    }

    /// Passes durable events to the listener.
    pub(crate) fn announce(&self, events: &[Event]) {
        if let (Some(listener), false) = (self.listener.get(), events.is_empty()) {
            let _one = self.announcing.lock().unwrap_or_else(PoisonError::into_inner);
            listener.on_committed(events);
        }
    }

    /// Caches a message unless it is large.
    pub(crate) fn remember_message(&self, message: &Arc<Message>) {
        self.delivered.note_stored(&message.conversation, message.seq);
        if message.weight() <= RECENT_MESSAGE_BYTES_MAX {
            self.recent_messages.insert(message.id, Arc::clone(message));
        }
    }

    /// Returns those of the conversations that may have no row yet.
    pub(crate) fn unknown_conversations(&self, all: &[ConversationId]) -> Vec<ConversationId> {
        let made = self.known_conversations.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|conversation| !made.contains(*conversation)).cloned().collect()
    }

    /// Removes conversations whose row was deleted.
    pub(crate) fn forget_conversations(&self, these: &[ConversationId]) {
        let mut made = self.known_conversations.lock().unwrap_or_else(PoisonError::into_inner);
        made.retain(|conversation| !these.contains(conversation));
    }

    /// Adds conversations that have a row.
    pub(crate) fn remember_conversations(&self, these: Vec<ConversationId>) {
        let mut made = self.known_conversations.lock().unwrap_or_else(PoisonError::into_inner);
        if made.len() > CONVERSATIONS_MAX {
            made.clear();
        }
        made.extend(these);
    }
}

pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}
