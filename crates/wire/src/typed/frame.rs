//! The flat object that most frames of the server are.

use std::collections::BTreeMap;
use std::fmt::Display;

use nexo_chat::command::Target;
use nexo_chat::ids::{ConversationId, GroupId, UserId};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::encode::ClientLimits;
use crate::field_schemas;

/// The fields of every frame together; absent ones are left out. Ids and seqs are strings, since JavaScript rounds
/// large numbers.
#[derive(Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerFrame<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ack_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) group_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) conversation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client_msg_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub(super) server_msg_id: Option<DisplayString<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub(super) msg_seq: Option<DisplayString<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = field_schemas::msg_type)]
    pub(super) msg_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = BTreeMap<String, String>)]
    pub(super) extra: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) mentions: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub(super) reply_to_server_msg_id: Option<DisplayString<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub(super) change_seq: Option<DisplayString<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) revoked: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) important: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) preview: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = field_schemas::reason)]
    pub(super) reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub(super) message: Option<DisplayString<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) has_more: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) token_expires_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ClientLimits)]
    pub(super) limits: Option<&'a ClientLimits>,
    pub(super) ts: u64,
}

/// Serializes as the string of its `Display`, without allocating it.
pub(super) struct DisplayString<'a>(pub(super) &'a dyn Display);

impl Serialize for DisplayString<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

pub(super) fn text(frame: &impl Serialize) -> String {
    serde_json::to_string(frame).expect("strings and numbers always serialize")
}

/// The `groupId` or `to` of a frame.
pub(super) enum Addressee {
    Group(GroupId),
    Peer(Option<UserId>),
}

impl Addressee {
    /// Whom `from` writes to in a conversation.
    pub(super) fn of(conversation: &ConversationId, from: &UserId) -> Self {
        match conversation.group() {
            Some(group) => Self::Group(group),
            None => Self::Peer(conversation.peer_of(from)),
        }
    }

    pub(super) fn group(&self) -> Option<&str> {
        match self {
            Self::Group(group) => Some(group.as_str()),
            Self::Peer(_) => None,
        }
    }

    pub(super) fn to(&self) -> Option<&str> {
        match self {
            Self::Group(_) => None,
            Self::Peer(user) => user.as_ref().map(UserId::as_str),
        }
    }
}

impl From<&Target> for Addressee {
    fn from(target: &Target) -> Self {
        match target {
            Target::User(user) => Self::Peer(Some(user.clone())),
            Target::Group(group) => Self::Group(group.clone()),
        }
    }
}
