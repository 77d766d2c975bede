//! Groups, as the operator sees them.

use nexo_chat::membership::{Group, GroupMember};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

#[derive(Deserialize, IntoParams)]
pub struct GroupsParams {
    /// Only those with this text in their id, name or owner, in any case.
    pub search: Option<String>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// How many at most: up to 1,000, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    pub limit: Option<usize>,
}

/// A group as the operator sees it.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct AdminGroup {
    pub group_id: String,
    pub name: String,
    pub introduction: String,
    pub announcement: String,
    pub avatar: String,
    pub extra: String,
    pub owner_id: String,
    pub creator_id: String,
    pub admin_ids: Vec<String>,
    pub member_count: u32,
    pub created_at: u64,
    pub updated_at: u64,
    pub is_ended: bool,
}

impl From<&Group> for AdminGroup {
    fn from(group: &Group) -> Self {
        Self {
            group_id: group.id.to_string(),
            name: group.profile.name.clone(),
            introduction: group.profile.introduction.clone(),
            announcement: group.profile.announcement.clone(),
            avatar: group.profile.avatar.clone(),
            extra: group.profile.extra.clone(),
            owner_id: group.owner.to_string(),
            creator_id: group.creator.to_string(),
            admin_ids: group.admins.iter().map(ToString::to_string).collect(),
            member_count: group.members,
            created_at: group.created_at.0,
            updated_at: group.updated_at.0,
            is_ended: group.ended.is_some(),
        }
    }
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct AdminGroupPage {
    pub groups: Vec<AdminGroup>,
    pub has_more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct AdminMember {
    pub user_id: String,
    /// 0 member, 1 admin, 2 owner.
    pub role: i32,
    pub joined_at: u64,
    pub group_nickname: String,
    /// They may not post before this time; 0 if they may.
    pub muted_until: u64,
}

impl AdminMember {
    pub fn new(group: &Group, member: &GroupMember) -> Self {
        Self {
            user_id: member.user.to_string(),
            role: group.role(&member.user) as i32,
            joined_at: member.joined_at.0,
            group_nickname: member.profile.nickname.clone(),
            muted_until: member.muted_until.0,
        }
    }
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct AdminMemberPage {
    pub members: Vec<AdminMember>,
    pub has_more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OneUserBody {
    pub user_id: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ManyUsersBody {
    #[schema(min_items = 1, max_items = 500)]
    pub user_ids: Vec<String>,
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct AddedMembers {
    /// Those who were not members before.
    pub joined: Vec<String>,
}
