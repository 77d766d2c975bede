//! What two-phase acknowledgement needs from a log.
//!
//! It has shards; a conversation is always in the same one, where its messages keep their order. At
//! any time one node looks after a shard. Whatever is not [`Tenure::done`] comes again.

use std::sync::Arc;
use std::time::Duration;

use nexo_chat::Boxed;
use nexo_chat::ids::{ConversationId, MessageId};

use crate::accepted::Accepted;

/// What a log made of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is kept, and so many wait in its shard.
    New {
        /// With it.
        length: u64,
    },
    /// It was there, with the same content.
    Again,
    /// It was saved a while ago; perhaps with other content.
    Saved,
    /// It was there, with other content.
    Conflict,
    /// Too many wait to be saved.
    Full,
    /// It is not kept: what must come before it is neither waiting nor saved.
    Overtakes,
}

/// The log cannot be reached, and whether it did what was asked is not known.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the log of accepted messages is away: {0}")]
pub struct Away(pub String);

/// Somebody else may look after the shard by now: nothing more is done on what was read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the shard is not looked after here any more: {0}")]
pub struct Lost(pub String);

/// Told what became of a message, in the order the messages of a conversation were put.
pub type Told = Box<dyn FnOnce(Result<Put, Away>) + Send>;

/// What is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Showing messages before they are saved.
    Deliver,
    /// Saving them.
    Save,
}

/// A message in the log.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What the log calls it.
    pub place: String,
    /// The message.
    pub message: Arc<Accepted>,
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is durable.
    Saved,
    /// It will never be.
    Dropped,
}

/// How much waits in a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Entries.
    pub length: u64,
    /// Those of them that were read to be saved.
    pub pending: u64,
    /// Those of them that were read to be shown, and are not yet; a log in memory does not count
    /// them.
    pub pending_deliver: u64,
}

/// Keeps messages until they are saved.
pub trait Log: Send + Sync {
    /// How many shards there are.
    fn shards(&self) -> usize;

    /// Puts a message at the end of its shard, `after` another one of its conversation if that is
    /// still on its way. Its place is taken when this is called.
    fn put(&self, message: Arc<Accepted>, after: Option<MessageId>, told: Told);

    /// Waits until a shard is looked after by this node alone.
    fn tend(&self, shard: usize) -> Boxed<'_, Box<dyn Tenure>>;

    /// Whether a message waits to be saved.
    fn is_open<'a>(
        &'a self,
        conversation: &'a ConversationId,
        id: MessageId,
    ) -> Boxed<'a, Result<bool, Away>>;

    /// Why nothing can be put now, or `Ok`.
    fn health(&self) -> Result<(), String>;

    /// A clean end: what can only be saved from here is, and others may look after the shards.
    fn leave(&self) -> Boxed<'_, ()>;
}

/// A shard that this node looks after.
pub trait Tenure: Send + Sync {
    /// Stays, and returns when it is lost. Tells now and then how much waits.
    fn keep<'a>(&'a self, tell: &'a (dyn Fn(Depth) + Send + Sync)) -> Boxed<'a, Lost>;

    /// The next entries for a role, in order, at least one unless nothing came for so long; first
    /// of all those that were read before and not done. To be awaited to the end: what is read and
    /// thrown away does not come again in this tenure.
    fn next(&self, role: Role, max: usize, wait: Duration) -> Boxed<'_, Result<Vec<Entry>, Lost>>;

    /// These were shown.
    fn shown(&self, entries: Vec<Entry>) -> Boxed<'_, Result<(), Lost>>;

    /// These are saved, or never will be: they do not come again.
    fn done(&self, entries: Vec<(Entry, Fate)>) -> Boxed<'_, Result<(), Lost>>;

    /// Puts an entry aside that cannot be saved, for somebody to look at.
    fn bury(&self, entry: Entry, why: String) -> Boxed<'_, Result<(), Lost>>;
}
