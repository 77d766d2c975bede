//! Conversations, their read state, and the settings of one member.

use nexo_chat::conversations::{ConversationSummary, Counterpart, ListCursor};
use nexo_chat::ids::ConversationId;
use nexo_chat::model::{Settings, Standing};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::messages::MessageInfo;
use super::session_type::session_type;
use crate::{enum_values, field_schemas};

#[derive(Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    #[serde(default)]
    pub with_last_message: bool,
    /// How many at most: up to 100 of the list, 1,000 of all; more is cut to that. 0 is the
    /// default: 20 of the list, 1,000 of all.
    #[param(minimum = 0)]
    #[schema(minimum = 0)]
    pub limit: Option<usize>,
    /// With the two others, `next_cursor` of the page before.
    pub cursor_updated_at: Option<u64>,
    pub cursor_conversation_id: Option<String>,
    pub cursor_pinned: Option<bool>,
}

#[derive(Deserialize, IntoParams)]
pub struct ConversationParams {
    pub conversation_id: String,
}

#[derive(Deserialize, IntoParams)]
pub struct UnreadParams {
    pub conversation_id: String,
    /// As if this were the last message you have read.
    pub read_seq: Option<u64>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkReadBody {
    pub conversation_id: String,
    /// The last message you have read; beyond the end is the end.
    pub read_seq: u64,
}

#[derive(Deserialize, IntoParams)]
pub struct SettingsParams {
    /// Here or in the body.
    pub conversation_id: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingsBody {
    /// Here or in the query.
    pub conversation_id: Option<String>,
    #[schema(schema_with = field_schemas::receive_number)]
    pub recv_msg_opt: Option<i64>,
    pub is_pinned: Option<bool>,
    /// Your app's own data about it, up to 4,096 bytes; only you see it.
    pub extra: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HideBody {
    pub conversation_id: String,
    /// `false` puts it back into the list.
    #[serde(default = "yes")]
    #[schema(default = true)]
    pub hidden: bool,
    /// The newest message you have seen: a later one brings it back at once.
    pub seq: Option<u64>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteBody {
    pub conversation_id: String,
}

/// A conversation of the caller: with one person, or of a group.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "independent fields of the wire")]
pub struct ConversationInfo {
    conversation_id: String,
    #[schema(schema_with = field_schemas::session_type)]
    conversation_type: i32,
    #[serde(flatten)]
    with: CounterpartInfo,
    #[schema(schema_with = field_schemas::receive_number)]
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
#[schema(as = WithInfo)]
#[serde(untagged)]
enum CounterpartInfo {
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

impl From<&Counterpart> for CounterpartInfo {
    fn from(with: &Counterpart) -> Self {
        match with {
            Counterpart::Peer { user, profile, cursors } => Self::Peer {
                peer_user_id: user.to_string(),
                peer_nickname: profile.nickname.clone(),
                peer_avatar: profile.avatar.clone(),
                peer_delivered_seq: cursors.delivered.0,
                peer_read_seq: cursors.read.0,
            },
            Counterpart::Group(group) => Self::Group {
                group_id: group.id.to_string(),
                group_name: group.profile.name.clone(),
                group_avatar: group.profile.avatar.clone(),
                member_count: group.members,
            },
        }
    }
}

impl ConversationInfo {
    pub fn new(line: &ConversationSummary, with_last_message: bool) -> Self {
        let last = line.last_message.as_deref().filter(|_| with_last_message);
        let standing = &line.standing;
        Self {
            conversation_id: standing.conversation.to_string(),
            conversation_type: session_type(&standing.conversation),
            with: CounterpartInfo::from(&line.with),
            recv_msg_opt: enum_values::receive_number(standing.settings.receive),
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
#[schema(as = Conversations)]
pub struct ConversationPage {
    /// The pinned ones first, then the latest.
    pub list: Vec<ConversationInfo>,
    /// Whether more follow.
    pub has_more: bool,
    /// Where the next page starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<ConversationCursor>,
}

/// The last line of a page.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Cursor)]
pub struct ConversationCursor {
    pinned: bool,
    updated_at: u64,
    conversation_id: String,
}

impl From<&ListCursor> for ConversationCursor {
    fn from(after: &ListCursor) -> Self {
        Self {
            pinned: after.pinned.unwrap_or_default(),
            updated_at: after.updated_at.0,
            conversation_id: after.conversation.to_string(),
        }
    }
}

/// What the caller chose for a conversation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Chosen)]
pub struct ConversationSettings {
    conversation_id: String,
    #[schema(schema_with = field_schemas::receive_number)]
    recv_msg_opt: i32,
    is_pinned: bool,
    extra: String,
}

impl ConversationSettings {
    pub fn new(conversation: &ConversationId, settings: Settings) -> Self {
        Self {
            conversation_id: conversation.to_string(),
            recv_msg_opt: enum_values::receive_number(settings.receive),
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
#[schema(as = Unread)]
pub struct UnreadCount {
    /// Messages of others that were not read.
    pub unread_count: u64,
}
