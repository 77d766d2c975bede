//! The bodies of HTTP answers under document 003's paths: `snake_case`, seqs as numbers.

use std::collections::BTreeMap;

use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, Millis};
use nexo_chat::model::{Content, ContentKind, Message, Standing};
use nexo_chat::presence::Presence;
use nexo_chat::read::Line;
use serde::Serialize;

/// The number of a private conversation, as document 003 counts them.
pub const SESSION_PRIVATE: i32 = 1;

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
#[derive(Debug, Serialize)]
pub struct MessageInfo {
    id: String,
    server_msg_id: String,
    conversation_id: String,
    seq: u64,
    client_msg_id: String,
    sender_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    recv_id: Option<String>,
    session_type: i32,
    msg_type: i32,
    /// Empty once it is recalled.
    content: BTreeMap<&'static str, String>,
    send_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    recall_at: Option<u64>,
}

impl From<&Message> for MessageInfo {
    fn from(message: &Message) -> Self {
        let kind = message.content.kind;
        let name = PAYLOADS.iter().find(|(_, known)| *known == kind).map_or("custom", |(n, _)| n);
        let body = String::from_utf8_lossy(&message.content.body).into_owned();
        let is_there = message.recalled.is_none();
        Self {
            id: message.id.to_string(),
            server_msg_id: message.id.to_string(),
            conversation_id: message.conversation.to_string(),
            seq: message.seq.0,
            client_msg_id: message.client_id.as_str().to_owned(),
            sender_id: message.sender.to_string(),
            recv_id: message.conversation.peer_of(&message.sender).map(|to| to.to_string()),
            session_type: SESSION_PRIVATE,
            msg_type: kind.0,
            content: is_there.then_some((name, body)).into_iter().collect(),
            send_at: message.sent_at.0,
            recall_at: message.recalled.as_ref().map(|recall| recall.at.0),
        }
    }
}

/// A range of messages and where the conversation ends.
#[derive(Debug, Serialize)]
pub struct Pulled {
    /// Oldest first.
    pub messages: Vec<MessageInfo>,
    /// The newest place the caller may see.
    pub max_seq: u64,
    /// Whether the range goes on.
    pub has_more: bool,
}

/// A conversation of the caller.
#[derive(Debug, Serialize)]
pub struct ConversationInfo {
    conversation_id: String,
    conversation_type: i32,
    peer_user_id: String,
    unread_count: u64,
    max_seq: u64,
    read_seq: u64,
    peer_read_seq: u64,
    change_seq: u64,
    updated_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_message: Option<MessageInfo>,
}

impl ConversationInfo {
    /// A line of the list, with its last message or without.
    pub fn new(line: &Line, with_last_message: bool) -> Self {
        let last = line.last_message.as_deref().filter(|_| with_last_message);
        Self {
            conversation_id: line.standing.conversation.to_string(),
            conversation_type: SESSION_PRIVATE,
            peer_user_id: line.peer.to_string(),
            unread_count: line.standing.unread(),
            max_seq: line.standing.visible_max().0,
            read_seq: line.standing.cursors.read.0,
            peer_read_seq: line.peer_read.0,
            change_seq: line.standing.change_seq.0,
            updated_at: line.standing.updated_at.0,
            last_message: last.map(MessageInfo::from),
        }
    }
}

/// A page of conversations.
#[derive(Debug, Serialize)]
pub struct Conversations {
    /// The latest first.
    pub list: Vec<ConversationInfo>,
    /// Whether more follow.
    pub has_more: bool,
    /// Where the next page starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
}

/// The last line of a page.
#[derive(Debug, Serialize)]
pub struct Cursor {
    updated_at: u64,
    conversation_id: String,
}

impl Cursor {
    /// After this line.
    pub fn new(updated_at: Millis, conversation: &ConversationId) -> Self {
        Self { updated_at: updated_at.0, conversation_id: conversation.to_string() }
    }
}

/// How far the caller has read.
#[derive(Debug, Serialize)]
pub struct ReadState {
    max_seq: u64,
    read_seq: u64,
    unread_count: u64,
}

impl From<&Standing> for ReadState {
    fn from(standing: &Standing) -> Self {
        Self {
            max_seq: standing.visible_max().0,
            read_seq: standing.cursors.read.0,
            unread_count: standing.unread(),
        }
    }
}

/// Whether somebody is online, and on what devices.
#[derive(Debug, Serialize)]
pub struct OnlineStatus {
    user_id: String,
    /// 1 online, 0 not, or not the caller's to know.
    status: i32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    detail_platform_status: Vec<PlatformStatus>,
}

#[derive(Debug, Serialize)]
struct PlatformStatus {
    platform_id: i32,
    platform_name: &'static str,
}

impl From<&Presence> for OnlineStatus {
    fn from(presence: &Presence) -> Self {
        let mut platforms: Vec<i32> =
            presence.places.iter().map(|place| place.platform.0).collect();
        platforms.sort_unstable();
        platforms.dedup();
        let shown = |platform_id| PlatformStatus {
            platform_id,
            platform_name: match platform_id {
                1 => "iOS",
                2 => "Android",
                3 => "Windows",
                4 => "macOS",
                5 => "Web",
                _ => "unknown",
            },
        };
        Self {
            user_id: presence.user.to_string(),
            status: i32::from(!presence.places.is_empty()),
            detail_platform_status: platforms.into_iter().map(shown).collect(),
        }
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
