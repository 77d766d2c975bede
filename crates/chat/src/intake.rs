//! What the domain needs to answer a sender before the message is saved: somebody who takes it in,
//! keeps it, and sees to it that it is saved.

use std::sync::Arc;

use crate::Boxed;
use crate::ids::{ConversationId, MessageId};
use crate::model::{Draft, Message};
use crate::policy::send::Permit;
use crate::store::{Appended, StoreError, Stored};

/// How far a message has come when its sender is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is kept and will be saved; whether it was, is told later as an event.
    Accepted,
    /// It went the ordinary way, because the early one was closed or it had been saved before.
    Appended(Appended),
}

/// Where a message is that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// On its way.
    Open,
    /// Saved.
    Saved(Arc<Message>),
    /// Neither waiting nor saved: what had accepted it lost it.
    Nowhere,
}

/// Takes messages in before they are saved.
///
/// Everything accepted is saved once, in the order it was accepted per conversation, or its sender
/// hears that it will not be: [`crate::command::Event::Message`] and `Settled` tell that it is
/// saved, `Dropped` that it is not.
pub trait Intake: Send + Sync {
    /// Whether messages of this conversation are taken in early.
    fn takes(&self, conversation: &ConversationId) -> bool;

    /// Takes a message in. Its place among those of its sender is taken when this is *called*, as
    /// with [`crate::store::Store::append`]. An error means "unknown": the same call again gives
    /// the one outcome.
    fn take(&self, permit: Permit, draft: Draft) -> Stored<'static, Taken>;

    /// Where a message of a conversation is.
    fn whereabouts<'a>(
        &'a self,
        conversation: &'a ConversationId,
        id: MessageId,
    ) -> Boxed<'a, Result<Whereabouts, StoreError>>;

    /// Hears on this node that a message was saved, or will not be.
    fn settled(&self, id: MessageId);
}
