//! A message that the log holds and the store does not have yet.

use std::sync::Arc;

use nexo_chat::ids::{ConversationId, MessageId, Seq};
use nexo_chat::model::{Draft, Fingerprint, Message};
use nexo_chat::store::RUN_MAX;

/// The most bytes appended together: an SQL statement must fit into a packet.
const RUN_BYTES: usize = 1 << 20;

/// An accepted message.
#[derive(Debug, PartialEq, Eq)]
pub struct AcceptedMessage {
    pub id: MessageId,
    /// A hash of the content: equal for a retry.
    pub fingerprint: Fingerprint,
    pub draft: Draft,
}

impl AcceptedMessage {
    pub fn new(draft: Draft) -> Self {
        let id = MessageId::of(&draft.sender, &draft.client_id);
        let fingerprint = draft.content.fingerprint(&draft.conversation);
        Self { id, fingerprint, draft }
    }

    /// Its approximate size in memory.
    pub fn bytes(&self) -> usize {
        let content = &self.draft.content;
        let extra = content.extra.iter().map(|(key, value)| key.len() + value.len() + 64);
        512 + content.body.len() + extra.sum::<usize>() + content.mentions.len() * 80
    }

    /// The message as receivers see it before it is saved: without a seq.
    pub fn preview(&self) -> Arc<Message> {
        Arc::new(self.draft.clone().into_message(self.id, Seq::ZERO))
    }
}

/// How many of these messages can be appended together.
pub(crate) fn run_length<'a>(messages: impl Iterator<Item = &'a AcceptedMessage>) -> usize {
    let mut bytes = 0;
    let fits = |message: &&AcceptedMessage| {
        let has_room = bytes < RUN_BYTES;
        bytes += message.bytes();
        has_room
    };
    messages.take(RUN_MAX).take_while(fits).count()
}

/// The shard of a conversation: the same on every node, as long as the number of shards is the
/// same.
pub fn shard_of(conversation: &ConversationId, shards: usize) -> usize {
    let hash = blake3::hash(conversation.as_str().as_bytes());
    let number = hash.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    usize::try_from(number % shards.max(1) as u64).unwrap_or(0)
}
