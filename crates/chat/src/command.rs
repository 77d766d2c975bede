//! Everything a signed-in session can ask for, and the replies.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{ClientMsgId, ConversationId, GroupId, MessageId, Millis, Seq, UserId};
use crate::model::{Caller, Content, CursorKind, Message};
use crate::query::{Query, QueryReply};
use crate::send::PendingSend;

/// The request in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Continue with a newer access token.
    Reauth {
        token: String,
    },
    Send(NewMessage),
    Acknowledge(Acknowledge),
    Recall {
        message: MessageId,
    },
    Typing {
        to: Target,
    },
    /// Send the messages that this device has not received.
    Resend {
        /// The last seq this device has, per conversation; others start at the member's delivered cursor.
        cursors: BTreeMap<ConversationId, Seq>,
    },
    Query(Query),
    Ping,
    Pong,
}

/// A message as a client sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    pub to: Target,
    pub client_id: ClientMsgId,
    pub content: Content,
    /// The message it replies to.
    pub reply_to: Option<MessageId>,
    /// Whether sending it marks everything before it as read.
    pub marks_read: bool,
}

/// The recipient of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    User(UserId),
    Group(GroupId),
}

impl Target {
    /// The conversation in which `from` sends to this target.
    pub fn conversation(&self, from: &UserId) -> ConversationId {
        match self {
            Self::User(user) => ConversationId::private(from, user),
            Self::Group(group) => group.conversation(),
        }
    }
}

/// A delivered or read acknowledgement for one message, meaning "up to and including this one".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledge {
    pub kind: CursorKind,
    pub message: MessageId,
    /// The sender as the client knows it; compared if present.
    pub from: Option<UserId>,
    /// The seq as the client knows it; compared if present.
    pub seq: Option<Seq>,
}

/// The reply to a command.
#[derive(Clone, Debug)]
pub enum Reply {
    Nothing,
    /// The session continues with this caller.
    Authenticated(Caller),
    /// The message is durable.
    Saved(Saved),
    /// The message is accepted and will be made durable.
    Accepted(Accepted),
    /// The message is recalled, by this request or an earlier one.
    Recalled(Arc<Message>),
    Resend(ResendPage),
    QueryReply(QueryReply),
    Pong,
}

/// The sender's acknowledgement of a stored message; the same for every retry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    pub message: Arc<Message>,
    /// Whether an earlier request had stored it.
    pub duplicate: bool,
    /// Whether the word filter replaced something, so that the sender's client should show the stored text.
    pub cleaned: bool,
}

/// The sender's acknowledgement of a message that is accepted and not saved yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The id that the saved message will have.
    pub id: MessageId,
    pub conversation: ConversationId,
    pub sender: UserId,
    pub client_id: ClientMsgId,
    pub at: Millis,
    /// The content that will be stored instead, if the word filter replaced something.
    pub cleaned: Option<Content>,
}

/// A page of a resend, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResendPage {
    /// In seq order per conversation, by time across them.
    pub messages: Vec<Arc<Message>>,
    /// Whether messages are left. Exact at the moment of reading.
    pub has_more: bool,
}

/// Most replies are ready at once; that of a send comes when the message is durable or accepted.
pub enum HandleOutcome {
    Ready(Reply),
    /// The message already has its place in the order of sends.
    Pending(PendingSend),
}
