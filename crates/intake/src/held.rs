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
    /// Whether its sender was told so: until then another answer may come, and it is not looked for.
    is_accepted: bool,
    /// How often it could not be saved while others were.
    tries: u32,
    /// How many others were saved when it last could not be.
    failed_at: Option<u64>,
}

impl Holding {
    fn new(message: &Arc<Accepted>, now: Millis) -> Self {
        let message = Arc::clone(message);
        Self { message, looked_at: now, is_accepted: false, tries: 0, failed_at: None }
    }
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
        let holdings = state.conversations.entry(conversation).or_default();
        let before = holdings.back().map(|holding| holding.message.id);
        holdings.push_back(Holding::new(message, now));
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

    /// A message is accepted; it is looked for at once, or after a while.
    pub fn accept(&self, id: MessageId, at_once: bool) {
        if let Some(it) = self.state().find(id) {
            it.is_accepted = true;
            if at_once {
                it.looked_at = Millis(0);
            }
        }
    }

    /// A message could not be saved, and so many others were by now. Tells how often that was so
    /// while others were saved in between.
    pub fn failed(&self, id: MessageId, saved: u64) -> u32 {
        let mut state = self.state();
        let Some(it) = state.find(id) else { return 0 };
        it.tries += u32::from(it.failed_at.is_some_and(|then| saved > then));
        it.failed_at = Some(saved);
        it.tries
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

    /// Up to `limit` accepted messages that were not looked for since a while; they count as looked
    /// for.
    pub fn due(&self, now: Millis, after_ms: u64, limit: usize) -> Vec<Arc<Accepted>> {
        let mut state = self.state();
        let all = state.conversations.values_mut().flatten();
        let is_due = |it: &&mut Holding| it.is_accepted && now.since(it.looked_at) >= after_ms;
        let due = all.filter(is_due).take(limit);
        due.map(|it| {
            it.looked_at = now;
            Arc::clone(&it.message)
        })
        .collect()
    }
}

impl State {
    fn find(&mut self, id: MessageId) -> Option<&mut Holding> {
        let conversation = self.places.get(&id)?;
        let holding = self.conversations.get_mut(conversation)?;
        holding.iter_mut().find(|it| it.message.id == id)
    }
}

#[cfg(test)]
mod tests {
    use nexo_chat::ids::{ClientMsgId, UserId};
    use nexo_chat::model::{Content, Draft};

    use super::*;

    fn message(client_id: &str) -> Arc<Accepted> {
        let (ann, bob) = (UserId::parse("ann").unwrap(), UserId::parse("bob").unwrap());
        Arc::new(Accepted::new(Draft {
            conversation: ConversationId::private(&ann, &bob),
            sender: ann,
            client_id: ClientMsgId::parse(client_id).unwrap(),
            content: Content::text("words"),
            cleaned: None,
            sent_at: Millis(1),
            origin: None,
            marks_read: true,
        }))
    }

    #[test]
    fn only_what_was_accepted_is_looked_for() {
        let (held, [a, b, c]) = (Held::default(), ["a", "b", "c"].map(message));
        assert_eq!(held.add(&a, Millis(10)), Holds::Now(None));
        assert_eq!(held.add(&b, Millis(10)), Holds::Now(Some(a.id)));
        assert_eq!(held.add(&c, Millis(10)), Holds::Now(Some(b.id)));
        assert_eq!(held.add(&b, Millis(10)), Holds::Already);
        held.accept(a.id, false);
        held.accept(c.id, true);
        let due = |now| held.due(Millis(now), 5, 9).iter().map(|it| it.id).collect::<Vec<_>>();
        assert_eq!(due(11), [c.id], "at once");
        assert_eq!(due(15), [a.id]);
        assert!(due(15).is_empty(), "it counts as looked for");
        assert_eq!(held.up_to(&b), [Arc::clone(&a), Arc::clone(&b)]);
        held.remove(a.id);
        assert_eq!(held.up_to(&c), [b, c]);
    }

    /// A store that saves nothing gives no reason to give anything up.
    #[test]
    fn a_failure_counts_if_others_were_saved_in_between() {
        let (held, it) = (Held::default(), message("a"));
        held.add(&it, Millis(1));
        let tries: Vec<u32> = [7, 7, 7, 8, 8, 10].map(|saved| held.failed(it.id, saved)).into();
        assert_eq!(tries, [0, 0, 0, 1, 1, 2]);
        held.remove(it.id);
        assert_eq!(held.failed(it.id, 11), 0, "it is not held any more");
    }
}
