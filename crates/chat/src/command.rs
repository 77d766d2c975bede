//! Everything a signed-in person can ask for, what they get back, and what they may hear unasked.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{
    ClientMsgId, ConnectionId, ConversationId, GroupId, LoginId, MessageId, Millis, Seq, UserId,
};
use crate::membership::JoinRequest;
use crate::model::{Caller, Change, Content, CursorKind, Message, Settings};
use crate::query::{Found, Query};
use crate::reason::Reason;
use crate::send::Sending;

/// What a frame asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Carry on with a newer token.
    Reauth {
        /// The new access token.
        token: String,
    },
    /// Say something.
    Send(Outgoing),
    /// A message arrived or was read.
    Acknowledge(Acknowledge),
    /// Take a message back.
    Recall {
        /// Which.
        message: MessageId,
    },
    /// I am writing.
    Typing {
        /// To whom.
        to: Target,
    },
    /// Bring what this device has not seen.
    Resend {
        /// Where this device is, per conversation; others start at the member's delivered cursor.
        cursors: BTreeMap<ConversationId, Seq>,
    },
    /// Something else one may ask.
    Ask(Query),
    /// Are you there?
    Ping,
    /// I am.
    Pong,
}

/// A message as a client sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// To whom.
    pub to: Target,
    /// The sender's name for it.
    pub client_id: ClientMsgId,
    /// What it says.
    pub content: Content,
    /// The message it answers.
    pub reply_to: Option<MessageId>,
    /// Whether sending it reads everything before it.
    pub marks_read: bool,
}

/// Whom one speaks to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// One person.
    User(UserId),
    /// Everybody in a group.
    Group(GroupId),
}

impl Target {
    /// The conversation in which `from` speaks to it.
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
    /// Delivered or read.
    pub kind: CursorKind,
    /// The message it speaks of.
    pub message: MessageId,
    /// The person the acknowledger believes sent it; checked when given.
    pub from: Option<UserId>,
    /// The place the acknowledger believes it has; checked when given.
    pub seq: Option<Seq>,
}

/// The answer to a command.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Nothing to say.
    Quiet,
    /// The caller continues with this identity.
    Authenticated(Caller),
    /// The message is durable.
    Saved(Saved),
    /// The message will be durable.
    Accepted(Accepted),
    /// The message is taken back, now or before.
    Recalled(Arc<Message>),
    /// One page of what was missed.
    Resend(Page),
    /// What was asked for.
    Found(Found),
    /// I am here.
    Pong,
}

/// What the sender is told about a stored message; the same for every retry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The stored message.
    pub message: Arc<Message>,
    /// Whether it had been stored before this request.
    pub duplicate: bool,
    /// Whether words were replaced, so that the sender should see what others see.
    pub cleaned: bool,
}

/// What the sender is told about a message that was taken in but is not saved yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its name for everybody, which it will keep.
    pub id: MessageId,
    /// Where it will be.
    pub conversation: ConversationId,
    /// Who said it.
    pub sender: UserId,
    /// The sender's name for it.
    pub client_id: ClientMsgId,
    /// When the server got it.
    pub at: Millis,
    /// What others will see instead, where words were replaced.
    pub cleaned: Option<Content>,
}

/// A page of a resend, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// In seq order per conversation, by time across them.
    pub messages: Vec<Arc<Message>>,
    /// Whether something is left. Exact at the moment of reading.
    pub has_more: bool,
}

/// The state of an answer: most are there at once; a save comes when it is durable.
pub enum Answer {
    /// Here it is.
    Now(Reply),
    /// It will come. The order of the commands is already decided.
    Later(Sending),
}

/// What happened, told to everybody concerned. A hint: the store is the truth.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    /// A message became durable.
    Message {
        /// The message.
        message: Arc<Message>,
        /// The socket that sent it and is not told again.
        origin: Option<ConnectionId>,
        /// How many members its group has; zero between two people.
        members: u32,
        /// The newest change of its conversation when it was stored: whoever knows fewer is
        /// behind, and may not know who hears it.
        change_seq: Seq,
    },
    /// A message was accepted and is not saved yet: a look at what will come. It has no place, so it
    /// moves no cursor. Only between two people: in a group, who may hear it depends on its place.
    Preview {
        /// The message, at [`Seq::ZERO`].
        message: Arc<Message>,
        /// The socket that sent it and is not told.
        origin: Option<ConnectionId>,
    },
    /// A message that was accepted is durable, as was found out later: only those are told who know
    /// it without its place.
    Settled {
        /// The message.
        message: Arc<Message>,
    },
    /// A message that was accepted will never be saved: those who know it forget it.
    Dropped(Dropped),
    /// Something stored was changed.
    Change {
        /// The change.
        change: Arc<Change>,
        /// The socket that asked for it and is not told again.
        origin: Option<ConnectionId>,
        /// How many members its group has; zero between two people.
        members: u32,
    },
    /// A member's cursor moved.
    Receipt(Receipt),
    /// Somebody is writing. Worth nothing a moment later.
    Typing {
        /// Who writes.
        from: UserId,
        /// To whom.
        to: Target,
        /// When.
        at: Millis,
    },
    /// Somebody wants to come into a group.
    JoinRequested {
        /// Who, and where.
        request: JoinRequest,
        /// Those who decide.
        to: Vec<UserId>,
    },
    /// Somebody was let into a group, or not.
    JoinAnswered {
        /// Who, and where.
        request: JoinRequest,
        /// Which.
        accepted: bool,
        /// Who decided.
        by: UserId,
        /// When.
        at: Millis,
    },
    /// Somebody chose something for a conversation: their devices learn of it.
    Settings {
        /// Who.
        user: UserId,
        /// For which.
        conversation: ConversationId,
        /// Their choices as they are now.
        settings: Settings,
    },
    /// Sign-ins ended: their sockets close.
    Ended {
        /// Whose.
        user: UserId,
        /// Which of them.
        logins: Logins,
        /// What their sockets are told.
        reason: Reason,
    },
    /// Single sockets end although their sign-in may go on elsewhere.
    Closed {
        /// Whose.
        user: UserId,
        /// Which.
        connections: Vec<ConnectionId>,
        /// What they are told.
        reason: Reason,
    },
    /// Who hears a group on a node, for other nodes: nobody is told of it.
    Online {
        /// Which group.
        group: ConversationId,
        /// The node.
        instance: String,
        /// A sketch of the people there, whose form is theirs who count them; empty for nobody.
        people: Vec<u8>,
        /// Whether the other nodes are asked to say the same of themselves.
        asks: bool,
    },
    /// Somebody changed their name or picture.
    Profile {
        /// Who, as they are seen now.
        user: UserId,
        /// The name shown.
        nickname: String,
        /// Where the picture is.
        avatar: String,
        /// The conversations whose other members hear it, some of theirs.
        within: Vec<ConversationId>,
        /// When.
        at: Millis,
    },
}

/// A message that was accepted and did not become one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Its name for everybody.
    pub id: MessageId,
    /// Where it would have been.
    pub conversation: ConversationId,
    /// Who said it.
    pub sender: UserId,
    /// The sender's name for it.
    pub client_id: ClientMsgId,
    /// Why.
    pub reason: Reason,
    /// When that was found out.
    pub at: Millis,
}

/// Which of a user's sign-ins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Logins {
    /// All of them.
    All,
    /// These.
    These(Vec<LoginId>),
}

impl Logins {
    /// Whether `login` is one of them.
    pub fn includes(&self, login: LoginId) -> bool {
        match self {
            Self::All => true,
            Self::These(these) => these.contains(&login),
        }
    }
}

/// A member has received or read everything up to a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Delivered or read.
    pub kind: CursorKind,
    /// In which conversation.
    pub conversation: ConversationId,
    /// Who received or read.
    pub by: UserId,
    /// Whose message it was.
    pub sender: UserId,
    /// Which message.
    pub message: MessageId,
    /// Its place.
    pub seq: Seq,
    /// When the server learnt of it.
    pub at: Millis,
    /// The socket that said so.
    pub origin: Option<ConnectionId>,
    /// Who hears it beside the reader's own devices.
    pub to: ReceiptTo,
}

/// Who hears of a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReceiptTo {
    /// The message's sender.
    Sender,
    /// Everybody in the group.
    Group,
    /// Nobody: the group is too large.
    Nobody,
}
