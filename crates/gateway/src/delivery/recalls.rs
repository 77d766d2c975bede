//! The latest recalls. A message that was read from the store or the bus before its recall was known
//! is sent without its text.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nexo_chat::ids::MessageId;
use nexo_chat::model::{Change, ChangeKind, Message, Recall};

/// More than are recalled while a slow client takes one page.
const RECALLS_MAX: usize = 10_000;

#[derive(Default)]
pub(crate) struct Recalls(Mutex<RecentRecalls>);

#[derive(Default)]
struct RecentRecalls {
    by_message: HashMap<MessageId, Recall>,
    /// Oldest first.
    order: VecDeque<MessageId>,
}

impl Recalls {
    fn recent(&self) -> MutexGuard<'_, RecentRecalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the change, if it is a recall.
    pub(crate) fn note(&self, change: &Change) {
        let ChangeKind::Recalled { message, .. } = change.kind else { return };
        let recall = Recall { by: change.by.clone(), at: change.at };
        let mut recent = self.recent();
        if recent.by_message.insert(message, recall).is_none() {
            recent.order.push_back(message);
        }
        if recent.order.len() > RECALLS_MAX
            && let Some(oldest) = recent.order.pop_front()
        {
            recent.by_message.remove(&oldest);
        }
    }

    /// The message without its text, if it was recalled and still has its text.
    pub(crate) fn without_text(&self, message: &Message) -> Option<Message> {
        let recent = self.recent();
        let recall = recent.by_message.get(&message.id).filter(|_| message.recalled.is_none())?;
        Some(message.recalled(recall.clone()))
    }

    /// Calls `write` with the message, without its text if it was recalled. Locked meanwhile, so
    /// that no recall can be pushed before a text that `write` queues.
    pub(crate) fn write_current(&self, message: &Message, write: impl FnOnce(&Message)) {
        let recent = self.recent();
        match recent.by_message.get(&message.id) {
            Some(recall) if message.recalled.is_none() => write(&message.recalled(recall.clone())),
            _ => write(message),
        }
    }
}
