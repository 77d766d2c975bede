//! Accounts, sign-ins and the heartbeat.

use prost::Message;
use serde::{Deserialize, Deserializer, Serialize};

use crate::text_or_number::TextOrNumber;

/// `auth.register`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RegisterRequest {
    #[prost(string, tag = "1")]
    pub username: String,
    #[prost(string, tag = "2")]
    pub password: String,
    #[prost(string, tag = "3")]
    pub nickname: String,
    #[prost(string, tag = "5")]
    pub avatar_url: String,
}

/// The answer to `auth.register`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct RegisterResponse {
    #[prost(bool, tag = "1")]
    pub success: bool,
    #[prost(string, tag = "2")]
    pub user_id: String,
    #[prost(string, tag = "3")]
    pub error: String,
    #[prost(string, tag = "100")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// `auth.login`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LoginRequest {
    #[prost(string, tag = "1")]
    pub username: String,
    #[prost(string, tag = "2")]
    pub password: String,
    #[prost(string, tag = "4")]
    #[serde(deserialize_with = "text_or_number")]
    pub device_type: String,
}

/// JSON clients send `device_type` as a string or as a number.
fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    TextOrNumber::deserialize(deserializer).map(|text| text.0.into_owned())
}

/// The answer to `auth.login`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct LoginResponse {
    #[prost(bool, tag = "1")]
    pub success: bool,
    #[prost(string, tag = "2")]
    pub user_id: String,
    #[prost(string, tag = "3")]
    pub token: String,
    #[prost(int64, tag = "4")]
    pub expire_at: i64,
    #[prost(string, tag = "5")]
    pub error: String,
    #[prost(string, tag = "20")]
    pub refresh_token: String,
    #[prost(string, tag = "100")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// `auth.validate_token`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ValidateTokenRequest {
    #[prost(string, tag = "1")]
    pub token: String,
}

/// The answer to `auth.validate_token`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct ValidateTokenResponse {
    #[prost(string, tag = "1")]
    pub user_id: String,
    #[prost(int64, tag = "20")]
    pub expire_at: i64,
    #[prost(string, tag = "100")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// `heartbeat`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HeartbeatRequest {
    #[prost(int64, tag = "1")]
    pub client_time: i64,
}

/// The answer to `heartbeat`.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct HeartbeatResponse {
    #[prost(int64, tag = "1")]
    pub server_time: i64,
}

/// `system.kicked`: the connection ends.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct KickedPush {
    #[prost(string, tag = "1")]
    pub reason: String,
    #[prost(string, tag = "20")]
    pub message: String,
    #[prost(int32, tag = "21")]
    pub code: i32,
}

/// `user.updated`: a user changed nickname or avatar.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(default)]
pub struct UserUpdatedPush {
    #[prost(string, tag = "1")]
    pub user_id: String,
    #[prost(string, tag = "2")]
    pub nickname: String,
    #[prost(string, tag = "3")]
    pub avatar_url: String,
    #[prost(int64, tag = "4")]
    pub timestamp: i64,
}
