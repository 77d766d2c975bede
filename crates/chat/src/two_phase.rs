//! The contract for two-phase acknowledgement: a message is accepted into a log, its sender is
//! answered, and workers save it from the log later.

use std::sync::Arc;

use crate::Boxed;
use crate::ids::{ConversationId, MessageId};
use crate::model::{Draft, Message};
use crate::policy::send::Permit;
use crate::store::{Appended, StoreError, StoreFuture};

/// What the sender is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptOutcome {
    /// The log has the message and it will be saved. An event reports later whether it was.
    Accepted,
    /// The message was appended to the store directly: the log was unavailable, or the message had
    /// been saved before.
    Appended(Appended),
}

/// The state of an accepted message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageStatus {
    /// It waits to be saved.
    Pending,
    Saved(Arc<Message>),
    /// Neither waiting nor saved: the log lost it.
    Lost,
}

/// Accepts messages before they are saved.
///
/// Every accepted message is saved once, in the order of acceptance per conversation, or its sender
/// learns that it will not be: [`crate::event::Event::Message`] and `AcceptedSaved` report that it is
/// saved, `Dropped` that it is not.
pub trait TwoPhase: Send + Sync {
    /// Whether messages of this conversation are accepted before they are saved.
    fn accepts(&self, conversation: &ConversationId) -> bool;

    /// Accepts a message. Its position among the messages of its sender is fixed when this is
    /// *called*, as with [`crate::store::Store::append`]. An error means "unknown": repeating the
    /// call gives the one outcome.
    fn accept(&self, permit: Permit, draft: Draft) -> StoreFuture<'static, AcceptOutcome>;

    /// The state of a message.
    fn status<'a>(
        &'a self,
        conversation: &'a ConversationId,
        id: MessageId,
    ) -> Boxed<'a, Result<MessageStatus, StoreError>>;

    /// Called on this node when an event reports that a message was saved, or never will be.
    fn on_resolved(&self, id: MessageId);
}
