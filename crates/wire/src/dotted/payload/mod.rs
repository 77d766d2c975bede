//! The payloads. Each is one struct for both forms: serde for JSON, prost for protobuf.
//! `crates/wire/proto/dotted.proto` explains every field; a test compares the two. Fields above 19 are additions to the dialect.

mod auth;
mod chat;
mod friend;
mod group;

pub use auth::{
    HeartbeatRequest, HeartbeatResponse, KickedPush, LoginRequest, LoginResponse, RegisterRequest,
    RegisterResponse, UserUpdatedPush, ValidateTokenRequest, ValidateTokenResponse,
};
pub use chat::{
    ChatRequest, Conversation, DamagedSeqs, HistoryRequest, HistoryResponse, MarkReadRequest,
    MessagePush, NotifyPush, PullOfflineRequest, PullOfflineResponse, ReadReceiptPush, RecallPush,
    RecallRequest, SendRequest, SendResponse, SyncConversationsResponse, TypingPush,
};
pub use friend::{BlockListResponse, BlockRequest};
pub use group::{
    CreateGroupRequest, CreateGroupResponse, GroupInfo, GroupInfoResponse, GroupPush, GroupRequest,
    GroupsResponse, InviteRequest, JoinDecisionPush, JoinRequestPush, Member, MembersRequest,
    MembersResponse, RemoveMemberRequest, SetMemberRoleRequest, TransferOwnerRequest,
    UpdateGroupRequest,
};

use prost::Message;
use serde::{Deserialize, Serialize};

/// What a client sends in a binary frame.
#[derive(Clone, PartialEq, Message)]
pub struct ClientMessage {
    #[prost(string, tag = "1")]
    pub cmd: String,
    #[prost(bytes = "vec", tag = "2")]
    pub payload: Vec<u8>,
    #[prost(string, tag = "3")]
    pub request_id: String,
}

/// What the server sends in a binary frame.
#[derive(Clone, PartialEq, Message)]
pub struct ServerMessage {
    #[prost(string, tag = "1")]
    pub cmd: String,
    #[prost(bytes = "vec", tag = "2")]
    pub payload: Vec<u8>,
    #[prost(string, tag = "3")]
    pub request_id: String,
    #[prost(int32, tag = "4")]
    pub code: i32,
    #[prost(string, tag = "5")]
    pub message: String,
}

/// The answer to a command without data.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Empty {}

/// The refusal of a command whose answer has no field for an error. No answer uses tag 100 for anything else, so
/// clients can read this as any of them.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Refusal {
    #[prost(string, tag = "100")]
    pub reason: String,
}
