//! The three dialects as one choice: a connection has one for life, and nothing outside this crate
//! and the handshake asks which.

use nexo_chat::Reason;
use nexo_chat::auth::Tokens;
use nexo_chat::command::{Command, Event, Reply};
use nexo_chat::ids::{Millis, Platform};
use nexo_chat::model::{Caller, Message, User};

pub use crate::typed::Limits;
use crate::{dotted, numbered, typed};

/// How a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Text by `type`.
    #[default]
    Typed,
    /// Text by number.
    Numbered {
        /// Whether `data` is a nested object instead of base64.
        nested: bool,
    },
    /// By `cmd`.
    Dotted {
        /// Whether it is protobuf instead of JSON.
        binary: bool,
    },
}

/// What came in.
#[derive(Clone, Copy, Debug)]
pub enum Packet<'a> {
    /// Text.
    Text(&'a str),
    /// Bytes.
    Binary(&'a [u8]),
}

/// What goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
}

impl From<String> for Frame {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// What a client may say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inbound {
    /// Who I am.
    Auth {
        /// The access token.
        token: String,
        /// Whether saying it again carries on with the newer token.
        renews: bool,
    },
    /// Make me an account; only before AUTH.
    Register(NewAccount),
    /// Who I am, by password; only before AUTH.
    Login {
        /// Who.
        user_id: String,
        /// Their password.
        password: String,
        /// On what device.
        platform: Platform,
    },
    /// Anything else; only after AUTH, except a ping.
    Command(Command),
}

/// An account to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAccount {
    /// The wanted id; made by the server if empty.
    pub user_id: String,
    /// The password.
    pub password: String,
    /// The name shown; the id if empty.
    pub nickname: String,
    /// The picture.
    pub avatar: String,
}

/// What an answer repeats of the frame it answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    /// The client's name for its message.
    pub client_msg_id: Option<String>,
    /// The message an ACK spoke of.
    pub server_msg_id: Option<String>,
    /// What the call was called.
    pub call: Call,
}

/// How a dialect names a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Call {
    /// Not at all.
    #[default]
    None,
    /// By number.
    Numbered {
        /// The operation.
        req_identifier: i64,
        /// The client's counter.
        msg_incr: String,
        /// The client's name for it.
        operation_id: String,
    },
    /// By command.
    Dotted {
        /// The operation.
        cmd: String,
        /// The client's name for it.
        request_id: String,
    },
}

/// A frame understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// What it says.
    pub inbound: Inbound,
    /// What its answer repeats.
    pub echo: Echo,
    /// Who it says it is from, where a frame can say so: it must be whoever connected.
    pub claimed: Option<Box<Claimed>>,
}

/// Who a frame says it is from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claimed {
    /// The sender's id.
    pub user: Option<String>,
    /// The sender's token.
    pub token: Option<String>,
}

/// A frame not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub reason: Reason,
    /// What the answer repeats.
    pub echo: Echo,
}

/// How somebody looks at an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct View {
    /// It speaks to them in particular.
    pub is_important: bool,
    /// It is their own doing, on another device.
    pub is_own: bool,
    /// They are only told that there is a message.
    pub is_notice: bool,
}

impl Dialect {
    /// Its name, for metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Typed => "typed",
            Self::Numbered { .. } => "numbered",
            Self::Dotted { .. } => "dotted",
        }
    }

    /// The dialect of a connection that did not name one at the handshake, by its first frame.
    pub fn of(first: Packet<'_>) -> Self {
        match first {
            Packet::Binary(_) => Self::Dotted { binary: true },
            Packet::Text(text) if dotted::is_dotted(text) => Self::Dotted { binary: false },
            Packet::Text(_) => Self::Typed,
        }
    }

    /// Whether the server brings by itself what a device has missed; else the client pulls it.
    pub fn is_brought_up(self) -> bool {
        self == Self::Typed
    }

    /// Whether it has a word for what is accepted and not saved yet; else senders are answered when
    /// it is saved, and nobody is shown it before.
    pub fn knows_accepted(self) -> bool {
        self == Self::Typed
    }

    /// Reads a frame. Never panics; whatever cannot be read is a refusal.
    pub fn decode(self, packet: Packet<'_>) -> Result<Decoded, Refused> {
        match (self, packet) {
            (Self::Typed, Packet::Text(text)) => typed::decode(text),
            (Self::Typed, Packet::Binary(_)) => {
                Err(Refused { reason: Reason::BadJson, echo: Echo::default() })
            }
            (Self::Numbered { .. }, packet) => numbered::decode(packet),
            (Self::Dotted { binary }, packet) => dotted::decode(packet, binary),
        }
    }

    /// Says that the caller is let in.
    pub fn welcome(
        self,
        caller: &Caller,
        limits: &Limits,
        echo: &Echo,
        now: Millis,
    ) -> Option<Frame> {
        match self {
            Self::Typed => Some(typed::auth_ok(caller, limits, now).into()),
            Self::Numbered { nested } => numbered::welcome(caller, echo, nested),
            Self::Dotted { binary } => Some(dotted::validated(caller, echo, binary)),
        }
    }

    /// Says that an account was made.
    pub fn registered(self, user: &User, echo: &Echo) -> Option<Frame> {
        match self {
            Self::Typed | Self::Numbered { .. } => None,
            Self::Dotted { binary } => Some(dotted::registered(user, echo, binary)),
        }
    }

    /// Gives the tokens of a new sign-in.
    pub fn signed_in(self, tokens: &Tokens, caller: &Caller, echo: &Echo) -> Option<Frame> {
        match self {
            Self::Typed | Self::Numbered { .. } => None,
            Self::Dotted { binary } => Some(dotted::signed_in(tokens, caller, echo, binary)),
        }
    }

    /// The answer to a command, if there is anything to say. A resend is not said at once: its
    /// messages and its end come one by one.
    pub fn reply(self, reply: &Reply, limits: &Limits, echo: &Echo, now: Millis) -> Option<Frame> {
        match (self, reply) {
            (_, Reply::Resend(_)) => None,
            (_, Reply::Authenticated(caller)) => self.welcome(caller, limits, echo, now),
            (Self::Typed, reply) => typed::reply(reply, echo, now).map(Frame::from),
            (Self::Numbered { nested }, reply) => numbered::reply(reply, echo, nested),
            (Self::Dotted { binary }, reply) => dotted::reply(reply, echo, now, binary),
        }
    }

    /// A request was refused.
    pub fn refusal(self, reason: Reason, echo: &Echo, now: Millis) -> Frame {
        match self {
            Self::Typed => typed::refusal(reason, echo, now).into(),
            Self::Numbered { nested } => numbered::refusal(reason, echo, nested),
            Self::Dotted { binary } => dotted::refusal(reason, echo, binary),
        }
    }

    /// The token was not good.
    pub fn auth_fail(self, reason: Reason, echo: &Echo, now: Millis) -> Frame {
        match self {
            Self::Typed => typed::auth_fail(reason, now).into(),
            Self::Numbered { .. } | Self::Dotted { .. } => self.refusal(reason, echo, now),
        }
    }

    /// The last word before a connection ends that nobody asked to end.
    pub fn farewell(self, reason: Reason, echo: &Echo, now: Millis) -> Frame {
        match self {
            Self::Typed => typed::refusal(reason, echo, now).into(),
            Self::Numbered { nested } => numbered::farewell(reason, echo, nested),
            Self::Dotted { binary } => dotted::farewell(reason, echo, binary),
        }
    }

    /// An event as somebody hears it; `None` if this dialect has no word for it.
    pub fn event(self, event: &Event, view: View) -> Option<Frame> {
        match self {
            Self::Typed => typed::event(event, view).map(Frame::from),
            Self::Numbered { nested } => numbered::event(event, view, nested),
            Self::Dotted { binary } => dotted::event(event, view, binary),
        }
    }

    /// A message that is brought again.
    pub fn message(self, message: &Message, is_important: bool) -> Frame {
        match self {
            Self::Typed => typed::message(message, is_important).into(),
            Self::Numbered { nested } => numbered::message(message, nested),
            Self::Dotted { binary } => dotted::message(message, binary),
        }
    }

    /// A page of what was missed is complete.
    pub fn page_end(self, has_more: bool, now: Millis) -> Option<Frame> {
        match self {
            Self::Typed => Some(typed::resend_done(has_more, now).into()),
            Self::Numbered { .. } | Self::Dotted { .. } => None,
        }
    }

    /// Asks whether anybody is there, for clients that do not see the transport's own ping.
    pub fn ping(self, now: Millis) -> Option<Frame> {
        match self {
            Self::Typed => Some(typed::ping(now).into()),
            Self::Numbered { .. } | Self::Dotted { .. } => None,
        }
    }
}
