//! Where the caller stands in each conversation: compared after reconnecting.

use nexo_chat::model::Standing;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{enum_values, field_schemas};

#[derive(Deserialize, IntoParams)]
pub struct HeadsParams {
    /// How many at most: up to 1,000, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 200)]
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// Also private conversations without messages for which you have chosen settings; their
    /// `max_seq` is 0.
    #[serde(default)]
    pub include_empty: bool,
}

#[derive(Deserialize, IntoParams)]
pub struct ChangesParams {
    pub conversation_id: String,
    #[serde(default)]
    pub since: u64,
    /// How many at most: up to 200, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    pub limit: Option<usize>,
}

/// Where the caller stands in one conversation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Head)]
#[expect(clippy::struct_excessive_bools, reason = "independent fields of the wire")]
pub struct ConversationHead {
    conversation_id: String,
    min_seq: u64,
    max_seq: u64,
    delivered_seq: u64,
    read_seq: u64,
    min_change_seq: u64,
    change_seq: u64,
    unread_count: u64,
    /// Whether the caller is still in it.
    is_active: bool,
    /// Whether its group was dissolved or dismissed. It is in no list any more, but what was said
    /// is there to be read.
    is_ended: bool,
    /// Whether the caller hid it from their list, and nothing was said since that they can see.
    is_hidden: bool,
    is_pinned: bool,
    #[schema(schema_with = field_schemas::receive_number)]
    recv_msg_opt: i32,
    updated_at: u64,
    /// When the caller joined the group; absent in a private conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    joined_at: Option<u64>,
}

impl From<&Standing> for ConversationHead {
    fn from(standing: &Standing) -> Self {
        Self {
            conversation_id: standing.conversation.to_string(),
            min_seq: standing.window.min.0,
            max_seq: standing.visible_max().0,
            delivered_seq: standing.cursors.delivered.0,
            read_seq: standing.cursors.read.0,
            min_change_seq: standing.window.change_min.0,
            change_seq: standing.visible_change_max().0,
            unread_count: standing.unread(),
            is_active: standing.is_active(),
            is_ended: standing.has_ended,
            is_hidden: standing.is_hidden(),
            is_pinned: standing.settings.pinned,
            recv_msg_opt: enum_values::receive_number(standing.settings.receive),
            updated_at: standing.updated_at().0,
            joined_at: standing.conversation.group().map(|_| standing.window.since.0),
        }
    }
}

/// A page of heads and where the next one starts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Heads)]
pub struct HeadPage {
    /// By conversation id.
    pub heads: Vec<ConversationHead>,
    /// Whether more follow.
    pub has_more: bool,
    /// Give it as `cursor` to get them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
