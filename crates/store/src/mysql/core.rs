//! What the engine's tasks share.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use nexo_chat::ids::{ConversationId, MessageId, UserId};
use nexo_chat::model::{Kept, Message};
use nexo_chat::store::{Committed, StoreError};

use super::act::Names;
use super::pool::Pool;
use crate::meters::Meters;

/// Conversations that are remembered to have a row.
const MADE_MAX: usize = 200_000;
/// Messages that are remembered to be stored.
const RECENT_MAX: usize = 200_000;
/// Messages that are kept at hand with what they say.
const HEARD_MAX: usize = 20_000;
/// A longer text is not kept at hand.
const HEARD_BYTES_MAX: usize = 8 << 10;
const PEOPLE_MAX: usize = 400_000;

pub(crate) struct Core {
    pub(crate) pool: Arc<Pool>,
    pub(crate) names: Names,
    pub(crate) patience: Duration,
    pub(crate) closed: AtomicBool,
    pub(crate) meters: Meters,
    listener: OnceLock<Arc<dyn Committed>>,
    /// Held while somebody is told, so that one thing is told at a time.
    announcing: Mutex<()>,
    made: Mutex<HashSet<ConversationId>>,
    /// Messages that were stored through this node a moment ago. What is not among them may be stored
    /// all the same.
    pub(crate) recent: Remembered<MessageId, ()>,
    /// Messages that were stored or heard of a moment ago.
    pub(crate) heard: Remembered<MessageId, Arc<Message>>,
    /// People who have an account, for good.
    pub(crate) people: Remembered<UserId, ()>,
}

/// Things that never change, the newest of them: half of them goes when there are too many.
pub(crate) struct Remembered<K, V> {
    halves: Mutex<[HashMap<K, V>; 2]>,
    max: usize,
}

impl<K: Eq + Hash, V: Clone> Remembered<K, V> {
    fn new(max: usize) -> Self {
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
}

impl Core {
    pub(crate) fn new(pool: Arc<Pool>, patience: Duration) -> Self {
        Self {
            pool,
            names: Names::new(),
            patience,
            closed: AtomicBool::new(false),
            meters: Meters::new(),
            listener: OnceLock::new(),
            announcing: Mutex::default(),
            made: Mutex::default(),
            recent: Remembered::new(RECENT_MAX),
            heard: Remembered::new(HEARD_MAX),
            people: Remembered::new(PEOPLE_MAX),
        }
    }

    pub(crate) fn listen(&self, listener: Arc<dyn Committed>) {
        if self.listener.set(listener).is_err() {
            tracing::warn!("a second listener for commits was ignored");
        }
    }

    /// Tells of what became durable.
    pub(crate) fn announce(&self, kept: &[Kept]) {
        if let (Some(listener), false) = (self.listener.get(), kept.is_empty()) {
            let _one = self.announcing.lock().unwrap_or_else(PoisonError::into_inner);
            listener.committed(kept);
        }
    }

    /// Keeps a message at hand.
    pub(crate) fn hear(&self, message: &Arc<Message>) {
        if message.weight() <= HEARD_BYTES_MAX {
            self.heard.insert(message.id, Arc::clone(message));
        }
    }

    /// Those of these conversations that may have no row yet.
    pub(crate) fn unmade(&self, all: &[ConversationId]) -> Vec<ConversationId> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|conversation| !made.contains(*conversation)).cloned().collect()
    }

    /// These have no row after all.
    pub(crate) fn forget_made(&self, these: &[ConversationId]) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.retain(|conversation| !these.contains(conversation));
    }

    /// These have a row; rows are never deleted.
    pub(crate) fn are_made(&self, these: Vec<ConversationId>) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.len() > MADE_MAX {
            made.clear();
        }
        made.extend(these);
    }
}

pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}
