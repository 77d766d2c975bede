//! The newest seqs of each conversation. Not stored: found by reverse seeks, then cached.

use nexo_chat::ids::{ConversationId, Millis, Seq};

use super::core::Core;
use super::engine::Engine;
use super::keys::{self, Keyspace};
use super::lost_ranges;
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

/// A head as far as it can be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadableHead {
    pub(crate) head: ConversationHead,
    /// Whether newer messages or changes may exist that cannot be read.
    pub(crate) is_damaged: bool,
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

    /// Returns the head for readers. If the newest records are damaged, it is the last seqs that are
    /// known to exist: nothing can be added to such a conversation, so they stay what they are.
    pub(crate) fn get_readable(
        &self,
        core: &Core,
        conversation: &ConversationId,
    ) -> Result<ReadableHead, EngineFault> {
        match self.get(&core.engine, conversation) {
            Ok(head) => Ok(ReadableHead { head, is_damaged: false }),
            Err(fault) => {
                core.pass_damage(fault)?;
                let head = find_readable(&core.engine, conversation);
                Ok(ReadableHead { head, is_damaged: true })
            }
        }
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
    head.seq = head.seq.max(lost_ranges::end_of(engine, Keyspace::Messages, conversation)?);
    let lost_changes = lost_ranges::end_of(engine, Keyspace::Changes, conversation)?;
    head.change_seq = head.change_seq.max(lost_changes);
    Ok((head != ConversationHead::default()).then_some(head))
}

fn find_readable(engine: &Engine, conversation: &ConversationId) -> ConversationHead {
    let seq = last_readable(engine, Keyspace::Messages, conversation);
    let key = keys::message(conversation, seq);
    let newest = engine.get(Keyspace::Messages, &key).ok().flatten();
    let sent_at = newest.and_then(|value| {
        let record = record::decode::<MessageRecord<'_>>(Keyspace::Messages, &key, &value);
        record.ok().map(|record| record.sent_at())
    });
    let change_seq = last_readable(engine, Keyspace::Changes, conversation);
    ConversationHead { seq, sent_at: sent_at.unwrap_or_default(), change_seq }
}

/// Returns the last seq that can be read without a gap from there.
fn last_readable(engine: &Engine, keyspace: Keyspace, conversation: &ConversationId) -> Seq {
    let range = keys::messages_of(conversation);
    let near = engine.last_readable_key(keyspace, range).and_then(|key| keys::seq_of(&key));
    let mut seq = near.unwrap_or_default();
    while let Ok(Some(_)) = engine.get(keyspace, &keys::message(conversation, seq.next())) {
        seq = seq.next();
    }
    seq
}
