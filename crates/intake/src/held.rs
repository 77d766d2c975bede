//! What this node accepted and nobody is known to have saved. The log keeps it too; this is for the
//! day the log is away or has lost it: a message is lost only if both are.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nexo_chat::ids::{ConversationId, MessageId, Millis};

use crate::accepted::Accepted;

/// More are not accepted.
const MAX: usize = 200_000;

/// Messages by conversation, each in the order they came.
#[derive(Default)]
pub struct Held(Mutex<State>);

#[derive(Default)]
struct State {
    conversations: HashMap<ConversationId, VecDeque<Holding>>,
    places: HashMap<MessageId, ConversationId>,
}

struct Holding {
    message: Arc<Accepted>,
    looked_at: Millis,
}

/// Whether a message is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// From now on.
    Now,
    /// It was before.
    Already,
    /// There is no room for more.
    NoRoom,
}

impl Held {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a message.
    pub fn add(&self, message: &Arc<Accepted>, now: Millis) -> Holds {
        let mut state = self.state();
        if state.places.contains_key(&message.id) {
            return Holds::Already;
        }
        if state.places.len() >= MAX {
            return Holds::NoRoom;
        }
        let conversation = message.draft.conversation.clone();
        state.places.insert(message.id, conversation.clone());
        let holding = Holding { message: Arc::clone(message), looked_at: now };
        state.conversations.entry(conversation).or_default().push_back(holding);
        Holds::Now
    }

    /// Lets go of a message.
    pub fn remove(&self, id: MessageId) {
        let mut state = self.state();
        let Some(conversation) = state.places.remove(&id) else { return };
        if let Some(holding) = state.conversations.get_mut(&conversation) {
            holding.retain(|it| it.message.id != id);
            if holding.is_empty() {
                state.conversations.remove(&conversation);
            }
        }
    }

    /// Whether it is held.
    pub fn contains(&self, id: MessageId) -> bool {
        self.state().places.contains_key(&id)
    }

    /// What is held of a conversation, in order, up to and with this one.
    pub fn up_to(&self, message: &Accepted) -> Vec<Arc<Accepted>> {
        let state = self.state();
        let holding = state.conversations.get(&message.draft.conversation);
        let mut all = Vec::new();
        for it in holding.into_iter().flatten() {
            all.push(Arc::clone(&it.message));
            if it.message.id == message.id {
                break;
            }
        }
        all
    }

    /// Up to `limit` messages that were not looked for since a while; they count as looked for.
    pub fn due(&self, now: Millis, after_ms: u64, limit: usize) -> Vec<Arc<Accepted>> {
        let mut state = self.state();
        let all = state.conversations.values_mut().flatten();
        let due = all.filter(|it| now.since(it.looked_at) >= after_ms).take(limit);
        due.map(|it| {
            it.looked_at = now;
            Arc::clone(&it.message)
        })
        .collect()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.state().places.is_empty()
    }
}
