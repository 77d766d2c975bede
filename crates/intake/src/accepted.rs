//! A message that was accepted.

use std::sync::Arc;

use nexo_chat::ids::{ConversationId, MessageId, Seq};
use nexo_chat::model::{Draft, Fingerprint, Message};

/// A message with what stands for it.
#[derive(Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The name it will have.
    pub id: MessageId,
    /// Stands for what it says: equal for a retry.
    pub fingerprint: Fingerprint,
    /// The message.
    pub draft: Draft,
}

impl Accepted {
    /// Works out what stands for a message.
    pub fn new(draft: Draft) -> Self {
        let id = MessageId::of(&draft.sender, &draft.client_id);
        let fingerprint = draft.content.fingerprint(&draft.conversation);
        Self { id, fingerprint, draft }
    }

    /// As it is shown before it has a place.
    pub fn preview(&self) -> Arc<Message> {
        Arc::new(self.draft.clone().into_message(self.id, Seq::ZERO))
    }
}

/// The shard of a conversation: the same on every node and for ever, as long as there are so many.
pub fn shard(conversation: &ConversationId, shards: usize) -> usize {
    let hash = blake3::hash(conversation.as_str().as_bytes());
    let number = hash.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    usize::try_from(number % shards.max(1) as u64).unwrap_or(0)
}
