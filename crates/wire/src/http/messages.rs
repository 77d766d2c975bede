//! Messages: sent, recalled, read, and who has read them.

use std::collections::BTreeMap;

use nexo_chat::command::{NewMessage, Target};
use nexo_chat::ids::{ClientMsgId, Seq};
use nexo_chat::model::{Content, Message};
use nexo_chat::read::MessageReader;
use nexo_chat::{DetailedReason, Reason};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::session_type::{SESSION_GROUP, SESSION_PRIVATE, session_type};
use crate::enum_values::CONTENT_KINDS;
use crate::http::damaged::DamagedRange;
use crate::{field_schemas, mentions, parse_ids};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecallBody {
    pub server_msg_id: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "client_msg_id": "1", "session_type": 1, "recv_id": "bob", "msg_type": 1, "content": { "text": "Hello" },
}))]
pub struct SendBody {
    /// Your name for this message, up to 128 bytes. The same name on every retry.
    pub client_msg_id: String,
    /// Whom it is for, in a private conversation.
    pub recv_id: Option<String>,
    /// Which group it is for.
    pub group_id: Option<String>,
    #[schema(schema_with = field_schemas::session_type)]
    pub session_type: i32,
    #[schema(schema_with = field_schemas::msg_type_number)]
    pub msg_type: i32,
    /// Exactly one field, named after the type: `text`, `image`, `video`, `audio`, `file` or `custom`.
    pub content: BTreeMap<String, String>,
    /// Your app's own options, strings under names; the server carries them along.
    pub extra: Option<BTreeMap<String, String>>,
    /// User ids, or `@all` by owner and admins.
    #[serde(default)]
    pub mentions: Vec<String>,
    pub reply_to_server_msg_id: Option<String>,
}

impl SendBody {
    fn target(&self) -> Result<Target, DetailedReason> {
        match self.session_type {
            SESSION_PRIVATE => {
                let to = self.recv_id.as_deref().filter(|to| !to.is_empty());
                Ok(Target::User(parse_ids::user_id(to.ok_or(Reason::MissingTo)?)?))
            }
            SESSION_GROUP => Ok(Target::Group(parse_ids::group_id(self.group_id.as_deref())?)),
            _ => Err(DetailedReason::field("session_type")),
        }
    }

    /// `marks_read`: the sender has read everything before this message.
    pub fn into_message(self, marks_read: bool) -> Result<NewMessage, DetailedReason> {
        let to = self.target()?;
        let client_id = ClientMsgId::parse(&self.client_msg_id)?;
        let mut content = content(self.msg_type, self.content)?;
        content.extra = self.extra.unwrap_or_default();
        mentions::add_mentions(&mut content, self.mentions.iter().map(String::as_str))?;
        let reply_to = mentions::message_id(self.reply_to_server_msg_id.as_deref())?;
        Ok(NewMessage { to, client_id, content, reply_to, marks_read })
    }
}

#[derive(Deserialize, IntoParams)]
pub struct PullParams {
    pub conversation_id: String,
    #[serde(default)]
    pub begin_seq: u64,
    /// Zero is the end.
    #[serde(default)]
    pub end_seq: u64,
    /// How many at most: up to 100, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    pub limit: Option<usize>,
}

#[derive(Deserialize, IntoParams)]
pub struct ReadersParams {
    pub server_msg_id: String,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// How many at most: up to 200, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    pub limit: Option<usize>,
}

#[derive(Deserialize, IntoParams)]
pub struct MentionsParams {
    pub conversation_id: String,
    #[serde(default)]
    pub begin_seq: u64,
    /// How many at most: up to 1,000, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    pub limit: Option<usize>,
}

/// Decodes a content: it must have exactly one payload, in the field named after its type.
pub fn content(
    msg_type: i32,
    mut payloads: BTreeMap<String, String>,
) -> Result<Content, DetailedReason> {
    let known = CONTENT_KINDS.iter().find(|(_, kind)| kind.0 == msg_type);
    let (name, kind) = known.ok_or(Reason::UnknownMsgType)?;
    let body = payloads.remove(*name);
    if let Some(field) = payloads.keys().next() {
        let detail = format!("`content.{field}`: the content of msg_type {msg_type} is `{name}`");
        return Err(DetailedReason::new(Reason::InvalidParam, detail));
    }
    Ok(Content { kind: *kind, ..Content::text(body.ok_or(Reason::MissingBody)?) })
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
    #[schema(schema_with = field_schemas::session_type)]
    session_type: i32,
    #[schema(schema_with = field_schemas::msg_type_number)]
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
    pub(crate) fn content(&self) -> &BTreeMap<&'static str, String> {
        &self.content
    }
}

impl From<&Message> for MessageInfo {
    fn from(message: &Message) -> Self {
        let kind = message.content.kind;
        let name =
            CONTENT_KINDS.iter().find(|(_, known)| *known == kind).map_or("custom", |(n, _)| n);
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
            mentions: mentions::mention_names(&message.content)
                .into_iter()
                .map(Into::into)
                .collect(),
            reply_to_server_msg_id: answered.map(|reply| reply.message.to_string()),
            send_at: message.sent_at.0,
            recall_at: message.recalled.as_ref().map(|recall| recall.at.0),
        }
    }
}

/// A range of messages and where the conversation ends.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Pulled)]
pub struct MessageRange {
    /// Oldest first.
    pub messages: Vec<MessageInfo>,
    /// The newest place the caller may see.
    pub max_seq: u64,
    /// Whether the range goes on.
    pub has_more: bool,
    /// Messages of the page that cannot be read any more; the next page begins behind them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub damaged: Vec<DamagedRange>,
}

/// Where a conversation ends.
#[derive(Debug, Serialize, ToSchema)]
pub struct MaxSeq {
    /// The newest place the caller may see.
    pub max_seq: u64,
}

/// Who has read a message, as far as a page goes.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Readers)]
pub struct ReaderPage {
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

impl From<&MessageReader> for ReaderInfo {
    fn from(reader: &MessageReader) -> Self {
        Self { user_id: reader.user.to_string(), has_read: reader.has_read }
    }
}

/// Places of messages that speak to the caller in particular.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Mentioned)]
pub struct MentionPage {
    seqs: Vec<u64>,
    /// Whether more follow.
    has_more: bool,
}

impl MentionPage {
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
            assert_eq!(kind.map_err(Reason::from), expect, "{msg_type} {fields:?}");
        };
        check(1, &["text"], Ok(1));
        check(100, &["custom"], Ok(100));
        check(2, &["text"], Err(Reason::InvalidParam));
        check(1, &["text", "image"], Err(Reason::InvalidParam));
        check(1, &[], Err(Reason::MissingBody));
        check(9, &["text"], Err(Reason::UnknownMsgType));
    }
}
