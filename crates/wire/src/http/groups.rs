//! Groups.

use std::borrow::Cow;

use nexo_chat::group::NewGroupRequest;
use nexo_chat::membership::{
    Group, GroupChange, GroupMember, GroupProfile, HistoryPolicy, JoinPolicy, Role,
};
use nexo_chat::{DetailedReason, Reason};
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{Array, ObjectBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::parse_ids::user_ids;
use crate::{enum_values, field_schemas};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "Friends", "member_ids": ["bob"] }))]
pub struct CreateGroupBody {
    #[serde(default)]
    #[schema(required, min_length = 1, max_length = 128)]
    pub name: String,
    #[serde(default)]
    pub introduction: String,
    #[serde(default)]
    pub announcement: String,
    #[serde(default)]
    pub avatar: String,
    #[serde(default)]
    pub extra: String,
    /// A number of your app's own.
    #[serde(default)]
    pub group_type: i32,
    #[serde(default)]
    pub member_ids: Vec<String>,
    /// How one comes in.
    #[schema(schema_with = field_schemas::join_policy)]
    pub join_type: Option<String>,
    /// What newcomers see: from when they joined, or all of it.
    #[schema(schema_with = field_schemas::history_policy)]
    pub history: Option<String>,
}

impl CreateGroupBody {
    pub fn into_request(self) -> Result<NewGroupRequest, DetailedReason> {
        let Self { name, introduction, announcement, avatar, extra, group_type, .. } = self;
        Ok(NewGroupRequest {
            profile: GroupProfile { name, introduction, announcement, avatar, extra, group_type },
            joining: join_policy(self.join_type.as_deref())?.unwrap_or_default(),
            history: history_policy(self.history.as_deref())?.unwrap_or_default(),
            members: user_ids(&self.member_ids)?,
            members_min: 1, // over HTTP the owner may be the only member
        })
    }
}

fn join_policy(word: Option<&str>) -> Result<Option<JoinPolicy>, DetailedReason> {
    let parse = |word| enum_values::parse_join_policy(word);
    word.map(|word| parse(word).ok_or_else(|| DetailedReason::field("join_type"))).transpose()
}

fn history_policy(word: Option<&str>) -> Result<Option<HistoryPolicy>, DetailedReason> {
    let parse = |word| enum_values::parse_history_policy(word);
    word.map(|word| parse(word).ok_or_else(|| DetailedReason::field("history"))).transpose()
}

#[derive(Deserialize, IntoParams)]
pub struct GroupInfoParams {
    pub group_id: Option<String>,
    pub group_code: Option<String>,
}

#[derive(Deserialize, IntoParams)]
pub struct JoinedGroupsParams {
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// How many at most: up to 1,000, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    pub limit: Option<usize>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateGroupBody {
    #[schema(value_type = String)]
    pub group_id: Option<String>,
    #[schema(min_length = 1, max_length = 128)]
    pub name: Option<String>,
    pub introduction: Option<String>,
    pub announcement: Option<String>,
    pub avatar: Option<String>,
    pub extra: Option<String>,
    #[schema(schema_with = field_schemas::join_policy)]
    pub join_type: Option<String>,
    #[schema(schema_with = field_schemas::history_policy)]
    pub history: Option<String>,
}

impl UpdateGroupBody {
    pub fn into_change(self) -> Result<GroupChange, Reason> {
        let joining = join_policy(self.join_type.as_deref())?;
        let history = history_policy(self.history.as_deref())?;
        let Self { name, introduction, announcement, avatar, extra, .. } = self;
        Ok(GroupChange { name, introduction, announcement, avatar, extra, joining, history })
    }
}

/// A request that only names a group.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupBody {
    #[schema(value_type = String)]
    pub group_id: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MuteAllBody {
    #[schema(value_type = String)]
    pub group_id: Option<String>,
    pub on: bool,
}

/// A group as somebody sees it; `group_id` repeats `id` for those who look for that name.
#[derive(Debug, Serialize, ToSchema)]
pub struct GroupInfo {
    id: String,
    group_id: String,
    conversation_id: String,
    name: String,
    introduction: String,
    announcement: String,
    avatar: String,
    extra: String,
    /// A number of the app's own, chosen when the group was made.
    group_type: i32,
    /// 0 normal, 1 ended.
    status: i32,
    creator_user_id: String,
    owner_user_id: String,
    member_count: u32,
    #[schema(schema_with = field_schemas::join_policy)]
    join_type: &'static str,
    #[schema(schema_with = field_schemas::history_policy)]
    history: &'static str,
    is_muted: bool,
    created_at: u64,
    updated_at: u64,
    #[serde(flatten)]
    mine: GroupMembership,
}

/// What only members see of a group.
#[derive(Debug, Default, Serialize, ToSchema)]
struct GroupMembership {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = field_schemas::role_number)]
    my_role: Option<i32>,
    /// The first message the caller sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    join_seq: Option<u64>,
    /// The caller may speak again from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    muted_until: Option<u64>,
    /// Leads others here.
    #[serde(skip_serializing_if = "Option::is_none")]
    group_code: Option<String>,
    /// How many wait to be let in; only for those who decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    join_request_count: Option<u32>,
}

impl GroupMembership {
    fn new(group: &Group, member: &GroupMember) -> Self {
        let role = group.role(&member.user);
        Self {
            my_role: Some(enum_values::role_number(role)),
            join_seq: Some(member.join_seq.0),
            muted_until: Some(member.muted_until.0),
            group_code: Some(group.code.as_str().to_owned()),
            join_request_count: (role >= Role::Admin).then_some(group.requests),
        }
    }
}

impl GroupInfo {
    /// `member` is the caller, if they are a member.
    pub fn new(group: &Group, member: Option<&GroupMember>) -> Self {
        let profile = &group.profile;
        Self {
            id: group.id.to_string(),
            group_id: group.id.to_string(),
            conversation_id: group.id.conversation().to_string(),
            name: profile.name.clone(),
            introduction: profile.introduction.clone(),
            announcement: profile.announcement.clone(),
            avatar: profile.avatar.clone(),
            extra: profile.extra.clone(),
            group_type: profile.group_type,
            status: i32::from(group.ended.is_some()),
            creator_user_id: group.creator.to_string(),
            owner_user_id: group.owner.to_string(),
            member_count: group.members,
            join_type: enum_values::join_policy(group.joining),
            history: enum_values::history_policy(group.history),
            is_muted: group.is_muted,
            created_at: group.created_at.0,
            updated_at: group.updated_at.0,
            mine: member.map(|member| GroupMembership::new(group, member)).unwrap_or_default(),
        }
    }
}

/// The code that leads to a group.
#[derive(Debug, Serialize, ToSchema)]
pub struct GroupCode {
    group_code: String,
}

impl From<&Group> for GroupCode {
    fn from(group: &Group) -> Self {
        Self { group_code: group.code.as_str().to_owned() }
    }
}

/// A page of something about groups, by id.
#[derive(Debug, Serialize)]
pub struct GroupPage<T> {
    /// What was asked for.
    pub list: Vec<T>,
    /// Whether more follow.
    pub has_more: bool,
    /// Give it as `cursor` to get them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// How many there are, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
}

impl<T: ToSchema> PartialSchema for GroupPage<T> {
    fn schema() -> RefOr<Schema> {
        let list = Array::new(Ref::from_schema_name(T::name()));
        let page = ObjectBuilder::new()
            .property("list", list)
            .property("has_more", bool::schema())
            .property("next_cursor", String::schema())
            .property("total", u32::schema());
        RefOr::T(page.required("list").required("has_more").into())
    }
}

impl<T: ToSchema> ToSchema for GroupPage<T> {
    fn name() -> Cow<'static, str> {
        T::name() + "GroupPage"
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}
