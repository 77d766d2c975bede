//! The one flat object that most frames of the server are.

use std::collections::BTreeMap;
use std::fmt::Display;

use nexo_chat::command::Target;
use nexo_chat::ids::{ConversationId, GroupId, UserId};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::encode::Limits;
use crate::shapes;

/// The fields of the frames the server sends; what is absent is left out. Ids and seqs go out as
/// strings, so that no client loses digits.
#[derive(Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Frame<'a> {
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
    pub(super) server_msg_id: Option<Shown<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub(super) msg_seq: Option<Shown<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = shapes::msg_type)]
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
    pub(super) reply_to_server_msg_id: Option<Shown<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub(super) change_seq: Option<Shown<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) revoked: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) important: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) preview: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = shapes::reason)]
    pub(super) reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub(super) message: Option<Shown<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) has_more: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) token_expires_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Limits)]
    pub(super) limits: Option<&'a Limits>,
    pub(super) ts: u64,
}

/// Something written as the text it shows itself as.
pub(super) struct Shown<'a>(pub(super) &'a dyn Display);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

/// A frame as text.
pub(super) fn text(frame: &impl Serialize) -> String {
    serde_json::to_string(frame).expect("strings and numbers always serialize")
}

/// Where a frame belongs: it names the group, or else the other person.
pub(super) enum Place {
    Group(GroupId),
    Person(Option<UserId>),
}

impl Place {
    /// The place of what `from` says in a conversation.
    pub(super) fn of(conversation: &ConversationId, from: &UserId) -> Self {
        match conversation.group() {
            Some(group) => Self::Group(group),
            None => Self::Person(conversation.peer_of(from)),
        }
    }

    pub(super) fn group(&self) -> Option<&str> {
        match self {
            Self::Group(group) => Some(group.as_str()),
            Self::Person(_) => None,
        }
    }

    pub(super) fn to(&self) -> Option<&str> {
        match self {
            Self::Group(_) => None,
            Self::Person(user) => user.as_ref().map(UserId::as_str),
        }
    }
}

impl From<&Target> for Place {
    fn from(target: &Target) -> Self {
        match target {
            Target::User(user) => Self::Person(Some(user.clone())),
            Target::Group(group) => Self::Group(group.clone()),
        }
    }
}
