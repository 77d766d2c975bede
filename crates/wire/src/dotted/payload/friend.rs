//! The payloads of `friend.*`.

use prost::Message;
use serde::{Deserialize, Serialize};

/// `friend.block` and `friend.unblock`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockRequest {
    #[prost(string, tag = "2")]
    pub target_id: String,
}

/// The answer to `friend.get_block_list`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockListResponse {
    #[prost(string, repeated, tag = "1")]
    pub blocked_ids: Vec<String>,
}
