//! The storage contract: what the domain needs from a store. Semantic: about messages and members,
//! not keys or SQL.
//!
//! Engines: `memory` (the reference), `embedded`, `mysql`. Every sentence here is a conformance
//! case that runs on all of them. [`Store`] is the sum of one trait per subject, each next to its
//! result types:
//!
//! - [`messages`]: append, read and recall messages; changes of a conversation
//! - [`conversations`]: standings, cursors and settings of members
//! - [`groups`]: groups, their members and join requests
//! - [`accounts`]: users, passwords, reset codes, last seen
//! - [`logins`]: logins and refresh tokens
//! - [`documents`]: small records of features that need no table of their own
//!
//! Data on a disk can be damaged. An engine that finds a record unreadable answers what needs it with
//! [`StoreError::Damaged`]; a page of messages goes around it and lists the seqs it left out
//! ([`MessagePage::damaged`]). It never answers with an older version of the record, or as if there were
//! none.

pub mod accounts;
pub mod conversations;
pub mod documents;
pub mod groups;
pub mod logins;
pub mod messages;

use std::sync::Arc;

use crate::Boxed;
use crate::event::Event;
use crate::ids::{ConnectionId, Millis, UserId};
use crate::reason::{BoxError, Error, Reason};

pub use self::accounts::{AccountStore, ChangeAccount};
pub use self::conversations::{ConversationStore, CursorMove};
pub use self::documents::{
    Collection, DecideDocuments, DocumentId, DocumentPage, DocumentStore, DocumentWrite,
};
pub use self::groups::{DecideGroup, GroupFactsQuery, GroupOutcome, GroupStore};
pub use self::logins::{CreatedLogin, LoginStore, RotateRequest, Rotation};
pub use self::messages::{
    Appended, Limit, MayRecall, MessagePage, MessageStore, Order, PageRequest, RUN_MAX, RecallFacts,
};

/// Why a store could not do its work. Conflicts are results, not errors.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Not now: nothing was decided, the same call may succeed later.
    #[error("the store is not available: {0}")]
    Unavailable(#[source] BoxError),
    /// The store failed to make something durable, or cannot decide anything any more, and
    /// acknowledges nothing more.
    #[error("the store has stopped: {0}")]
    Poisoned(String),
    /// What this call needs cannot be read from the disk any more. Nothing changed, the same call fails
    /// again, and everything else goes on. The text says where, and never holds content.
    #[error("a part of the stored data is damaged: {0}")]
    Damaged(String),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged(_) => Self::Refused(Reason::Damaged),
            error => Self::Unavailable(Box::new(error)),
        }
    }
}

/// Places of the stored data that are known to be damaged, for the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownDamage {
    /// How many places are known.
    pub places: u64,
    /// A sentence for each of the first few.
    pub examples: Vec<String>,
}

/// The user who asks for a change, the time of the request, and the socket it came through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    pub user: UserId,
    pub at: Millis,
    pub origin: Option<ConnectionId>,
}

/// Receives every message and change that became durable.
pub trait CommitListener: Send + Sync {
    /// Called once per durable batch: after the batch is durable and readable, before the appends
    /// of the batch are answered, in the order of seqs and change seqs per conversation, from one
    /// thread at a time. Never called for duplicates. Must not block.
    fn on_committed(&self, batch: &[Event]);
}

impl<F: Fn(&[Event]) + Send + Sync> CommitListener for F {
    fn on_committed(&self, batch: &[Event]) {
        self(batch);
    }
}

/// The result of a store call, to be awaited.
pub type StoreFuture<'a, T> = Boxed<'a, Result<T, StoreError>>;

/// Stores accounts, conversations and messages. Code that holds a `dyn Store` calls the methods of
/// all its supertraits without importing them.
pub trait Store:
    MessageStore
    + ConversationStore
    + GroupStore
    + AccountStore
    + LoginStore
    + DocumentStore
    + Send
    + Sync
{
    /// Sets the listener that receives durable batches. Called once, before the first append.
    fn set_commit_listener(&self, listener: Arc<dyn CommitListener>);

    /// Returns `Ok`, or why the store cannot be relied on.
    fn health(&self) -> Result<(), StoreError>;

    /// Returns what is known to be damaged. A store with damage is healthy: it refuses what it cannot
    /// read with [`StoreError::Damaged`] and does everything else.
    fn known_damage(&self) -> KnownDamage {
        KnownDamage::default()
    }

    /// Makes everything durable and stops. Later writes fail; reads continue to work.
    fn close(&self) -> StoreFuture<'_, ()>;
}
