//! What there is to know about groups.
use serde::{Deserialize, Serialize};

/// What one may say about a group; what is `None` stays or is the default.
#[derive(Debug, Clone, Default, Serialize)]
pub struct GroupProfile {
    /// What it is called; a new one needs it.
    pub name: Option<String>,
    /// What it is about.
    pub introduction: Option<String>,
    /// What everybody should know.
    pub announcement: Option<String>,
    /// Its picture.
    pub avatar: Option<String>,
    /// What the app keeps about it.
    pub extra: Option<String>,
    /// `open`, `approval` or `invite`.
    pub join_type: Option<String>,
    /// What new members see: what came since they `joined`, or `all`.
    pub history: Option<String>,
}

impl GroupProfile {
    /// A group of this name.
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..Self::default() }
    }
}

/// A group; the last fields only for its members.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Group {
    /// Its id.
    pub group_id: String,
    /// The id of its conversation.
    pub conversation_id: String,
    /// What it is called.
    pub name: String,
    /// What it is about.
    pub introduction: String,
    /// What everybody should know.
    pub announcement: String,
    /// Its picture.
    pub avatar: String,
    /// What the app keeps about it.
    pub extra: String,
    /// `open`, `approval` or `invite`.
    pub join_type: String,
    /// `joined` or `all`.
    pub history: String,
    /// Who made it.
    pub creator_user_id: String,
    /// Whose it is.
    pub owner_user_id: String,
    /// How many are in it.
    pub member_count: u64,
    /// Whether only owner and admins may speak.
    pub is_muted: bool,
    /// A number of the app's own, chosen when it was made.
    pub group_type: i32,
    /// 0 normal, 1 ended.
    pub status: u8,
    /// When it was made.
    pub created_at: u64,
    /// When it was changed.
    pub updated_at: u64,
    /// What to join with.
    pub group_code: Option<String>,
    /// How many wait; only for those who decide.
    pub join_request_count: Option<u64>,
    /// The first message you see.
    pub join_seq: Option<u64>,
    /// 0 member, 1 admin, 2 owner.
    pub my_role: Option<u8>,
    /// Until when you may not speak.
    pub muted_until: Option<i64>,
}

/// Somebody in a group.
#[derive(Debug, Clone, Deserialize)]
pub struct Member {
    /// Which group.
    pub group_id: String,
    /// Who.
    pub user_id: String,
    /// What to call them.
    pub nickname: String,
    /// Their picture.
    pub avatar: String,
    /// What to call them in this group; empty: as everywhere.
    #[serde(default)]
    pub group_nickname: String,
    /// Their picture in this group; empty: as everywhere.
    #[serde(default)]
    pub group_avatar: String,
    /// What their app keeps about them in this group.
    #[serde(default)]
    pub extra: String,
    /// 0 member, 1 admin, 2 owner.
    pub role_level: u8,
    /// Since when.
    pub joined_at: u64,
    /// Until when they may not speak.
    #[serde(default)]
    pub muted_until: i64,
    /// Who brought them.
    pub inviter_user_id: Option<String>,
}

/// How you want to be seen in a group; what is `None` stays.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MemberProfile {
    /// Your name there; empty: as everywhere.
    pub group_nickname: Option<String>,
    /// Your picture there.
    pub group_avatar: Option<String>,
    /// What the app keeps about you there.
    pub extra: Option<String>,
}

/// What somebody may do in a group; its owner is made by `Groups::transfer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// What everybody may.
    Member = 0,
    /// Decides who is in it, and who may speak.
    Admin = 1,
}

/// How far a member has come.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MemberReadState {
    /// Who.
    pub user_id: String,
    /// The first message they were there for: they have not read what was said before, whatever
    /// `read_seq` is.
    pub from_seq: u64,
    /// How far they have received.
    pub delivered_seq: u64,
    /// How far they have read.
    pub read_seq: u64,
}

/// Somebody who wants into a group.
#[derive(Debug, Clone, Deserialize)]
pub struct JoinRequest {
    /// What to give to `decide`.
    pub request_id: String,
    /// Which group.
    pub group_id: String,
    /// Who.
    pub user_id: String,
    /// What they say about it.
    pub message: String,
    /// Since when they wait.
    pub created_at: u64,
}

/// What became of joining.
#[derive(Debug, Clone, Deserialize)]
pub struct Joined {
    /// Which group.
    pub group_id: String,
    /// `joined`, or `pending` until somebody decides.
    pub status: String,
    /// The request, if somebody has to decide.
    pub request_id: Option<String>,
}

/// A page of a list; give `next_cursor` to get the next one.
#[derive(Debug, Clone, Deserialize)]
pub struct Page<Item> {
    /// What is on it.
    pub list: Vec<Item>,
    /// Whether there is another one.
    #[serde(default)]
    pub has_more: bool,
    /// What that begins with.
    pub next_cursor: Option<String>,
    /// How many there are in all.
    pub total: Option<u64>,
}
