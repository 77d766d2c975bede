//! What this node accepted and nobody is known to have saved. The log keeps it too; this is for the
//! day the log is away or has lost it: a message is lost only if both are.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nexo_chat::ids::{ConversationId, MessageId, Millis};

use crate::accepted::Accepted;

/// More are not accepted, nor more bytes of them.
const MAX: usize = 200_000;
const BYTES_MAX: usize = 256 << 20;

/// Messages by conversation, each in the order they came.
#[derive(Default)]
pub struct Held(Mutex<State>);

#[derive(Default)]
struct State {
    conversations: HashMap<ConversationId, VecDeque<Holding>>,
    places: HashMap<MessageId, ConversationId>,
    bytes: usize,
}

struct Holding {
    message: Arc<Accepted>,
    looked_at: Millis,
}

/// Whether a message is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// From now on, after this one of its conversation.
    Now(Option<MessageId>),
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
        if state.places.len() >= MAX || state.bytes >= BYTES_MAX {
            return Holds::NoRoom;
        }
        state.bytes += message.bytes();
        let conversation = message.draft.conversation.clone();
        state.places.insert(message.id, conversation.clone());
        let holding = Holding { message: Arc::clone(message), looked_at: now };
        let holdings = state.conversations.entry(conversation).or_default();
        let before = holdings.back().map(|holding| holding.message.id);
        holdings.push_back(holding);
        Holds::Now(before)
    }

    /// Lets go of a message.
    pub fn remove(&self, id: MessageId) {
        let mut state = self.state();
        let Some(conversation) = state.places.remove(&id) else { return };
        let Some(holding) = state.conversations.get_mut(&conversation) else { return };
        // Almost always the first.
        let at = holding.iter().position(|it| it.message.id == id);
        let removed = at.and_then(|at| holding.remove(at));
        if holding.is_empty() {
            state.conversations.remove(&conversation);
        }
        state.bytes -= removed.map_or(0, |it| it.message.bytes());
    }

    /// Lets a message be looked for at once.
    pub fn hurry(&self, id: MessageId) {
        let mut state = self.state();
        let Some(conversation) = state.places.get(&id).cloned() else { return };
        let holding = state.conversations.get_mut(&conversation).into_iter().flatten();
        for it in holding.filter(|it| it.message.id == id) {
            it.looked_at = Millis(0);
        }
    }

    /// Whether it is held.
    pub fn contains(&self, id: MessageId) -> bool {
        self.state().places.contains_key(&id)
    }

    /// What is held of a conversation, in order, up to and with this one; nothing if this one is not
    /// held any more.
    pub fn up_to(&self, message: &Accepted) -> Vec<Arc<Accepted>> {
        let state = self.state();
        let Some(holding) = state.conversations.get(&message.draft.conversation) else {
            return Vec::new();
        };
        let at = holding.iter().position(|it| it.message.id == message.id);
        let upto = at.map_or(0, |at| at + 1);
        holding.iter().take(upto).map(|it| Arc::clone(&it.message)).collect()
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
}
