//! What is said over the socket: the typed dialect.
use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::reason::Reason;
use crate::types::{Address, Extra, MessageType, Receive};

/// What one must keep to, as `AUTH_OK` tells it; a rate of zero is no limit.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Limits {
    pub(crate) frame_bytes_max: usize,
    pub(crate) connection_frames_per_second: u32,
    pub(crate) user_sends_per_second: u32,
    pub(crate) idle_timeout_ms: u64,
}

/// What we say.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub(crate) enum ClientFrame<'a> {
    Auth {
        token: &'a str,
    },
    Reauth {
        token: &'a str,
    },
    Ping,
    Pong,
    SingleChat(Said<'a>),
    GroupChat(Said<'a>),
    Ack {
        ack_type: &'a str,
        server_msg_id: &'a str,
        msg_seq: String,
    },
    Typing {
        #[serde(flatten)]
        address: &'a Address,
    },
    Resend {
        #[serde(skip_serializing_if = "HashMap::is_empty")]
        cursors: HashMap<&'a str, String>,
    },
}

impl ClientFrame<'_> {
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).expect("a frame is plain data")
    }
}

/// A message on its way to the server.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Said<'a> {
    #[serde(flatten)]
    pub(crate) address: &'a Address,
    pub(crate) client_msg_id: &'a str,
    pub(crate) body: &'a str,
    pub(crate) msg_type: MessageType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) extra: Option<&'a Extra>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mentions: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reply_to_server_msg_id: Option<&'a str>,
}

/// What the server says. What a later server makes up is `Other`.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub(crate) enum ServerFrame {
    AuthOk {
        #[serde(default)]
        limits: Limits,
    },
    AuthFail {
        reason: Reason,
    },
    Error {
        reason: Reason,
        #[serde(default)]
        message: String,
        client_msg_id: Option<String>,
    },
    Ping,
    Pong,
    SingleChat(Chat),
    GroupChat(Chat),
    Ack(Ack),
    MessageRevoked(Revoked),
    GroupChanged(GroupChanged),
    GroupNotify {
        conversation_id: String,
        #[serde(deserialize_with = "place")]
        msg_seq: u64,
    },
    GroupJoinRequest {
        group_id: String,
        from: String,
        server_msg_id: String,
        #[serde(default)]
        body: String,
    },
    GroupJoinDecision {
        group_id: String,
        from: String,
        server_msg_id: String,
        body: String,
    },
    ConversationSettings {
        conversation_id: String,
        receive: Receive,
        #[serde(default)]
        pinned: bool,
        #[serde(default, deserialize_with = "place_if_any")]
        hidden_seq: Option<u64>,
    },
    UserUpdated {
        user_id: String,
        nickname: String,
        avatar: String,
    },
    Typing {
        from: String,
        group_id: Option<String>,
    },
    ResendDone {
        #[serde(default)]
        has_more: bool,
    },
    #[serde(other)]
    Other,
}

impl ServerFrame {
    /// Reads a frame; nothing if it is none.
    pub(crate) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// Somebody said something. A preview has no place in the order yet.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Chat {
    pub(crate) from: String,
    pub(crate) conversation_id: String,
    pub(crate) client_msg_id: String,
    pub(crate) server_msg_id: String,
    #[serde(default, deserialize_with = "place_if_any")]
    pub(crate) msg_seq: Option<u64>,
    #[serde(default)]
    pub(crate) body: String,
    #[serde(default)]
    pub(crate) msg_type: MessageType,
    pub(crate) extra: Option<Extra>,
    pub(crate) mentions: Option<Vec<String>>,
    pub(crate) reply_to_server_msg_id: Option<String>,
    #[serde(default)]
    pub(crate) important: bool,
    #[serde(default)]
    pub(crate) revoked: bool,
    #[serde(default)]
    pub(crate) ts: u64,
}

/// What an acknowledgement is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AckType {
    Accepted,
    Saved,
    Dropped,
    Delivered,
    Read,
    Revoked,
    #[serde(other)]
    Other,
}

/// What became of a message of ours, or how far somebody is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ack {
    #[serde(rename = "ackType")]
    pub(crate) kind: AckType,
    pub(crate) conversation_id: String,
    pub(crate) server_msg_id: String,
    #[serde(default)]
    pub(crate) client_msg_id: String,
    #[serde(default, deserialize_with = "place_if_any")]
    pub(crate) msg_seq: Option<u64>,
    pub(crate) from: Option<String>,
    pub(crate) body: Option<String>,
    #[serde(default)]
    pub(crate) ts: u64,
}

/// A message was taken back.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Revoked {
    pub(crate) from: String,
    pub(crate) conversation_id: String,
    pub(crate) server_msg_id: String,
    #[serde(deserialize_with = "place")]
    pub(crate) msg_seq: u64,
    #[serde(deserialize_with = "place")]
    pub(crate) change_seq: u64,
    #[serde(default)]
    pub(crate) ts: u64,
}

/// People or the group changed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GroupChanged {
    pub(crate) event: String,
    pub(crate) from: String,
    pub(crate) conversation_id: String,
    #[serde(deserialize_with = "place")]
    pub(crate) change_seq: u64,
    pub(crate) user_id: Option<String>,
    pub(crate) user_ids: Option<Vec<String>>,
    #[serde(default, deserialize_with = "place_if_any")]
    pub(crate) msg_seq: Option<u64>,
    pub(crate) role: Option<String>,
    pub(crate) muted_until: Option<i64>,
    pub(crate) on: Option<bool>,
    pub(crate) group: Option<Extra>,
    #[serde(default)]
    pub(crate) ts: u64,
}

/// A place is a string on the wire, since not every language has whole numbers; a number will do.
#[derive(Deserialize)]
#[serde(untagged)]
enum Place {
    Number(u64),
    Text(String),
}

impl Place {
    fn number<E: serde::de::Error>(self) -> Result<u64, E> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Text(text) => text.parse().map_err(E::custom),
        }
    }
}

fn place<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Place::deserialize(from)?.number()
}

fn place_if_any<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Option::<Place>::deserialize(from)?.map(Place::number).transpose()
}
