//! The bodies of HTTP answers over the camelCase paths: camelCase, ids and seqs as strings.

use std::collections::BTreeMap;

use nexo_chat::conversations::{ConversationSummary, Counterpart};
use nexo_chat::model::Message;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{field_schemas, mentions, typed};

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct PeerHistoryParams {
    pub peer_user_id: String,
    /// How many at most: up to 100, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 20)]
    pub limit: Option<usize>,
    pub last_seq: Option<u64>,
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct GroupHistoryParams {
    #[param(value_type = String)]
    pub group_id: Option<String>,
    /// How many at most: up to 100, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 20)]
    pub limit: Option<usize>,
    pub last_seq: Option<u64>,
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct PeerSinceParams {
    pub peer_user_id: String,
    /// How many at most: up to 200, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 50)]
    pub limit: Option<usize>,
    #[serde(default)]
    pub since_seq: u64,
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct GroupSinceParams {
    #[param(value_type = String)]
    pub group_id: Option<String>,
    /// How many at most: up to 200, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 50)]
    pub limit: Option<usize>,
    #[serde(default)]
    pub since_seq: u64,
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct ConversationPageParams {
    /// How many at most: up to 100, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 20)]
    pub limit: Option<usize>,
    /// With `lastId`, the last line of the page before.
    pub last_updated_at: Option<u64>,
    pub last_id: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct MemberStateParams {
    pub peer_user_id: String,
}

/// A stored message.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageEntity {
    id: String,
    /// `SINGLE` or `GROUP`.
    chat_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    single_chat_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_id: Option<String>,
    from_user_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_user_id: Option<String>,
    #[schema(schema_with = field_schemas::msg_type)]
    msg_type: &'static str,
    content: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mentions: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to_server_msg_id: Option<String>,
    /// 1 saved, 4 revoked.
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
        let content = &message.content;
        let group = message.conversation.group();
        let is_private = group.is_none();
        Self {
            id: message.id.to_string(),
            chat_type: if is_private { "SINGLE" } else { "GROUP" },
            single_chat_id: is_private.then(|| message.conversation.to_string()),
            group_id: group.map(|group| group.to_string()),
            from_user_id: message.sender.to_string(),
            to_user_id: message.conversation.peer_of(&message.sender).map(|to| to.to_string()),
            msg_type: typed::kind_name(content.kind),
            content: String::from_utf8_lossy(&content.body).into_owned(),
            extra: content.extra.clone(),
            mentions: mentions::mention_names(content).into_iter().map(Into::into).collect(),
            reply_to_server_msg_id: content.reply_to.as_ref().map(|it| it.message.to_string()),
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

/// A conversation with one person, as a line of the list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversationLine {
    #[serde(flatten)]
    state: MemberState,
    updated_at: u64,
    unread_count: u64,
    max_msg_seq: String,
    #[schema(required)]
    last_message: Option<MessageEntity>,
}

impl ConversationLine {
    /// `None` for a group: see [`GroupLine`].
    pub fn new(line: &ConversationSummary) -> Option<Self> {
        Some(Self {
            state: MemberState::new(line)?,
            updated_at: line.standing.updated_at().0,
            unread_count: line.standing.unread(),
            max_msg_seq: line.standing.visible_max().to_string(),
            last_message: line.last_message.as_deref().map(MessageEntity::from),
        })
    }
}

/// How far both people of a private conversation have read.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberState {
    single_chat_id: String,
    peer_user_id: String,
    my_last_read_msg_seq: String,
    peer_last_read_msg_seq: String,
}

impl MemberState {
    /// `None` for a group.
    pub fn new(line: &ConversationSummary) -> Option<Self> {
        let Counterpart::Peer { user, cursors, .. } = &line.with else { return None };
        Some(Self {
            single_chat_id: line.standing.conversation.to_string(),
            peer_user_id: user.to_string(),
            my_last_read_msg_seq: line.standing.cursors.read.to_string(),
            peer_last_read_msg_seq: cursors.read.to_string(),
        })
    }
}

/// A group's conversation, as a line of the list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupLine {
    group_id: String,
    conversation_id: String,
    name: String,
    avatar_url: String,
    member_count: u32,
    updated_at: u64,
    unread_count: u64,
    mention_unread_count: u64,
    max_msg_seq: String,
    my_last_read_msg_seq: String,
    /// Whether the caller is still in it.
    is_member: bool,
    #[schema(required)]
    last_message: Option<MessageEntity>,
}

impl GroupLine {
    /// `None` for a private conversation: see [`ConversationLine`].
    pub fn new(line: &ConversationSummary) -> Option<Self> {
        let Counterpart::Group(group) = &line.with else { return None };
        Some(Self {
            group_id: group.id.to_string(),
            conversation_id: line.standing.conversation.to_string(),
            name: group.profile.name.clone(),
            avatar_url: group.profile.avatar.clone(),
            member_count: group.members,
            updated_at: line.standing.updated_at().0,
            unread_count: line.standing.unread(),
            mention_unread_count: line.mentions,
            max_msg_seq: line.standing.visible_max().to_string(),
            my_last_read_msg_seq: line.standing.cursors.read.to_string(),
            is_member: line.standing.is_active(),
            last_message: line.last_message.as_deref().map(MessageEntity::from),
        })
    }
}
