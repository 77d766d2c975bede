//! Groups and their members.

use prost::Message;
use serde::{Deserialize, Serialize};

/// `group.create`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CreateGroupRequest {
    #[prost(string, tag = "2")]
    pub group_name: String,
    #[prost(string, repeated, tag = "3")]
    pub member_ids: Vec<String>,
    #[prost(string, tag = "20")]
    pub avatar_url: String,
}

/// The answer to `group.create`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct CreateGroupResponse {
    #[prost(bool, tag = "1")]
    pub success: bool,
    #[prost(string, tag = "2")]
    pub group_id: String,
    #[prost(string, tag = "3")]
    pub error: String,
    #[prost(string, tag = "100")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// `group.dismiss`, `group.leave` and `group.get_info`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupRequest {
    #[prost(string, tag = "1")]
    pub group_id: String,
}

/// `group.invite_members`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct InviteRequest {
    #[prost(string, tag = "1")]
    pub group_id: String,
    #[prost(string, repeated, tag = "3")]
    pub member_ids: Vec<String>,
}

/// `group.remove_member`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RemoveMemberRequest {
    #[prost(string, tag = "1")]
    pub group_id: String,
    #[prost(string, tag = "3")]
    pub member_id: String,
}

/// `group.update`: what is absent stays as it is.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct UpdateGroupRequest {
    #[prost(string, tag = "1")]
    pub group_id: String,
    #[prost(string, optional, tag = "3")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_name: Option<String>,
    #[prost(string, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avatar_url: Option<String>,
    #[prost(string, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub announcement: Option<String>,
    #[prost(string, optional, tag = "20")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub introduction: Option<String>,
}

/// `group.transfer_owner`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct TransferOwnerRequest {
    #[prost(string, tag = "1")]
    pub group_id: String,
    #[prost(string, tag = "3")]
    pub new_owner_id: String,
}

/// `group.set_member_role`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct SetMemberRoleRequest {
    #[prost(string, tag = "1")]
    pub group_id: String,
    #[prost(string, tag = "3")]
    pub member_id: String,
    #[prost(int32, tag = "4")]
    pub role: i32,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupInfo {
    #[prost(string, tag = "1")]
    pub group_id: String,
    #[prost(string, tag = "2")]
    pub group_name: String,
    #[prost(string, tag = "3")]
    pub avatar_url: String,
    #[prost(string, tag = "4")]
    pub owner_id: String,
    #[prost(int32, tag = "5")]
    pub member_count: i32,
    #[prost(string, tag = "6")]
    pub announcement: String,
    #[prost(int64, tag = "7")]
    pub created_at: i64,
    #[prost(string, tag = "20")]
    pub introduction: String,
    #[prost(int32, optional, tag = "21")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub my_role: Option<i32>,
}

/// The answer to `group.get_info`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupInfoResponse {
    #[prost(message, optional, tag = "1")]
    pub group: Option<GroupInfo>,
}

/// The answer to `group.get_user_groups`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupsResponse {
    #[prost(message, repeated, tag = "1")]
    pub groups: Vec<GroupInfo>,
}

/// `group.get_members`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MembersRequest {
    #[prost(string, tag = "1")]
    pub group_id: String,
    #[prost(int32, tag = "2")]
    pub page: i32,
    #[prost(int32, tag = "3")]
    pub page_size: i32,
}

#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct Member {
    #[prost(string, tag = "1")]
    pub user_id: String,
    #[prost(int32, tag = "2")]
    pub role: i32,
    #[prost(string, tag = "3")]
    pub nickname: String,
    #[prost(int64, tag = "4")]
    pub joined_at: i64,
}

/// The answer to `group.get_members`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct MembersResponse {
    #[prost(message, repeated, tag = "1")]
    pub members: Vec<Member>,
    #[prost(int32, tag = "2")]
    pub total: i32,
}

/// A change of a group or of its members: `group.joined`, `group.left` …
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupPush {
    #[prost(string, tag = "1")]
    pub group_id: String,
    #[prost(string, tag = "2")]
    pub operator_id: String,
    #[prost(string, repeated, tag = "3")]
    pub user_ids: Vec<String>,
    #[prost(int64, tag = "4")]
    pub change_seq: i64,
    #[prost(int64, tag = "5")]
    pub timestamp: i64,
    #[prost(int64, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_seq: Option<i64>,
    #[prost(int32, optional, tag = "7")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<i32>,
    #[prost(int64, optional, tag = "8")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub muted_until: Option<i64>,
    #[prost(bool, optional, tag = "9")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<bool>,
    #[prost(string, optional, tag = "10")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_name: Option<String>,
    #[prost(string, optional, tag = "11")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avatar_url: Option<String>,
    #[prost(string, optional, tag = "12")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub announcement: Option<String>,
    #[prost(string, optional, tag = "13")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub introduction: Option<String>,
    #[prost(string, optional, tag = "14")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join_type: Option<String>,
    #[prost(string, optional, tag = "15")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
    #[prost(string, optional, tag = "16")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_nickname: Option<String>,
    #[prost(string, optional, tag = "17")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_avatar: Option<String>,
    #[prost(string, optional, tag = "18")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member_extra: Option<String>,
}

/// `group.join_request`: a user asks to join.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct JoinRequestPush {
    #[prost(string, tag = "1")]
    pub request_id: String,
    #[prost(string, tag = "2")]
    pub group_id: String,
    #[prost(string, tag = "3")]
    pub user_id: String,
    #[prost(string, tag = "4")]
    pub message: String,
    #[prost(int64, tag = "5")]
    pub timestamp: i64,
}

/// `group.join_decision`: a request to join was accepted or rejected.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct JoinDecisionPush {
    #[prost(string, tag = "1")]
    pub request_id: String,
    #[prost(string, tag = "2")]
    pub group_id: String,
    #[prost(string, tag = "3")]
    pub user_id: String,
    #[prost(string, tag = "4")]
    pub operator_id: String,
    #[prost(bool, tag = "5")]
    pub accepted: bool,
    #[prost(int64, tag = "6")]
    pub timestamp: i64,
}
