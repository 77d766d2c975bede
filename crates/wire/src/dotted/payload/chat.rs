//! Messages, receipts and conversations.

use std::collections::BTreeMap;

use prost::Message;
use serde::{Deserialize, Serialize};

/// `chat.send_message`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SendRequest {
    #[prost(string, tag = "2")]
    pub to_id: String,
    #[prost(int32, tag = "3")]
    pub chat_type: i32,
    #[prost(string, tag = "4")]
    pub content: String,
    #[prost(string, tag = "5")]
    pub media_url: String,
    #[prost(string, tag = "6")]
    pub media_type: String,
    #[prost(string, tag = "7")]
    pub client_msg_id: String,
    #[prost(int64, tag = "8")]
    pub file_size: i64,
    #[prost(string, repeated, tag = "9")]
    pub mentions: Vec<String>,
    #[prost(string, tag = "10")]
    pub reply_to_msg_id: String,
    #[prost(btree_map = "string, string", tag = "20")]
    pub extra: BTreeMap<String, String>,
}

/// The answer to `chat.send_message`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SendResponse {
    #[prost(bool, tag = "1")]
    pub success: bool,
    #[prost(string, tag = "2")]
    pub msg_id: String,
    #[prost(int64, tag = "3")]
    pub timestamp: i64,
    #[prost(string, tag = "4")]
    pub error: String,
    #[prost(int64, tag = "20")]
    pub seq: i64,
    #[prost(string, tag = "21")]
    pub conversation_id: String,
    #[prost(string, tag = "22")]
    pub client_msg_id: String,
    #[prost(string, optional, tag = "23")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[prost(string, tag = "100")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// `chat.message`, and every message of a list.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MessagePush {
    #[prost(string, tag = "1")]
    pub msg_id: String,
    #[prost(string, tag = "2")]
    pub from_user_id: String,
    #[prost(string, tag = "3")]
    pub to_id: String,
    #[prost(int32, tag = "4")]
    pub chat_type: i32,
    #[prost(string, tag = "5")]
    pub content: String,
    #[prost(string, tag = "6")]
    pub media_url: String,
    #[prost(string, tag = "7")]
    pub media_type: String,
    #[prost(int64, tag = "8")]
    pub timestamp: i64,
    #[prost(string, repeated, tag = "9")]
    pub mentions: Vec<String>,
    #[prost(string, tag = "10")]
    pub reply_to_msg_id: String,
    #[prost(int64, tag = "20")]
    pub seq: i64,
    #[prost(string, tag = "21")]
    pub conversation_id: String,
    #[prost(string, tag = "22")]
    pub client_msg_id: String,
    #[prost(bool, tag = "23")]
    pub is_recalled: bool,
    #[prost(bool, tag = "24")]
    pub is_important: bool,
    #[prost(int64, tag = "25")]
    pub file_size: i64,
    #[prost(btree_map = "string, string", tag = "26")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, String>,
    #[prost(int32, tag = "27")]
    pub status: i32,
    #[prost(int64, tag = "28")]
    pub recall_at: i64,
}

/// `chat.recall_message`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RecallRequest {
    #[prost(string, tag = "1")]
    pub msg_id: String,
}

/// `chat.mark_read`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MarkReadRequest {
    #[prost(string, tag = "1")]
    pub chat_id: String,
    #[prost(int32, tag = "2")]
    pub chat_type: i32,
    #[prost(string, tag = "3")]
    pub last_msg_id: String,
}

/// `chat.pull_offline`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PullOfflineRequest {
    #[prost(int32, tag = "1")]
    pub limit: i32,
    #[prost(string, tag = "2")]
    pub cursor: String,
}

/// The answer to `chat.pull_offline`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct PullOfflineResponse {
    #[prost(message, repeated, tag = "1")]
    pub messages: Vec<MessagePush>,
    #[prost(string, tag = "2")]
    pub next_cursor: String,
    #[prost(bool, tag = "3")]
    pub has_more: bool,
}

/// `chat.get_history`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryRequest {
    #[prost(string, tag = "1")]
    pub chat_id: String,
    #[prost(int32, tag = "2")]
    pub chat_type: i32,
    #[prost(string, tag = "3")]
    pub before_msg_id: String,
    #[prost(int32, tag = "4")]
    pub limit: i32,
}

/// The answer to `chat.get_history`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryResponse {
    #[prost(message, repeated, tag = "1")]
    pub messages: Vec<MessagePush>,
    #[prost(bool, tag = "2")]
    pub has_more: bool,
    /// Messages of the page that cannot be read any more.
    #[prost(message, repeated, tag = "20")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedSeqs>,
}

/// Seqs of messages that the server's disk lost, both ends included.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct DamagedSeqs {
    #[prost(int64, tag = "1")]
    pub from: i64,
    #[prost(int64, tag = "2")]
    pub to: i64,
}

/// The answer to `chat.sync_conversations`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncConversationsResponse {
    #[prost(message, repeated, tag = "1")]
    pub conversations: Vec<Conversation>,
    #[prost(bool, tag = "20")]
    pub has_more: bool,
}

/// An entry of the conversation list.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Conversation {
    #[prost(string, tag = "1")]
    pub chat_id: String,
    #[prost(int32, tag = "2")]
    pub chat_type: i32,
    #[prost(string, tag = "3")]
    pub peer_id: String,
    #[prost(string, tag = "4")]
    pub peer_name: String,
    #[prost(string, tag = "5")]
    pub peer_avatar: String,
    #[prost(int32, tag = "6")]
    pub unread_count: i32,
    #[prost(int64, tag = "7")]
    pub updated_at: i64,
    #[prost(string, tag = "8")]
    pub last_msg_id: String,
    #[prost(string, tag = "9")]
    pub last_content: String,
    #[prost(int64, tag = "10")]
    pub last_timestamp: i64,
    #[prost(int32, tag = "20")]
    pub mention_unread_count: i32,
    #[prost(bool, tag = "21")]
    pub is_pinned: bool,
    #[prost(int64, tag = "22")]
    pub max_seq: i64,
    #[prost(int64, tag = "23")]
    pub read_seq: i64,
    #[prost(int64, tag = "24")]
    pub change_seq: i64,
    #[prost(string, tag = "25")]
    pub conversation_id: String,
    #[prost(string, tag = "26")]
    pub last_media_type: String,
    #[prost(bool, tag = "27")]
    pub is_muted: bool,
    #[prost(int32, tag = "28")]
    pub last_status: i32,
    #[prost(int64, tag = "29")]
    pub last_recall_at: i64,
}

/// `chat.delete_conversation`, `chat.hide_conversation` and `chat.typing`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatRequest {
    #[prost(string, tag = "1")]
    pub chat_id: String,
    #[prost(int32, tag = "2")]
    pub chat_type: i32,
}

/// `chat.notify`: there is a message in a large group.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct NotifyPush {
    #[prost(string, tag = "1")]
    pub chat_id: String,
    #[prost(string, tag = "2")]
    pub msg_id: String,
    #[prost(string, tag = "3")]
    pub from_user_id: String,
    #[prost(int64, tag = "4")]
    pub seq: i64,
    #[prost(int64, tag = "5")]
    pub timestamp: i64,
    #[prost(bool, tag = "6")]
    pub is_important: bool,
}

/// `chat.recall`: a message was recalled.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RecallPush {
    #[prost(string, tag = "1")]
    pub msg_id: String,
    #[prost(string, tag = "2")]
    pub chat_id: String,
    #[prost(int32, tag = "3")]
    pub chat_type: i32,
    #[prost(string, tag = "4")]
    pub operator_id: String,
    #[prost(int64, tag = "5")]
    pub timestamp: i64,
    #[prost(int64, tag = "20")]
    pub seq: i64,
    #[prost(int64, tag = "21")]
    pub change_seq: i64,
    #[prost(string, tag = "22")]
    pub conversation_id: String,
}

/// `chat.read_receipt`: a user has read up to this message.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadReceiptPush {
    #[prost(string, tag = "1")]
    pub chat_id: String,
    #[prost(string, tag = "2")]
    pub user_id: String,
    #[prost(string, tag = "3")]
    pub last_read_msg_id: String,
    #[prost(int64, tag = "20")]
    pub seq: i64,
    #[prost(int32, tag = "21")]
    pub chat_type: i32,
    #[prost(string, tag = "22")]
    pub conversation_id: String,
    #[prost(int64, tag = "23")]
    pub timestamp: i64,
}

/// `chat.typing`: a user is writing.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TypingPush {
    #[prost(string, tag = "1")]
    pub chat_id: String,
    #[prost(int32, tag = "2")]
    pub chat_type: i32,
    #[prost(string, tag = "3")]
    pub user_id: String,
    #[prost(int64, tag = "4")]
    pub timestamp: i64,
}
