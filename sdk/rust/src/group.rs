//! The data of groups.
use serde::{Deserialize, Deserializer, Serialize};

/// The profile of a group. `None` is the default in `create` and leaves the field as it is in
/// `update`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct GroupProfile {
    /// Required to create a group.
    pub name: Option<String>,
    pub introduction: Option<String>,
    pub announcement: Option<String>,
    pub avatar: Option<String>,
    /// A field of the app.
    pub extra: Option<String>,
    /// `open`, `approval` or `invite`.
    pub join_type: Option<String>,
    /// What new members see: messages since they `joined`, or `all`.
    pub history: Option<String>,
}

impl GroupProfile {
    /// A profile with this name.
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..Self::default() }
    }
}

/// A group; the optional fields are only set for its members.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Group {
    pub group_id: String,
    pub conversation_id: String,
    pub name: String,
    pub introduction: String,
    pub announcement: String,
    pub avatar: String,
    /// A field of the app.
    pub extra: String,
    /// `open`, `approval` or `invite`.
    pub join_type: String,
    /// `joined` or `all`.
    pub history: String,
    pub creator_user_id: String,
    pub owner_user_id: String,
    pub member_count: u64,
    /// Whether only the owner and admins may post.
    pub is_muted: bool,
    /// A number of the app, set when the group is created.
    pub group_type: i32,
    /// Whether it was dissolved or dismissed.
    #[serde(rename = "status", deserialize_with = "flag")]
    pub is_ended: bool,
    pub created_at: u64,
    pub updated_at: u64,
    /// The code for `join_by_code`.
    pub group_code: Option<String>,
    /// The number of pending join requests; only for the owner and admins.
    pub join_request_count: Option<u64>,
    /// The first message you may see.
    pub join_seq: Option<u64>,
    #[serde(deserialize_with = "optional_role")]
    pub my_role: Option<Role>,
    /// Until when you are muted, in milliseconds since 1970.
    pub muted_until: Option<i64>,
}

/// A member of a group.
#[derive(Debug, Clone, Deserialize)]
pub struct Member {
    pub group_id: String,
    pub user_id: String,
    pub nickname: String,
    pub avatar: String,
    /// The nickname in this group; empty if it is the same as everywhere.
    #[serde(default)]
    pub group_nickname: String,
    /// The avatar in this group; empty if it is the same as everywhere.
    #[serde(default)]
    pub group_avatar: String,
    /// A field of the app.
    #[serde(default)]
    pub extra: String,
    #[serde(rename = "role_level", deserialize_with = "role")]
    pub role: Role,
    pub joined_at: u64,
    /// Until when they are muted, in milliseconds since 1970.
    #[serde(default)]
    pub muted_until: i64,
    pub inviter_user_id: Option<String>,
}

/// Your profile in a group; `None` leaves a field as it is.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MemberProfile {
    /// Empty: the same as everywhere.
    pub group_nickname: Option<String>,
    /// Empty: the same as everywhere.
    pub group_avatar: Option<String>,
    /// A field of the app.
    pub extra: Option<String>,
}

/// The role of a member, the lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Member = 0,
    /// May manage members and mute them.
    Admin = 1,
    /// Every group has one.
    Owner = 2,
}

impl From<u8> for Role {
    /// The role of a number of HTTP.
    fn from(level: u8) -> Self {
        match level {
            0 => Self::Member,
            1 => Self::Admin,
            _ => Self::Owner,
        }
    }
}

fn role<'de, D: Deserializer<'de>>(from: D) -> Result<Role, D::Error> {
    u8::deserialize(from).map(Role::from)
}

fn optional_role<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Role>, D::Error> {
    Ok(Option::<u8>::deserialize(from)?.map(Role::from))
}

fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    u8::deserialize(from).map(|number| number == 1)
}

/// The cursors of a member.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MemberReadState {
    pub user_id: String,
    /// The first message the member may see; earlier ones are not read, whatever `read_seq` is.
    pub from_seq: u64,
    pub delivered_seq: u64,
    pub read_seq: u64,
}

/// A request to join a group.
#[derive(Debug, Clone, Deserialize)]
pub struct JoinRequest {
    /// The id for `decide`.
    pub request_id: String,
    pub group_id: String,
    pub user_id: String,
    /// The text of the request.
    pub message: String,
    pub created_at: u64,
}

/// The result of joining.
#[derive(Debug, Clone, Deserialize)]
pub struct Joined {
    pub group_id: String,
    /// `joined`, or `pending` until an admin decides.
    pub status: String,
    /// The request, if it is pending.
    pub request_id: Option<String>,
}

/// A page of a list; pass `next_cursor` to get the next one.
#[derive(Debug, Clone, Deserialize)]
pub struct Page<Item> {
    pub list: Vec<Item>,
    #[serde(default)]
    pub has_more: bool,
    pub next_cursor: Option<String>,
    pub total: Option<u64>,
}
