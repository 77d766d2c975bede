//! Conversations and what their owner chose.

use nexo_chat::conversations::{After, Line, With};
use nexo_chat::ids::ConversationId;
use nexo_chat::model::{Settings, Standing};
use serde::Serialize;
use utoipa::ToSchema;

use super::{MessageInfo, session_type};
use crate::{shapes, words};

/// A conversation of the caller: with one person, or of a group.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is told on its own")]
pub struct ConversationInfo {
    conversation_id: String,
    #[schema(schema_with = shapes::session_type)]
    conversation_type: i32,
    #[serde(flatten)]
    with: WithInfo,
    #[schema(schema_with = shapes::receive_number)]
    recv_msg_opt: i32,
    is_pinned: bool,
    /// The app's own data of the caller, opaque to the server.
    extra: String,
    /// Whether the caller is still in it.
    is_active: bool,
    /// Whether its group was dissolved or dismissed: then it is in no list.
    is_ended: bool,
    /// Whether the caller hid it: then it is in no list until something is said.
    is_hidden: bool,
    unread_count: u64,
    mention_unread_count: u64,
    min_seq: u64,
    max_seq: u64,
    read_seq: u64,
    change_seq: u64,
    updated_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_message: Option<MessageInfo>,
}

/// With whom a conversation is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum WithInfo {
    Peer {
        peer_user_id: String,
        peer_nickname: String,
        peer_avatar: String,
        peer_delivered_seq: u64,
        peer_read_seq: u64,
    },
    Group {
        group_id: String,
        group_name: String,
        group_avatar: String,
        member_count: u32,
    },
}

impl From<&With> for WithInfo {
    fn from(with: &With) -> Self {
        match with {
            With::Peer { user, profile, cursors } => Self::Peer {
                peer_user_id: user.to_string(),
                peer_nickname: profile.nickname.clone(),
                peer_avatar: profile.avatar.clone(),
                peer_delivered_seq: cursors.delivered.0,
                peer_read_seq: cursors.read.0,
            },
            With::Group(group) => Self::Group {
                group_id: group.id.to_string(),
                group_name: group.profile.name.clone(),
                group_avatar: group.profile.avatar.clone(),
                member_count: group.members,
            },
        }
    }
}

impl ConversationInfo {
    /// A line of the list, with its last message or without.
    pub fn new(line: &Line, with_last_message: bool) -> Self {
        let last = line.last_message.as_deref().filter(|_| with_last_message);
        let standing = &line.standing;
        Self {
            conversation_id: standing.conversation.to_string(),
            conversation_type: session_type(&standing.conversation),
            with: WithInfo::from(&line.with),
            recv_msg_opt: words::receive_number(standing.settings.receive),
            is_pinned: standing.settings.pinned,
            extra: standing.settings.extra.clone(),
            is_active: standing.is_active(),
            is_ended: standing.has_ended,
            is_hidden: standing.is_hidden(),
            unread_count: standing.unread(),
            mention_unread_count: line.mentions,
            min_seq: standing.window.min.0,
            max_seq: standing.visible_max().0,
            read_seq: standing.cursors.read.0,
            change_seq: standing.visible_change_max().0,
            updated_at: standing.updated_at().0,
            last_message: last.map(MessageInfo::from),
        }
    }
}

/// A page of conversations.
#[derive(Debug, Serialize, ToSchema)]
pub struct Conversations {
    /// The pinned ones first, then the latest.
    pub list: Vec<ConversationInfo>,
    /// Whether more follow.
    pub has_more: bool,
    /// Where the next page starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
}

/// The last line of a page.
#[derive(Debug, Serialize, ToSchema)]
pub struct Cursor {
    pinned: bool,
    updated_at: u64,
    conversation_id: String,
}

impl From<&After> for Cursor {
    fn from(after: &After) -> Self {
        Self {
            pinned: after.pinned.unwrap_or_default(),
            updated_at: after.updated_at.0,
            conversation_id: after.conversation.to_string(),
        }
    }
}

/// What the caller chose for a conversation.
#[derive(Debug, Serialize, ToSchema)]
pub struct Chosen {
    conversation_id: String,
    #[schema(schema_with = shapes::receive_number)]
    recv_msg_opt: i32,
    is_pinned: bool,
    extra: String,
}

impl Chosen {
    /// The choices as they are now.
    pub fn new(conversation: &ConversationId, settings: Settings) -> Self {
        Self {
            conversation_id: conversation.to_string(),
            recv_msg_opt: words::receive_number(settings.receive),
            is_pinned: settings.pinned,
            extra: settings.extra,
        }
    }
}

/// How far the caller has read.
#[derive(Debug, Serialize, ToSchema)]
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

/// How much is unread.
#[derive(Debug, Serialize, ToSchema)]
pub struct Unread {
    /// Messages of others that were not read.
    pub unread_count: u64,
}
