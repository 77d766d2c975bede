//! The contract of a log of accepted messages.
//!
//! A log has shards. A conversation is always in the same shard, where its messages keep their
//! order. One node at a time has the lease of a shard. Entries come again until
//! [`ShardLease::finish`].

use std::sync::Arc;
use std::time::Duration;

use nexo_chat::Boxed;
use nexo_chat::ids::{ConversationId, MessageId};

use crate::accepted::AcceptedMessage;

/// What the log did with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// The log has it; `length` messages wait in its shard, with this one.
    New { length: u64 },
    /// It was in the log already, with the same content.
    Again,
    /// It was saved a while ago, perhaps with other content.
    Saved,
    /// It was in the log already, with other content.
    Conflict,
    /// Too many messages wait to be saved.
    Full,
    /// Not added: the message that must come before it is neither waiting nor saved.
    Overtakes,
}

/// The log cannot be reached. Whether it did what was asked is not known.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the log of accepted messages is away: {0}")]
pub struct LogUnavailable(pub String);

/// Another node may have the lease by now: entries that were read must not be worked on any more.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the lease of the shard is lost: {0}")]
pub struct LeaseLost(pub String);

/// Called with the outcome of [`AcceptedLog::put`], in the order of the calls per conversation.
pub type PutCallback = Box<dyn FnOnce(Result<PutOutcome, LogUnavailable>) + Send>;

/// Each group reads every entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsumerGroup {
    /// Previews messages before they are saved.
    Deliver,
    /// Saves messages.
    Save,
}

#[derive(Clone, Debug)]
pub struct LogEntry {
    /// Names the entry within its shard.
    pub entry_id: String,
    pub message: Arc<AcceptedMessage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveOutcome {
    /// It is durable.
    Saved,
    /// It will never be saved.
    Dropped,
}

/// How many entries wait in a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardDepth {
    pub length: u64,
    /// Those that were read to be saved and are not finished.
    pub pending: u64,
    /// Those that were read to be previewed and are not acknowledged. A log in memory does not
    /// count them.
    pub pending_deliver: u64,
}

/// Keeps accepted messages until they are saved.
pub trait AcceptedLog: Send + Sync {
    fn shards(&self) -> usize;

    /// Adds a message to the end of its shard. `after` is the message of its conversation that must
    /// come before it, if one is not saved yet. The position is fixed when this is called.
    fn put(&self, message: Arc<AcceptedMessage>, after: Option<MessageId>, callback: PutCallback);

    /// Waits until this node has the lease of a shard.
    fn acquire_lease(&self, shard: usize) -> Boxed<'_, Box<dyn ShardLease>>;

    /// Whether a message waits to be saved.
    fn is_waiting<'a>(
        &'a self,
        conversation: &'a ConversationId,
        id: MessageId,
    ) -> Boxed<'a, Result<bool, LogUnavailable>>;

    /// Why nothing can be put now, or `Ok`.
    fn health(&self) -> Result<(), String>;

    /// A clean shutdown: a log in memory waits until its messages are saved, a log in Redis
    /// releases its leases.
    fn leave(&self) -> Boxed<'_, ()>;
}

/// The right to work on a shard.
pub trait ShardLease: Send + Sync {
    /// Renews the lease and returns when it is lost. Reports the depth of the shard now and then.
    fn renew_until_lost<'a>(
        &'a self,
        report: &'a (dyn Fn(ShardDepth) + Send + Sync),
    ) -> Boxed<'a, LeaseLost>;

    /// Reads the next entries of a group, in order: first those that were read before and not
    /// finished. Waits for at least one, up to `wait`. Await it to the end: entries of a dropped
    /// read do not come again under this lease.
    fn read_next(
        &self,
        group: ConsumerGroup,
        max: usize,
        wait: Duration,
    ) -> Boxed<'_, Result<Vec<LogEntry>, LeaseLost>>;

    /// These entries were previewed.
    fn acknowledge_delivered(&self, entries: Vec<LogEntry>) -> Boxed<'_, Result<(), LeaseLost>>;

    /// These entries are saved or dropped: they do not come again.
    fn finish(&self, entries: Vec<(LogEntry, SaveOutcome)>) -> Boxed<'_, Result<(), LeaseLost>>;

    /// Moves an entry that cannot be saved to the dead letters, for an operator to look at.
    fn dead_letter(&self, entry: LogEntry, why: String) -> Boxed<'_, Result<(), LeaseLost>>;
}
