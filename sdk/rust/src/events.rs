//! The events of a client and their listeners.
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::Stream;
use tokio::sync::mpsc;

use crate::conversation_summary::ConversationSummary;
use crate::error::Error;
use crate::reason::Reason;
use crate::types::{Change, Message};

/// The state of the connection and of the sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Connecting,
    Online,
    Offline {
        /// When the next attempt starts; `None` if none is planned.
        retry_in: Option<Duration>,
    },
    /// The same account signed in on another device, and the server allows only one.
    Kicked,
    /// Signed out: by the server with a reason, or by `logout` without one.
    SignedOut {
        reason: Option<Reason>,
    },
}

/// The kind of a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    /// Everything up to the seq was delivered.
    Delivered,
    /// Everything up to the seq was read.
    Read,
}

/// The events of a client.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// The state of the connection or of the sign-in changed.
    State(State),
    /// A new message: once, in the order of its conversation. Own messages too, when they are sent.
    /// Messages that were delivered before this device signed in are history: `messages` has them,
    /// without an event.
    Message(Arc<Message>),
    /// A message changed: its state, its seq, or it was recalled.
    Update(Arc<Message>),
    /// A preview or an unsent message is gone. Previews are removed when the connection is lost;
    /// those that were saved come again as `Message`.
    Removed {
        conversation_id: String,
        client_msg_id: String,
        /// Empty if the server had not assigned one.
        server_msg_id: String,
    },
    /// The summary of a conversation changed.
    Conversation(Arc<ConversationSummary>),
    /// A recall, or a change of the members or of the group.
    Change(Arc<Change>),
    /// A user received or read messages.
    Receipt { conversation_id: String, user_id: String, kind: Receipt, seq: u64 },
    /// A user is typing, or stopped.
    Typing { conversation_id: String, user_id: String, is_typing: bool },
    /// A user you share a conversation with (or you, on another device) changed the nickname or
    /// avatar.
    Person { user_id: String, nickname: String, avatar: String },
    /// A user asks to join a group you administer.
    JoinRequest {
        group_id: String,
        user_id: String,
        /// The id for `groups().decide`.
        request_id: String,
        /// The text of the request.
        message: String,
    },
    /// Your request to join was accepted or rejected.
    JoinDecision { group_id: String, by: String, request_id: String, is_accepted: bool },
    /// An error that no call returned.
    Problem(Error),
}

/// The events of a client from now on, in an unbounded queue.
pub struct Events(mpsc::UnboundedReceiver<Event>);

impl Events {
    /// The next event; `None` when the client is closed.
    pub async fn next(&mut self) -> Option<Event> {
        self.0.recv().await
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Event>> {
        self.0.poll_recv(context)
    }
}

/// The event streams of a client.
#[derive(Clone, Default)]
pub(crate) struct Listeners(Arc<Mutex<Vec<mpsc::UnboundedSender<Event>>>>);

impl Listeners {
    pub(crate) fn subscribe(&self) -> Events {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        Events(receiver)
    }

    pub(crate) fn emit(&self, event: &Event) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.send(event.clone()).is_ok());
    }

    pub(crate) fn emit_problem(&self, error: Error) {
        self.emit(&Event::Problem(error));
    }

    /// Ends all event streams.
    pub(crate) fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
