//! The newest places of each conversation. Not stored: found by reverse seeks, then kept.

use nexo_chat::ids::{ConversationId, Millis, Seq};

use super::engine::Engine;
use super::keys::{self, Space};
use super::poison::Fault;
use super::record::{self, MessageRecord};
use super::shards::Shards;

/// The newest message and change of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// Its place; zero if there is none.
    pub(crate) seq: Seq,
    /// When it came.
    pub(crate) sent_at: Millis,
    /// The place of the newest change; zero if there is none.
    pub(crate) change_seq: Seq,
}

/// The heads in memory.
pub(crate) struct Heads(Shards<ConversationId, Head>);

impl Heads {
    pub(crate) fn new(max: usize) -> Self {
        Self(Shards::new(max))
    }

    /// The head of a conversation. Nothing is kept for conversations that do not exist, so that
    /// asking for many costs no memory.
    pub(crate) fn get(
        &self,
        engine: &Engine,
        conversation: &ConversationId,
    ) -> Result<Head, Fault> {
        let mut part = self.0.lock(conversation);
        if let Some(head) = part.get(conversation) {
            return Ok(*head);
        }
        let Some(head) = load(engine, conversation)? else { return Ok(Head::default()) };
        self.0.insert(&mut part, conversation.clone(), head, |_| true);
        Ok(head)
    }

    /// Takes over a head that became durable.
    pub(crate) fn publish(&self, conversation: ConversationId, head: Head) {
        let mut part = self.0.lock(&conversation);
        let is_newer = |known: &Head| (known.seq, known.change_seq) < (head.seq, head.change_seq);
        if part.get(&conversation).is_none_or(is_newer) {
            self.0.insert(&mut part, conversation, head, |_| true);
        }
    }
}

fn load(engine: &Engine, conversation: &ConversationId) -> Result<Option<Head>, Fault> {
    let mut head = Head::default();
    let message = engine.last(Space::Messages, keys::messages_of(conversation))?;
    if let Some((key, value)) = &message {
        let record: MessageRecord<'_> = record::decode(Space::Messages, key, value)?;
        let seq = keys::seq_of(key).ok_or_else(|| record::impossible(Space::Messages, "no seq"))?;
        (head.seq, head.sent_at) = (seq, record.sent_at());
    }
    let change = engine.last(Space::Changes, keys::messages_of(conversation))?;
    head.change_seq = change.and_then(|(key, _)| keys::seq_of(&key)).unwrap_or_default();
    Ok((head != Head::default()).then_some(head))
}
