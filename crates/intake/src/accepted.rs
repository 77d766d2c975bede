//! A message that was accepted.

use std::sync::Arc;

use nexo_chat::ids::{ConversationId, MessageId, Seq};
use nexo_chat::model::{Draft, Fingerprint, Message};
use nexo_chat::store::RUN_MAX;

/// Bytes that are appended together: a statement has to fit into a packet.
const RUN_BYTES: usize = 1 << 20;

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

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let content = &self.draft.content;
        let extra = content.extra.iter().map(|(key, value)| key.len() + value.len() + 64);
        512 + content.body.len() + extra.sum::<usize>() + content.mentions.len() * 80
    }

    /// As it is shown before it has a place.
    pub fn preview(&self) -> Arc<Message> {
        Arc::new(self.draft.clone().into_message(self.id, Seq::ZERO))
    }
}

/// How many of these can be appended together.
pub(crate) fn run_length<'a>(messages: impl Iterator<Item = &'a Accepted>) -> usize {
    let mut bytes = 0;
    let fits = |message: &&Accepted| {
        let has_room = bytes < RUN_BYTES;
        bytes += message.bytes();
        has_room
    };
    messages.take(RUN_MAX).take_while(fits).count()
}

/// The shard of a conversation: the same on every node and for ever, as long as there are so many.
pub fn shard(conversation: &ConversationId, shards: usize) -> usize {
    let hash = blake3::hash(conversation.as_str().as_bytes());
    let number = hash.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    usize::try_from(number % shards.max(1) as u64).unwrap_or(0)
}
