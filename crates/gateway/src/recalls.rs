//! Messages that were recalled a moment ago: what a session read before and has not written yet
//! goes out without its text.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use nexo_chat::ids::MessageId;
use nexo_chat::model::{Change, ChangeKind, Message, Recall};

/// More than are recalled while a slow reader takes a page.
const REMEMBERED: usize = 10_000;

/// The latest recalls on this node.
#[derive(Default)]
pub struct Recalls(Mutex<State>);

#[derive(Default)]
struct State {
    known: HashMap<MessageId, Recall>,
    order: VecDeque<MessageId>,
}

impl Recalls {
    /// Remembers a recall, if it is one.
    pub fn note(&self, change: &Change) {
        let ChangeKind::Recalled { message, .. } = change.kind else { return };
        let recall = Recall { by: change.by.clone(), at: change.at };
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.known.insert(message, recall).is_none() {
            state.order.push_back(message);
        }
        if state.order.len() > REMEMBERED
            && let Some(oldest) = state.order.pop_front()
        {
            state.known.remove(&oldest);
        }
    }

    /// The message without its text, if it was recalled before one heard of it.
    pub fn without_text(&self, message: &Message) -> Option<Message> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recall = state.known.get(&message.id).filter(|_| message.recalled.is_none())?;
        Some(message.recalled(recall.clone()))
    }

    /// Writes a message as it is now. No recall is noted meanwhile, so none is told before a text
    /// that is written after it.
    pub fn write(&self, message: &Message, write: impl FnOnce(&Message)) {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match state.known.get(&message.id) {
            Some(recall) if message.recalled.is_none() => write(&message.recalled(recall.clone())),
            _ => write(message),
        }
    }
}
