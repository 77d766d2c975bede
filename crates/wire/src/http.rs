//! The bodies of HTTP answers: `{code, message, data, request_id}`, and `reason` on errors.

use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::auth::Tokens;
use nexo_chat::model::{Change, ChangeKind, Message, Standing, User};
use nexo_chat::read::Line;
use serde::{Serialize, Serializer};

use crate::codes;
use crate::typed;

/// The envelope of every answer.
#[derive(Debug, Serialize)]
pub struct Envelope<T> {
    /// Zero for success, else the numbered dialect's code.
    pub code: i32,
    /// `ok`, or what went wrong in words.
    pub message: String,
    /// The reason's word, on errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<T>,
    /// For lists: whether more follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
    /// Names this request in the server's log.
    pub request_id: String,
}

impl<T> Envelope<T> {
    /// A success.
    pub fn ok(data: T, request_id: String) -> Self {
        let message = "ok".to_owned();
        Self { code: 0, message, reason: None, data: Some(data), has_more: None, request_id }
    }
}

impl Envelope<()> {
    /// A refusal.
    pub fn refused(reason: Reason, request_id: String) -> Self {
        let row = codes::row(reason);
        Self {
            code: row.numbered,
            message: reason.to_string(),
            reason: Some(row.typed),
            data: None,
            has_more: None,
            request_id,
        }
    }
}

/// A person, as document 003 shows them; `user_id` repeats `id` for those who look for that name.
#[derive(Debug, Serialize)]
pub struct UserInfo {
    id: String,
    user_id: String,
    nickname: String,
    avatar: String,
    extra: String,
    created_at: u64,
}

impl From<&User> for UserInfo {
    fn from(user: &User) -> Self {
        Self {
            id: user.id.to_string(),
            user_id: user.id.to_string(),
            nickname: user.profile.nickname.clone(),
            avatar: user.profile.avatar.clone(),
            extra: user.profile.extra.clone(),
            created_at: user.created_at.0,
        }
    }
}

/// The answer to signing in and to refreshing.
#[derive(Debug, Serialize)]
pub struct SignedIn {
    token: String,
    refresh_token: String,
    /// Seconds until the token dies.
    expires_in: u64,
    user_info: UserInfo,
}

impl SignedIn {
    /// Tokens and whose they are.
    pub fn new(tokens: Tokens, user: &User) -> Self {
        Self {
            token: tokens.access,
            refresh_token: tokens.refresh,
            expires_in: tokens.expires_in_ms / 1000,
            user_info: user.into(),
        }
    }
}

/// A stored message, as document 000's paths show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageEntity {
    id: String,
    chat_type: &'static str,
    single_chat_id: String,
    from_user_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_user_id: Option<String>,
    msg_type: &'static str,
    content: String,
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    extra: std::collections::BTreeMap<String, String>,
    /// 1 saved, 4 revoked, by the numbers of document 000.
    status: i32,
    msg_seq: String,
    client_msg_id: String,
    server_msg_id: String,
    created_at: u64,
    updated_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<u64>,
}

impl From<&Message> for MessageEntity {
    fn from(message: &Message) -> Self {
        Self {
            id: message.id.to_string(),
            chat_type: "SINGLE",
            single_chat_id: message.conversation.to_string(),
            from_user_id: message.sender.to_string(),
            to_user_id: message.conversation.peer_of(&message.sender).map(|to| to.to_string()),
            msg_type: typed::kind_name(message.content.kind),
            content: String::from_utf8_lossy(&message.content.body).into_owned(),
            extra: message.content.extra.clone(),
            status: if message.recalled.is_some() { 4 } else { 1 },
            msg_seq: message.seq.to_string(),
            client_msg_id: message.client_id.as_str().to_owned(),
            server_msg_id: message.id.to_string(),
            created_at: message.sent_at.0,
            updated_at: message.recalled.as_ref().map_or(message.sent_at, |recall| recall.at).0,
            revoked_at: message.recalled.as_ref().map(|recall| recall.at.0),
        }
    }
}

/// A change, in the words of document 003.
#[derive(Debug, Serialize)]
pub struct ChangeEntity {
    conversation_id: String,
    change_seq: u64,
    kind: &'static str,
    operator_id: String,
    server_msg_id: String,
    seq: u64,
    at: u64,
}

impl From<&Arc<Change>> for ChangeEntity {
    fn from(change: &Arc<Change>) -> Self {
        let ChangeKind::Recalled { message, seq, .. } = &change.kind;
        Self {
            conversation_id: change.conversation.to_string(),
            change_seq: change.seq.0,
            kind: "recalled",
            operator_id: change.by.to_string(),
            server_msg_id: message.to_string(),
            seq: seq.0,
            at: change.at.0,
        }
    }
}

/// A line of the conversation list, as document 000's paths show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationLine {
    single_chat_id: String,
    peer_user_id: String,
    updated_at: u64,
    unread_count: u64,
    max_msg_seq: String,
    my_last_read_msg_seq: String,
    peer_last_read_msg_seq: String,
    last_message: Option<MessageEntity>,
}

impl From<&Line> for ConversationLine {
    fn from(line: &Line) -> Self {
        Self {
            single_chat_id: line.standing.conversation.to_string(),
            peer_user_id: line.peer.to_string(),
            updated_at: line.standing.updated_at.0,
            unread_count: line.standing.unread(),
            max_msg_seq: line.standing.visible_max().to_string(),
            my_last_read_msg_seq: line.standing.cursors.read.to_string(),
            peer_last_read_msg_seq: line.peer_read.to_string(),
            last_message: line.last_message.as_deref().map(MessageEntity::from),
        }
    }
}

/// How far both people of a private conversation have read.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberState {
    single_chat_id: String,
    peer_user_id: String,
    my_last_read_msg_seq: String,
    peer_last_read_msg_seq: String,
}

impl From<&Line> for MemberState {
    fn from(line: &Line) -> Self {
        Self {
            single_chat_id: line.standing.conversation.to_string(),
            peer_user_id: line.peer.to_string(),
            my_last_read_msg_seq: line.standing.cursors.read.to_string(),
            peer_last_read_msg_seq: line.peer_read.to_string(),
        }
    }
}

/// Where the caller stands in one conversation.
#[derive(Debug, Serialize)]
pub struct Head {
    conversation_id: String,
    min_seq: u64,
    max_seq: u64,
    delivered_seq: u64,
    read_seq: u64,
    change_seq: u64,
    unread_count: u64,
    updated_at: u64,
}

impl From<&Standing> for Head {
    fn from(standing: &Standing) -> Self {
        Self {
            conversation_id: standing.conversation.to_string(),
            min_seq: standing.window.min.0,
            max_seq: standing.visible_max().0,
            delivered_seq: standing.cursors.delivered.0,
            read_seq: standing.cursors.read.0,
            change_seq: standing.change_seq.0,
            unread_count: standing.unread(),
            updated_at: standing.updated_at.0,
        }
    }
}

/// A page of heads and where the next one starts.
#[derive(Debug, Serialize)]
pub struct Heads {
    /// By conversation id.
    pub heads: Vec<Head>,
    /// Whether more follow.
    pub has_more: bool,
    /// Give it as `cursor` to get them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Nothing, as an empty object.
#[derive(Debug, Default)]
pub struct Nothing;

impl Serialize for Nothing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        serializer.serialize_map(Some(0))?.end()
    }
}
