//! What the engine's tasks share.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use nexo_chat::ids::{ConversationId, MessageId};
use nexo_chat::model::Kept;
use nexo_chat::store::{Committed, StoreError};

use super::act::Names;
use super::pool::Pool;
use crate::meters::Meters;

/// Conversations that are remembered to have a row.
const MADE_MAX: usize = 200_000;
/// Messages that are remembered to be stored.
const RECENT_MAX: usize = 200_000;

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
    /// Messages that were stored through this node a moment ago.
    pub(crate) recent: Recent,
}

/// Names of messages, the newest of them. What is not among them may be stored all the same.
#[derive(Default)]
pub(crate) struct Recent(Mutex<[HashSet<MessageId>; 2]>);

impl Recent {
    pub(crate) fn has_any(&self, mut ids: impl Iterator<Item = MessageId>) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.any(|id| known.iter().any(|some| some.contains(&id)))
    }

    /// Remembers these; the older half of all goes when there are too many.
    pub(crate) fn note(&self, ids: impl Iterator<Item = MessageId>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known[0].extend(ids);
        if known[0].len() > RECENT_MAX / 2 {
            known[1] = std::mem::take(&mut known[0]);
        }
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
            recent: Recent::default(),
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

    /// Those of these conversations that may have no row yet.
    pub(crate) fn unmade(&self, all: &[ConversationId]) -> Vec<ConversationId> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|conversation| !made.contains(*conversation)).cloned().collect()
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
