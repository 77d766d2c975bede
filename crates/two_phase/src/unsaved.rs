//! The messages that this node accepted and has not seen saved. The log has them too; this copy is
//! for when the log is unavailable or lost them. A message is lost only if both lose it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nexo_chat::ids::{ConversationId, MessageId, Millis};

use crate::accepted::AcceptedMessage;

/// The most messages and bytes kept here; beyond that, messages are refused.
const MESSAGES_MAX: usize = 200_000;
const BYTES_MAX: usize = 256 << 20;

/// Messages by conversation, each in the order they were accepted.
#[derive(Default)]
pub struct UnsavedMessages(Mutex<UnsavedState>);

#[derive(Default)]
struct UnsavedState {
    conversations: HashMap<ConversationId, VecDeque<UnsavedMessage>>,
    conversation_of: HashMap<MessageId, ConversationId>,
    bytes: usize,
}

struct UnsavedMessage {
    message: Arc<AcceptedMessage>,
    checked_at: Millis,
    /// Whether its sender was told that it is accepted. Until then the sender may get another
    /// answer, and the message is not rescued.
    is_accepted: bool,
    /// How often saving it failed while other messages were saved.
    tries: u32,
    /// How many messages were saved in all when saving it last failed.
    failed_at: Option<u64>,
}

impl UnsavedMessage {
    fn new(message: &Arc<AcceptedMessage>, now: Millis) -> Self {
        let message = Arc::clone(message);
        Self { message, checked_at: now, is_accepted: false, tries: 0, failed_at: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddOutcome {
    /// After this message of its conversation, if another one is unsaved.
    Added(Option<MessageId>),
    Already,
    Full,
}

impl UnsavedMessages {
    fn lock(&self) -> MutexGuard<'_, UnsavedState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, message: &Arc<AcceptedMessage>, now: Millis) -> AddOutcome {
        let mut state = self.lock();
        if state.conversation_of.contains_key(&message.id) {
            return AddOutcome::Already;
        }
        if state.conversation_of.len() >= MESSAGES_MAX || state.bytes >= BYTES_MAX {
            return AddOutcome::Full;
        }
        state.bytes += message.bytes();
        let conversation = message.draft.conversation.clone();
        state.conversation_of.insert(message.id, conversation.clone());
        let messages = state.conversations.entry(conversation).or_default();
        let before = messages.back().map(|last| last.message.id);
        messages.push_back(UnsavedMessage::new(message, now));
        AddOutcome::Added(before)
    }

    pub fn remove(&self, id: MessageId) {
        let mut state = self.lock();
        let Some(conversation) = state.conversation_of.remove(&id) else { return };
        let Some(messages) = state.conversations.get_mut(&conversation) else { return };
        // Almost always the first.
        let at = messages.iter().position(|unsaved| unsaved.message.id == id);
        let removed = at.and_then(|at| messages.remove(at));
        if messages.is_empty() {
            state.conversations.remove(&conversation);
        }
        state.bytes -= removed.map_or(0, |unsaved| unsaved.message.bytes());
    }

    /// The log accepted a message. It becomes due at once, or after the usual time.
    pub fn mark_accepted(&self, id: MessageId, at_once: bool) {
        if let Some(unsaved) = self.lock().find(id) {
            unsaved.is_accepted = true;
            if at_once {
                unsaved.checked_at = Millis(0);
            }
        }
    }

    /// Saving a message failed when `saved` messages had been saved in all. Returns how often it
    /// failed while others were saved in between.
    pub fn record_failure(&self, id: MessageId, saved: u64) -> u32 {
        let mut state = self.lock();
        let Some(unsaved) = state.find(id) else { return 0 };
        unsaved.tries += u32::from(unsaved.failed_at.is_some_and(|then| saved > then));
        unsaved.failed_at = Some(saved);
        unsaved.tries
    }

    pub fn contains(&self, id: MessageId) -> bool {
        self.lock().conversation_of.contains_key(&id)
    }

    /// The messages of a conversation up to and with this one, in order; none if this one is not
    /// here any more.
    pub fn up_to(&self, message: &AcceptedMessage) -> Vec<Arc<AcceptedMessage>> {
        let state = self.lock();
        let Some(messages) = state.conversations.get(&message.draft.conversation) else {
            return Vec::new();
        };
        let at = messages.iter().position(|unsaved| unsaved.message.id == message.id);
        let count = at.map_or(0, |at| at + 1);
        messages.iter().take(count).map(|unsaved| Arc::clone(&unsaved.message)).collect()
    }

    /// Returns up to `limit` accepted messages that were not checked for `after_ms`, and marks them
    /// as checked.
    pub fn take_due(&self, now: Millis, after_ms: u64, limit: usize) -> Vec<Arc<AcceptedMessage>> {
        let mut state = self.lock();
        let all = state.conversations.values_mut().flatten();
        let is_due = |unsaved: &&mut UnsavedMessage| {
            unsaved.is_accepted && now.since(unsaved.checked_at) >= after_ms
        };
        let due = all.filter(is_due).take(limit);
        due.map(|unsaved| {
            unsaved.checked_at = now;
            Arc::clone(&unsaved.message)
        })
        .collect()
    }
}

impl UnsavedState {
    fn find(&mut self, id: MessageId) -> Option<&mut UnsavedMessage> {
        let conversation = self.conversation_of.get(&id)?;
        let messages = self.conversations.get_mut(conversation)?;
        messages.iter_mut().find(|unsaved| unsaved.message.id == id)
    }
}

#[cfg(test)]
mod tests {
    use nexo_chat::ids::{ClientMsgId, UserId};
    use nexo_chat::model::{Content, Draft};

    use super::*;

    fn message(client_id: &str) -> Arc<AcceptedMessage> {
        let (ann, bob) = (UserId::parse("ann").unwrap(), UserId::parse("bob").unwrap());
        Arc::new(AcceptedMessage::new(Draft {
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
        let (unsaved, [a, b, c]) = (UnsavedMessages::default(), ["a", "b", "c"].map(message));
        assert_eq!(unsaved.add(&a, Millis(10)), AddOutcome::Added(None));
        assert_eq!(unsaved.add(&b, Millis(10)), AddOutcome::Added(Some(a.id)));
        assert_eq!(unsaved.add(&c, Millis(10)), AddOutcome::Added(Some(b.id)));
        assert_eq!(unsaved.add(&b, Millis(10)), AddOutcome::Already);
        unsaved.mark_accepted(a.id, false);
        unsaved.mark_accepted(c.id, true);
        let due =
            |now| unsaved.take_due(Millis(now), 5, 9).iter().map(|it| it.id).collect::<Vec<_>>();
        assert_eq!(due(11), [c.id], "at once");
        assert_eq!(due(15), [a.id]);
        assert!(due(15).is_empty(), "it counts as checked");
        assert_eq!(unsaved.up_to(&b), [Arc::clone(&a), Arc::clone(&b)]);
        unsaved.remove(a.id);
        assert_eq!(unsaved.up_to(&c), [b, c]);
    }

    /// A store that saves nothing is no reason to give up any message.
    #[test]
    fn a_failure_counts_if_others_were_saved_in_between() {
        let (unsaved, it) = (UnsavedMessages::default(), message("a"));
        unsaved.add(&it, Millis(1));
        let tries: Vec<u32> =
            [7, 7, 7, 8, 8, 10].map(|saved| unsaved.record_failure(it.id, saved)).into();
        assert_eq!(tries, [0, 0, 0, 1, 1, 2]);
        unsaved.remove(it.id);
        assert_eq!(unsaved.record_failure(it.id, 11), 0, "it was removed");
    }
}
