//! Messages, and who has read them.

use std::collections::BTreeMap;

use nexo_chat::Reason;
use nexo_chat::ids::Seq;
use nexo_chat::model::{Content, ContentKind, Message};
use nexo_chat::read::Reader;
use serde::Serialize;
use utoipa::ToSchema;

use super::session_type;
use crate::{mentions, shapes};

/// The field that holds the payload of each content type.
const PAYLOADS: [(&str, ContentKind); 6] = [
    ("text", ContentKind::TEXT),
    ("image", ContentKind::IMAGE),
    ("video", ContentKind::VIDEO),
    ("audio", ContentKind::AUDIO),
    ("file", ContentKind::FILE),
    ("custom", ContentKind::CUSTOM),
];

/// Reads a content: exactly one payload, and the one its type asks for.
pub fn content(msg_type: i32, payloads: BTreeMap<String, String>) -> Result<Content, Reason> {
    let known = PAYLOADS.iter().find(|(_, kind)| kind.0 == msg_type);
    let (name, kind) = known.ok_or(Reason::UnknownMsgType)?;
    let mut given = payloads.into_iter();
    match (given.next(), given.next()) {
        (Some((field, body)), None) if field == *name => {
            Ok(Content { kind: *kind, ..Content::text(body) })
        }
        (None, _) => Err(Reason::MissingBody),
        _ => Err(Reason::InvalidParam),
    }
}

/// A stored message.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessageInfo {
    id: String,
    server_msg_id: String,
    conversation_id: String,
    seq: u64,
    client_msg_id: String,
    sender_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    recv_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_id: Option<String>,
    #[schema(schema_with = shapes::session_type)]
    session_type: i32,
    #[schema(schema_with = shapes::msg_type_number)]
    msg_type: i32,
    /// Empty once it is recalled.
    content: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mentions: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to_server_msg_id: Option<String>,
    send_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    recall_at: Option<u64>,
}

impl MessageInfo {
    /// What it says.
    pub(crate) fn content(&self) -> &BTreeMap<&'static str, String> {
        &self.content
    }
}

impl From<&Message> for MessageInfo {
    fn from(message: &Message) -> Self {
        let kind = message.content.kind;
        let name = PAYLOADS.iter().find(|(_, known)| *known == kind).map_or("custom", |(n, _)| n);
        let body = String::from_utf8_lossy(&message.content.body).into_owned();
        let is_there = message.recalled.is_none();
        let answered = message.content.reply_to.as_ref();
        Self {
            id: message.id.to_string(),
            server_msg_id: message.id.to_string(),
            conversation_id: message.conversation.to_string(),
            seq: message.seq.0,
            client_msg_id: message.client_id.as_str().to_owned(),
            sender_id: message.sender.to_string(),
            recv_id: message.conversation.peer_of(&message.sender).map(|to| to.to_string()),
            group_id: message.conversation.group().map(|group| group.to_string()),
            session_type: session_type(&message.conversation),
            msg_type: kind.0,
            content: is_there.then_some((name, body)).into_iter().collect(),
            extra: message.content.extra.clone(),
            mentions: mentions::names(&message.content).into_iter().map(Into::into).collect(),
            reply_to_server_msg_id: answered.map(|reply| reply.message.to_string()),
            send_at: message.sent_at.0,
            recall_at: message.recalled.as_ref().map(|recall| recall.at.0),
        }
    }
}

/// A range of messages and where the conversation ends.
#[derive(Debug, Serialize, ToSchema)]
pub struct Pulled {
    /// Oldest first.
    pub messages: Vec<MessageInfo>,
    /// The newest place the caller may see.
    pub max_seq: u64,
    /// Whether the range goes on.
    pub has_more: bool,
}

/// Where a conversation ends.
#[derive(Debug, Serialize, ToSchema)]
pub struct MaxSeq {
    /// The newest place the caller may see.
    pub max_seq: u64,
}

/// Who has read a message, as far as a page goes.
#[derive(Debug, Serialize, ToSchema)]
pub struct Readers {
    /// By user id.
    pub readers: Vec<ReaderInfo>,
    /// Whether more follow.
    pub has_more: bool,
    /// Give it as `cursor` to get them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Somebody who could read a message.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReaderInfo {
    user_id: String,
    has_read: bool,
}

impl From<&Reader> for ReaderInfo {
    fn from(reader: &Reader) -> Self {
        Self { user_id: reader.user.to_string(), has_read: reader.has_read }
    }
}

/// Places of messages that speak to the caller in particular.
#[derive(Debug, Serialize, ToSchema)]
pub struct Mentioned {
    seqs: Vec<u64>,
    /// Whether more follow.
    has_more: bool,
}

impl Mentioned {
    /// These places, and whether there are more.
    pub fn new(seqs: &[Seq], has_more: bool) -> Self {
        Self { seqs: seqs.iter().map(|seq| seq.0).collect(), has_more }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_has_exactly_the_payload_of_its_type() {
        let check = |msg_type, fields: &[&str], expect: Result<i32, Reason>| {
            let payloads = fields.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect();
            let kind = content(msg_type, payloads).map(|content| content.kind.0);
            assert_eq!(kind, expect, "{msg_type} {fields:?}");
        };
        check(1, &["text"], Ok(1));
        check(100, &["custom"], Ok(100));
        check(2, &["text"], Err(Reason::InvalidParam));
        check(1, &["text", "image"], Err(Reason::InvalidParam));
        check(1, &[], Err(Reason::MissingBody));
        check(9, &["text"], Err(Reason::UnknownMsgType));
    }
}
