//! The three dialects behind one enum. A connection keeps its dialect for life; outside this crate only the handshake
//! looks at which one it is.

use nexo_chat::Reason;
use nexo_chat::auth::Tokens;
use nexo_chat::command::{Command, Reply};
use nexo_chat::event::Event;
use nexo_chat::ids::{Millis, Platform};
use nexo_chat::model::{Caller, Message, User};

pub use crate::typed::ClientLimits;
use crate::{dotted, numbered, typed};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Text frames by `type`.
    #[default]
    Typed,
    /// Text envelopes by number.
    Numbered {
        /// `data` is a nested object instead of base64.
        nested: bool,
    },
    /// Envelopes by `cmd`.
    Dotted {
        /// Protobuf instead of JSON.
        binary: bool,
    },
}

/// A frame as received.
#[derive(Clone, Copy, Debug)]
pub enum Packet<'a> {
    Text(&'a str),
    Binary(&'a [u8]),
}

/// An encoded frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    Text(String),
    Binary(Vec<u8>),
}

impl From<String> for Frame {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A decoded frame of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inbound {
    /// Signs in by access token.
    Auth {
        token: String,
        /// On an authenticated connection, replaces its token by this newer one.
        renews: bool,
    },
    /// Creates an account; only before AUTH.
    Register(NewAccount),
    /// Signs in by password; only before AUTH.
    Login { user_id: String, password: String, platform: Platform },
    /// Only after AUTH, except a ping.
    Command(Command),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAccount {
    /// Empty: the server makes one.
    pub user_id: String,
    pub password: String,
    /// Empty: the user id.
    pub nickname: String,
    pub avatar: String,
}

/// The fields of a request that its answer repeats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    pub client_msg_id: Option<String>,
    /// The message that an ACK or a recall named.
    pub server_msg_id: Option<Box<str>>,
    pub call: Call,
    /// The field of the request that is wrong, if a refusal names it.
    pub detail: Option<Box<str>>,
}

/// How a dialect identifies a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Call {
    #[default]
    None,
    Numbered {
        req_identifier: i64,
        msg_incr: String,
        operation_id: String,
    },
    Dotted {
        cmd: String,
        request_id: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    pub inbound: Inbound,
    pub echo: Echo,
    /// The sender that a frame names: it must be the user of the connection. Boxed: few frames have it.
    pub claimed: Option<Box<ClaimedSender>>,
}

/// The user id and token that a frame claims to be from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimedSender {
    pub user: Option<String>,
    pub token: Option<String>,
}

/// Why a frame could not be decoded, and what the refusal repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    pub reason: Reason,
    pub echo: Echo,
}

/// What an encoded event depends on beside the event: the relation of its receiver to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct View {
    /// It mentions the receiver or replies to them.
    pub is_important: bool,
    /// Another device of the receiver caused it.
    pub is_own: bool,
    /// Without the content of the message: in groups too large to push it.
    pub is_notice: bool,
}

impl Dialect {
    /// Label of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Typed => "typed",
            Self::Numbered { .. } => "numbered",
            Self::Dotted { .. } => "dotted",
        }
    }

    /// The dialect of a connection by its first frame, if its handshake did not choose one.
    pub fn of(first: Packet<'_>) -> Self {
        match first {
            Packet::Binary(_) => Self::Dotted { binary: true },
            Packet::Text(text) if dotted::is_dotted(text) => Self::Dotted { binary: false },
            Packet::Text(_) => Self::Typed,
        }
    }

    /// Whether the server sends missed messages by itself after AUTH; else the client pulls them.
    pub fn pushes_missed(self) -> bool {
        self == Self::Typed
    }

    /// Whether the dialect has frames of two-phase acknowledgement; else senders are only answered once the message is
    /// saved, and receivers get no preview.
    pub fn supports_two_phase(self) -> bool {
        self == Self::Typed
    }

    /// Never panics; a frame that cannot be read is a refusal.
    pub fn decode(self, packet: Packet<'_>) -> Result<Decoded, DecodeError> {
        match (self, packet) {
            (Self::Typed, Packet::Text(text)) => typed::decode(text),
            (Self::Typed, Packet::Binary(_)) => {
                Err(DecodeError { reason: Reason::BadJson, echo: Echo::default() })
            }
            (Self::Numbered { .. }, packet) => numbered::decode(packet),
            (Self::Dotted { binary }, packet) => dotted::decode(packet, binary),
        }
    }

    /// The answer to a successful sign-in.
    pub fn welcome(
        self,
        caller: &Caller,
        limits: &ClientLimits,
        echo: &Echo,
        now: Millis,
    ) -> Option<Frame> {
        match self {
            Self::Typed => Some(typed::auth_ok(caller, limits, now).into()),
            Self::Numbered { nested } => numbered::welcome(caller, echo, nested),
            Self::Dotted { binary } => Some(dotted::validated(caller, echo, binary)),
        }
    }

    pub fn registered(self, user: &User, echo: &Echo) -> Option<Frame> {
        match self {
            Self::Typed | Self::Numbered { .. } => None,
            Self::Dotted { binary } => Some(dotted::registered(user, echo, binary)),
        }
    }

    pub fn signed_in(self, tokens: &Tokens, caller: &Caller, echo: &Echo) -> Option<Frame> {
        match self {
            Self::Typed | Self::Numbered { .. } => None,
            Self::Dotted { binary } => Some(dotted::signed_in(tokens, caller, echo, binary)),
        }
    }

    /// The answer to a command, if it has one. A resend has none here: the session sends its messages and `page_end`.
    pub fn reply(
        self,
        reply: &Reply,
        limits: &ClientLimits,
        echo: &Echo,
        now: Millis,
    ) -> Option<Frame> {
        match (self, reply) {
            (_, Reply::Resend(_)) => None,
            (_, Reply::Authenticated(caller)) => self.welcome(caller, limits, echo, now),
            (Self::Typed, reply) => typed::reply(reply, echo, now).map(Frame::from),
            (Self::Numbered { nested }, reply) => numbered::reply(reply, echo, nested),
            (Self::Dotted { binary }, reply) => dotted::reply(reply, echo, now, binary),
        }
    }

    pub fn refusal(self, reason: Reason, echo: &Echo, now: Millis) -> Frame {
        match self {
            Self::Typed => typed::refusal(reason, echo, now).into(),
            Self::Numbered { nested } => numbered::refusal(reason, echo, nested),
            Self::Dotted { binary } => dotted::refusal(reason, echo, binary),
        }
    }

    /// The refusal of a token.
    pub fn auth_fail(self, reason: Reason, echo: &Echo, now: Millis) -> Frame {
        match self {
            Self::Typed => typed::auth_fail(reason, now).into(),
            Self::Numbered { .. } | Self::Dotted { .. } => self.refusal(reason, echo, now),
        }
    }

    /// The last frame before the server closes a connection.
    pub fn close_notice(self, reason: Reason, echo: &Echo, now: Millis) -> Frame {
        match self {
            Self::Typed => typed::refusal(reason, echo, now).into(),
            Self::Numbered { nested } => numbered::close_notice(reason, echo, nested),
            Self::Dotted { binary } => dotted::close_notice(reason, echo, binary),
        }
    }

    /// `None` if the dialect has no frame for the event.
    pub fn event(self, event: &Event, view: View) -> Option<Frame> {
        match self {
            Self::Typed => typed::event(event, view).map(Frame::from),
            Self::Numbered { nested } => numbered::event(event, view, nested),
            Self::Dotted { binary } => dotted::event(event, view, binary),
        }
    }

    /// A message that is sent again, as part of a resend.
    pub fn message(self, message: &Message, is_important: bool) -> Frame {
        match self {
            Self::Typed => typed::message(message, is_important).into(),
            Self::Numbered { nested } => numbered::message(message, nested),
            Self::Dotted { binary } => dotted::message(message, binary),
        }
    }

    /// The end of a page of a resend.
    pub fn page_end(self, has_more: bool, now: Millis) -> Option<Frame> {
        match self {
            Self::Typed => Some(typed::resend_done(has_more, now).into()),
            Self::Numbered { .. } | Self::Dotted { .. } => None,
        }
    }

    /// A heartbeat, for clients that do not see the ping of WebSocket.
    pub fn ping(self, now: Millis) -> Option<Frame> {
        match self {
            Self::Typed => Some(typed::ping(now).into()),
            Self::Numbered { .. } | Self::Dotted { .. } => None,
        }
    }
}
