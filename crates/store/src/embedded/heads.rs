//! The newest seqs of each conversation. Not stored: found by reverse seeks, then cached.

use nexo_chat::ids::{ConversationId, Millis, Seq};

use super::engine::Engine;
use super::keys::{self, Keyspace};
use super::poison::EngineFault;
use super::record::{self, MessageRecord};
use super::sharded_map::ShardedMap;

/// The newest message and change of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConversationHead {
    /// The seq of the newest message; zero if there is none.
    pub(crate) seq: Seq,
    pub(crate) sent_at: Millis,
    /// The newest change seq; zero if there is none.
    pub(crate) change_seq: Seq,
}

/// The cached heads.
pub(crate) struct Heads(ShardedMap<ConversationId, ConversationHead>);

impl Heads {
    pub(crate) fn new(max: usize) -> Self {
        Self(ShardedMap::new(max))
    }

    /// Returns the head of a conversation. Nothing is cached for conversations that do not exist,
    /// so that asking for many costs no memory.
    pub(crate) fn get(
        &self,
        engine: &Engine,
        conversation: &ConversationId,
    ) -> Result<ConversationHead, EngineFault> {
        let mut shard = self.0.lock_shard(conversation);
        if let Some(head) = shard.get(conversation) {
            return Ok(*head);
        }
        let Some(head) = load(engine, conversation)? else {
            return Ok(ConversationHead::default());
        };
        self.0.insert(&mut shard, conversation.clone(), head, |_| true);
        Ok(head)
    }

    /// Caches a head that became durable.
    pub(crate) fn publish(&self, conversation: ConversationId, head: ConversationHead) {
        let mut shard = self.0.lock_shard(&conversation);
        let is_newer =
            |known: &ConversationHead| (known.seq, known.change_seq) < (head.seq, head.change_seq);
        if shard.get(&conversation).is_none_or(is_newer) {
            self.0.insert(&mut shard, conversation, head, |_| true);
        }
    }
}

fn load(
    engine: &Engine,
    conversation: &ConversationId,
) -> Result<Option<ConversationHead>, EngineFault> {
    let mut head = ConversationHead::default();
    let message = engine.last(Keyspace::Messages, keys::messages_of(conversation))?;
    if let Some((key, value)) = &message {
        let record: MessageRecord<'_> = record::decode(Keyspace::Messages, key, value)?;
        let seq =
            keys::seq_of(key).ok_or_else(|| record::impossible(Keyspace::Messages, "no seq"))?;
        (head.seq, head.sent_at) = (seq, record.sent_at());
    }
    let change = engine.last(Keyspace::Changes, keys::messages_of(conversation))?;
    head.change_seq = change.and_then(|(key, _)| keys::seq_of(&key)).unwrap_or_default();
    Ok((head != ConversationHead::default()).then_some(head))
}
