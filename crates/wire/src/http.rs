//! The envelope of HTTP answers, `{code, message, data, request_id}` and `reason` on errors, and the
//! bodies about people and about what a device has.

use nexo_chat::Reason;
use nexo_chat::auth::Tokens;
use nexo_chat::model::{Standing, User};
use nexo_chat::presence::Presence;
use serde::{Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Object, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::{codes, shapes, words};

/// The envelope of every answer.
#[derive(Debug, Serialize)]
pub struct Envelope<T> {
    /// Zero for success, else the numbered dialect's code.
    pub code: i32,
    /// `ok`, or what went wrong in words.
    pub message: String,
    /// The reason's word, on errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<T>,
    /// For lists: whether more follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
    /// Names this request in the server's log.
    pub request_id: String,
}

impl<T> Envelope<T> {
    /// A success.
    pub fn ok(data: T, request_id: String) -> Self {
        let message = "ok".to_owned();
        Self { code: 0, message, reason: None, data: Some(data), has_more: None, request_id }
    }
}

impl Envelope<()> {
    /// A refusal.
    pub fn refused(reason: Reason, request_id: String) -> Self {
        let row = codes::row(reason);
        Self {
            code: row.numbered,
            message: reason.to_string(),
            reason: Some(row.typed),
            data: None,
            has_more: None,
            request_id,
        }
    }
}

/// A person; `user_id` repeats `id` for those who look for that name.
#[derive(Debug, Serialize, ToSchema)]
pub struct UserInfo {
    id: String,
    user_id: String,
    nickname: String,
    avatar: String,
    extra: String,
    created_at: u64,
    /// When the profile last changed.
    updated_at: u64,
}

impl From<&User> for UserInfo {
    fn from(user: &User) -> Self {
        Self {
            id: user.id.to_string(),
            user_id: user.id.to_string(),
            nickname: user.profile.nickname.clone(),
            avatar: user.profile.avatar.clone(),
            extra: user.profile.extra.clone(),
            created_at: user.created_at.0,
            updated_at: user.updated_at.0,
        }
    }
}

/// The answer to signing in and to refreshing.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignedIn {
    token: String,
    refresh_token: String,
    /// Seconds until the token dies.
    expires_in: u64,
    user_info: UserInfo,
}

impl SignedIn {
    /// Tokens and whose they are.
    pub fn new(tokens: Tokens, user: &User) -> Self {
        Self {
            token: tokens.access,
            refresh_token: tokens.refresh,
            expires_in: tokens.expires_in_ms / 1000,
            user_info: user.into(),
        }
    }
}

/// Whether somebody is online, and on what devices.
#[derive(Debug, Serialize, ToSchema)]
pub struct OnlineStatus {
    user_id: String,
    /// 1 online, 0 not, or not the caller's to know.
    status: i32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    detail_platform_status: Vec<PlatformStatus>,
    /// When they were last here, if they are not and it is the caller's to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_seen_at: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct PlatformStatus {
    platform_id: i32,
    platform_name: &'static str,
}

impl From<&Presence> for OnlineStatus {
    fn from(presence: &Presence) -> Self {
        let mut platforms: Vec<i32> =
            presence.places.iter().map(|place| place.platform.0).collect();
        platforms.sort_unstable();
        platforms.dedup();
        let shown = |platform_id| PlatformStatus {
            platform_id,
            platform_name: match platform_id {
                1 => "iOS",
                2 => "Android",
                3 => "Windows",
                4 => "macOS",
                5 => "Web",
                _ => "unknown",
            },
        };
        Self {
            user_id: presence.user.to_string(),
            status: i32::from(!presence.places.is_empty()),
            detail_platform_status: platforms.into_iter().map(shown).collect(),
            last_seen_at: presence.last_seen.map(|at| at.0),
        }
    }
}

/// Where the caller stands in one conversation.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is told on its own")]
pub struct Head {
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
    #[schema(schema_with = shapes::receive_number)]
    recv_msg_opt: i32,
    updated_at: u64,
}

impl From<&Standing> for Head {
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
            recv_msg_opt: words::receive_number(standing.settings.receive),
            updated_at: standing.updated_at().0,
        }
    }
}

/// A page of heads and where the next one starts.
#[derive(Debug, Serialize, ToSchema)]
pub struct Heads {
    /// By conversation id.
    pub heads: Vec<Head>,
    /// Whether more follow.
    pub has_more: bool,
    /// Give it as `cursor` to get them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Nothing, as an empty object.
#[derive(Debug, Default)]
pub struct Nothing;

impl PartialSchema for Nothing {
    fn schema() -> RefOr<Schema> {
        RefOr::T(Schema::Object(Object::with_type(Type::Object)))
    }
}

impl ToSchema for Nothing {}

impl Serialize for Nothing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        serializer.serialize_map(Some(0))?.end()
    }
}
