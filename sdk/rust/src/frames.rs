//! The frames of the typed dialect.
use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::group::Role;
use crate::reason::Reason;
use crate::types::{Address, ChangeKind, Extra, MessageType, Receive};

/// The limits of the server, from `AUTH_OK`; a rate of zero is no limit.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Limits {
    pub(crate) frame_bytes_max: usize,
    pub(crate) connection_frames_per_second: u32,
    pub(crate) user_sends_per_second: u32,
    pub(crate) idle_timeout_ms: u64,
}

/// Frames from the client.
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
    SingleChat(OutgoingChat<'a>),
    GroupChat(OutgoingChat<'a>),
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

/// The payload of a message to send.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutgoingChat<'a> {
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

/// Frames from the server. Types of a later server are `Other`.
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
    SingleChat(ChatFrame),
    GroupChat(ChatFrame),
    Ack(AckFrame),
    MessageRevoked(RevokedFrame),
    GroupChanged(GroupChangedFrame),
    GroupNotify {
        conversation_id: String,
        #[serde(deserialize_with = "seq")]
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
        #[serde(default, deserialize_with = "optional_seq")]
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
    /// Parses a frame; `None` if it is none.
    pub(crate) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// A message. A preview has no seq yet.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChatFrame {
    pub(crate) from: String,
    pub(crate) conversation_id: String,
    pub(crate) client_msg_id: String,
    pub(crate) server_msg_id: String,
    #[serde(default, deserialize_with = "optional_seq")]
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

/// The kind of an ACK.
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

/// The outcome of a message of ours, or a receipt.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AckFrame {
    #[serde(rename = "ackType")]
    pub(crate) kind: AckType,
    pub(crate) conversation_id: String,
    pub(crate) server_msg_id: String,
    #[serde(default)]
    pub(crate) client_msg_id: String,
    #[serde(default, deserialize_with = "optional_seq")]
    pub(crate) msg_seq: Option<u64>,
    pub(crate) from: Option<String>,
    pub(crate) body: Option<String>,
    #[serde(default)]
    pub(crate) ts: u64,
}

/// A recalled message.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RevokedFrame {
    pub(crate) from: String,
    pub(crate) conversation_id: String,
    pub(crate) server_msg_id: String,
    #[serde(deserialize_with = "seq")]
    pub(crate) msg_seq: u64,
    #[serde(deserialize_with = "seq")]
    pub(crate) change_seq: u64,
    #[serde(default)]
    pub(crate) ts: u64,
}

/// A change of the members or of the group.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GroupChangedFrame {
    pub(crate) event: ChangeKind,
    pub(crate) from: String,
    pub(crate) conversation_id: String,
    #[serde(deserialize_with = "seq")]
    pub(crate) change_seq: u64,
    pub(crate) user_id: Option<String>,
    pub(crate) user_ids: Option<Vec<String>>,
    #[serde(default, deserialize_with = "optional_seq")]
    pub(crate) msg_seq: Option<u64>,
    pub(crate) role: Option<Role>,
    pub(crate) muted_until: Option<i64>,
    pub(crate) on: Option<bool>,
    pub(crate) group: Option<Extra>,
    #[serde(default)]
    pub(crate) ts: u64,
}

/// A seq is a string on the wire, since not every language has 64-bit integers; a number is
/// accepted, too.
#[derive(Deserialize)]
#[serde(untagged)]
enum SeqField {
    Number(u64),
    Text(String),
}

impl SeqField {
    fn number<E: serde::de::Error>(self) -> Result<u64, E> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Text(text) => text.parse().map_err(E::custom),
        }
    }
}

fn seq<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    SeqField::deserialize(from)?.number()
}

fn optional_seq<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Option::<SeqField>::deserialize(from)?.map(SeqField::number).transpose()
}
