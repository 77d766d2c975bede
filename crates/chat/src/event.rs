//! Events: what is pushed to sessions without a request, published on the bus.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::command::Target;
use crate::ids::{
    ClientMsgId, ConnectionId, ConversationId, LoginId, MessageId, Millis, Seq, UserId,
};
use crate::membership::JoinRequest;
use crate::model::{Change, CursorKind, Message, Settings};
use crate::reason::Reason;

/// Something that happened, published to the sessions it concerns. A hint: the store is the truth.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    /// A message became durable.
    Message {
        message: Arc<Message>,
        /// The sending socket. It got an ACK and receives no push.
        origin: Option<ConnectionId>,
        /// Members of the group; zero for a private conversation.
        members: u32,
        /// The conversation's change seq when the message was stored. A node that has applied fewer
        /// changes is behind, and must not push the message before it knows the current members.
        change_seq: Seq,
    },
    /// A message was accepted by two-phase acknowledgement and is not saved yet. It has no seq, so it
    /// moves no cursor. Private conversations only: in a group, the seq decides which members may see it.
    Preview {
        /// The message, at [`Seq::ZERO`].
        message: Arc<Message>,
        /// The sending socket, which receives no push.
        origin: Option<ConnectionId>,
    },
    /// An accepted message turned out to be durable. Only sessions that know it without a seq receive this.
    AcceptedSaved { message: Arc<Message> },
    /// An accepted message will never be saved. Sessions that know it drop it.
    Dropped(Dropped),
    /// Something stored was changed.
    Change {
        change: Arc<Change>,
        /// The socket that requested the change.
        origin: Option<ConnectionId>,
        /// Members of the group; zero for a private conversation.
        members: u32,
    },
    /// A member's cursor moved.
    Receipt(Receipt),
    /// A user is typing. Worthless a moment later.
    Typing { from: UserId, to: Target, at: Millis },
    /// A user asks to join a group.
    JoinRequested {
        request: JoinRequest,
        /// The owner and the admins, who decide.
        to: Vec<UserId>,
    },
    /// A request to join was accepted or rejected.
    JoinAnswered { request: JoinRequest, accepted: bool, by: UserId, at: Millis },
    /// A user changed their settings of a conversation. Their other devices update.
    Settings {
        user: UserId,
        conversation: ConversationId,
        /// All settings, as they are now.
        settings: Settings,
    },
    /// Sign-ins ended. Their sockets close.
    Ended {
        user: UserId,
        logins: Logins,
        /// Sent to the sockets before they close.
        reason: Reason,
    },
    /// These sockets close, although their sign-in goes on.
    Closed {
        user: UserId,
        connections: Vec<ConnectionId>,
        /// Sent to the sockets before they close.
        reason: Reason,
    },
    /// How many users on a node are subscribed to a group. For other nodes; no session receives it.
    Online {
        group: ConversationId,
        instance: String,
        /// A sketch of those users, in the encoding of the code that counts them; empty for none.
        people: Vec<u8>,
        /// Whether the other nodes should reply with their own sketch.
        asks: bool,
    },
    /// A user changed their nickname or avatar.
    Profile {
        user: UserId,
        nickname: String,
        avatar: String,
        /// Some of the user's conversations. Their other members receive the event.
        within: Vec<ConversationId>,
        at: Millis,
    },
}

/// An accepted message that will not be saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    pub id: MessageId,
    pub conversation: ConversationId,
    pub sender: UserId,
    pub client_id: ClientMsgId,
    pub reason: Reason,
    /// When the server found out.
    pub at: Millis,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Logins {
    All,
    These(Vec<LoginId>),
}

impl Logins {
    pub fn includes(&self, login: LoginId) -> bool {
        match self {
            Self::All => true,
            Self::These(these) => these.contains(&login),
        }
    }
}

/// A member received or read everything up to a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub kind: CursorKind,
    pub conversation: ConversationId,
    pub by: UserId,
    pub sender: UserId,
    pub message: MessageId,
    pub seq: Seq,
    /// When the server received the acknowledgement.
    pub at: Millis,
    /// The socket that acknowledged.
    pub origin: Option<ConnectionId>,
    /// Who receives it besides the reader's own devices.
    pub to: ReceiptTo,
}

/// Who receives a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReceiptTo {
    Sender,
    /// All members of the group.
    Group,
    /// No one: the group is too large.
    Nobody,
}
