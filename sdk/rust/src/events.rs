//! What a client tells, and who listens.
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::Stream;
use tokio::sync::mpsc;

use crate::error::Error;
use crate::line::ConversationLine;
use crate::reason::Reason;
use crate::types::{Change, Message};

/// How it stands with the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// On the way.
    Connecting,
    /// There.
    Online,
    /// Not there.
    Offline {
        /// When the next try is; none if nobody is trying.
        retry_in: Option<Duration>,
    },
    /// Somebody signed in elsewhere, and only one may be here.
    Kicked,
    /// Signed out: by the server for a reason, or by ourselves for none.
    SignedOut {
        /// Why.
        reason: Option<Reason>,
    },
}

/// How far somebody is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    /// Everything up to there arrived.
    Delivered,
    /// Everything up to there was read.
    Read,
}

/// What a client tells.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// It stands otherwise with the server.
    State(State),
    /// There is a new message: in the order of the conversation, each once. Also own ones, when they
    /// are sent. What had been delivered before this device came is history: it is in `messages`, and
    /// no event.
    Message(Arc<Message>),
    /// A message changed: its state, its place, or it was taken back.
    Update(Arc<Message>),
    /// A preview or an unsent message is gone. If a preview that went with its connection was saved all
    /// the same, it comes again as a new message.
    Removed {
        /// Where it was.
        conversation_id: String,
        /// What its sender called it.
        client_msg_id: String,
        /// What the server called it, if it did.
        server_msg_id: String,
    },
    /// A line of the list changed.
    Conversation(Arc<ConversationLine>),
    /// Something happened to the group, or a recall.
    Change(Arc<Change>),
    /// Somebody received or read.
    Receipt {
        /// Where.
        conversation_id: String,
        /// Who.
        user_id: String,
        /// Which of both.
        kind: Receipt,
        /// Up to where.
        seq: u64,
    },
    /// Somebody writes, or stopped.
    Typing {
        /// Where.
        conversation_id: String,
        /// Who.
        user_id: String,
        /// Whether they write.
        on: bool,
    },
    /// Somebody you share a conversation with, or you on another device, has a new name or picture.
    Person {
        /// Who.
        user_id: String,
        /// The name shown.
        nickname: String,
        /// Where the picture is.
        avatar: String,
    },
    /// Somebody wants into your group.
    JoinRequest {
        /// Which group.
        group_id: String,
        /// Who.
        user_id: String,
        /// What to give to `groups().decide`.
        request_id: String,
        /// What they say about it.
        message: String,
    },
    /// You were let in, or not.
    JoinDecision {
        /// Which group.
        group_id: String,
        /// Who decided.
        by: String,
        /// Your request.
        request_id: String,
        /// Whether you are in.
        accepted: bool,
    },
    /// Something went wrong that nobody waits for.
    Problem(Error),
}

/// What a client tells from now on; nothing gets lost, however slowly it is read.
pub struct Events(mpsc::UnboundedReceiver<Event>);

impl Events {
    /// The next one; `None` when the client is gone.
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

/// Everybody who listens.
#[derive(Clone, Default)]
pub(crate) struct Ears(Arc<Mutex<Vec<mpsc::UnboundedSender<Event>>>>);

impl Ears {
    pub(crate) fn listen(&self) -> Events {
        let (tell, hear) = mpsc::unbounded_channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(tell);
        Events(hear)
    }

    pub(crate) fn tell(&self, event: &Event) {
        let mut ears = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ears.retain(|ear| ear.send(event.clone()).is_ok());
    }

    pub(crate) fn problem(&self, error: Error) {
        self.tell(&Event::Problem(error));
    }

    /// Nothing more is told.
    pub(crate) fn end(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
