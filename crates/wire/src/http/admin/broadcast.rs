//! Messages from the operator to many users.

use nexo_chat::admin::broadcast::Broadcast;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "text": "We are back at noon." }))]
pub struct BroadcastBody {
    pub text: String,
    /// Up to 10,000 receivers; without, everybody.
    #[schema(min_items = 1, max_items = 10_000)]
    pub user_ids: Option<Vec<String>>,
}

/// A broadcast and how far it is.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct BroadcastInfo {
    pub broadcast_id: String,
    pub created_by: String,
    pub created_at: u64,
    pub sent: u64,
    /// Receivers who do not exist.
    pub failed: u64,
    pub is_done: bool,
}

impl From<&Broadcast> for BroadcastInfo {
    fn from(broadcast: &Broadcast) -> Self {
        Self {
            broadcast_id: broadcast.id.clone(),
            created_by: broadcast.created_by.clone(),
            created_at: broadcast.created_at.0,
            sent: broadcast.sent,
            failed: broadcast.failed,
            is_done: broadcast.is_done,
        }
    }
}
