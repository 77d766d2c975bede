//! The bodies of HTTP answers about groups, in the names of the `snake_case` paths.

use nexo_chat::Reason;
use nexo_chat::ids::{GroupId, UserId};
use nexo_chat::membership::{Group, GroupMember, JoinRequest, Role};
use nexo_chat::model::User;
use nexo_chat::read::MemberCursors;
use serde::Serialize;
use utoipa::openapi::schema::{Array, ObjectBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::{shapes, words};

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
    #[schema(schema_with = shapes::joining)]
    join_type: &'static str,
    #[schema(schema_with = shapes::history)]
    history: &'static str,
    is_muted: bool,
    created_at: u64,
    updated_at: u64,
    #[serde(flatten)]
    mine: Mine,
}

/// What only members see of a group.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = GroupMembership)]
struct Mine {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = shapes::role_number)]
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

impl Mine {
    fn new(group: &Group, member: &GroupMember) -> Self {
        let role = group.role(&member.user);
        Self {
            my_role: Some(words::role_number(role)),
            join_seq: Some(member.join_seq.0),
            muted_until: Some(member.muted_until.0),
            group_code: Some(group.code.as_str().to_owned()),
            join_request_count: (role >= Role::Admin).then_some(group.requests),
        }
    }
}

impl GroupInfo {
    /// The group as this member sees it, or a stranger.
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
            join_type: words::joining(group.joining),
            history: words::history(group.history),
            is_muted: group.is_muted,
            created_at: group.created_at.0,
            updated_at: group.updated_at.0,
            mine: member.map(|member| Mine::new(group, member)).unwrap_or_default(),
        }
    }
}

/// Somebody in a group.
#[derive(Debug, Serialize, ToSchema)]
pub struct MemberInfo {
    group_id: String,
    user_id: String,
    nickname: String,
    avatar: String,
    /// How they want to be seen in this group; empty: as everywhere.
    group_nickname: String,
    group_avatar: String,
    /// Their app's own data in this group.
    extra: String,
    #[schema(schema_with = shapes::role_number)]
    role_level: i32,
    /// Always 0: those who left are not listed.
    status: i32,
    joined_at: u64,
    join_seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    inviter_user_id: Option<String>,
    muted_until: u64,
}

impl MemberInfo {
    /// A member, with the face their account has, if it is known.
    pub fn new(group: &Group, member: &GroupMember, account: Option<&User>) -> Self {
        let profile = account.map(|account| account.profile.clone()).unwrap_or_default();
        Self {
            group_id: group.id.to_string(),
            user_id: member.user.to_string(),
            nickname: profile.nickname,
            avatar: profile.avatar,
            group_nickname: member.profile.nickname.clone(),
            group_avatar: member.profile.avatar.clone(),
            extra: member.profile.extra.clone(),
            role_level: words::role_number(group.role(&member.user)),
            status: 0,
            joined_at: member.joined_at.0,
            join_seq: member.join_seq.0,
            inviter_user_id: member.inviter.as_ref().map(ToString::to_string),
            muted_until: member.muted_until.0,
        }
    }
}

/// How far everybody in a group has come.
#[derive(Debug, Serialize, ToSchema)]
pub struct GroupReadState {
    /// Whether the group has more members than receipts are told for
    /// (`receipts.group_members_max`): then nobody is listed.
    too_large: bool,
    /// By user id, with the caller.
    members: Vec<MemberReadState>,
}

/// How far a member has come.
#[derive(Debug, Serialize, ToSchema)]
struct MemberReadState {
    user_id: String,
    /// The first message they were there for. They have not read what was said before, although
    /// their cursors are behind it.
    from_seq: u64,
    delivered_seq: u64,
    read_seq: u64,
}

impl From<Option<Vec<MemberCursors>>> for GroupReadState {
    fn from(found: Option<Vec<MemberCursors>>) -> Self {
        let shown = |member: MemberCursors| MemberReadState {
            user_id: member.user.to_string(),
            from_seq: member.from.0,
            delivered_seq: member.cursors.delivered.0,
            read_seq: member.cursors.read.0,
        };
        let too_large = found.is_none();
        Self { too_large, members: found.into_iter().flatten().map(shown).collect() }
    }
}

/// Somebody who waits to be let in.
#[derive(Debug, Serialize, ToSchema)]
pub struct JoinRequestInfo {
    request_id: String,
    group_id: String,
    user_id: String,
    message: String,
    created_at: u64,
}

impl From<&JoinRequest> for JoinRequestInfo {
    fn from(request: &JoinRequest) -> Self {
        Self {
            request_id: request_id(&request.group, &request.user),
            group_id: request.group.to_string(),
            user_id: request.user.to_string(),
            message: request.message.clone(),
            created_at: request.at.0,
        }
    }
}

/// The name of a request to join: there is one per person and group, so these two are its name.
pub fn request_id(group: &GroupId, user: &UserId) -> String {
    format!("{group}_{user}")
}

/// Reads the name of a request to join.
pub fn read_request_id(id: &str) -> Result<(GroupId, UserId), Reason> {
    let parts = id.split_once('_'); // which no id of either kind has
    let parsed =
        parts.map(|(group, user)| Ok::<_, Reason>((GroupId::parse(group)?, UserId::parse(user)?)));
    parsed.and_then(Result::ok).ok_or(Reason::JoinRequestNotFound)
}

/// What became of the wish to join.
#[derive(Debug, Serialize, ToSchema)]
pub struct Joined {
    /// `joined`, or `pending` until somebody decides.
    status: &'static str,
    group_id: String,
    /// The request, while it is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

impl Joined {
    /// They are in, or wait.
    pub fn new(group: &GroupId, user: &UserId, is_in: bool) -> Self {
        Self {
            status: if is_in { "joined" } else { "pending" },
            group_id: group.to_string(),
            request_id: (!is_in).then(|| request_id(group, user)),
        }
    }
}

/// What was decided about the wish to join.
#[derive(Debug, Serialize, ToSchema)]
pub struct JoinDecided {
    request_id: String,
    group_id: String,
    /// `accepted` or `rejected`.
    status: &'static str,
}

impl JoinDecided {
    /// They are in, or not.
    pub fn new(group: &GroupId, user: &UserId, accepted: bool) -> Self {
        Self {
            request_id: request_id(group, user),
            group_id: group.to_string(),
            status: if accepted { "accepted" } else { "rejected" },
        }
    }
}

/// Who came by an invitation: those who were not in already.
#[derive(Debug, Serialize, ToSchema)]
pub struct Invited {
    joined: Vec<String>,
}

impl From<&[UserId]> for Invited {
    fn from(joined: &[UserId]) -> Self {
        Self { joined: joined.iter().map(ToString::to_string).collect() }
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
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_named_by_group_and_person() {
        let (group, user) = (GroupId::parse("g1").unwrap(), UserId::parse("bob").unwrap());
        assert_eq!(request_id(&group, &user), "g1_bob");
        assert_eq!(read_request_id("g1_bob"), Ok((group, user)));
        for bad in ["", "g1", "_", "g1_", "_bob", "g1_bob_x", "g 1_bob"] {
            assert_eq!(read_request_id(bad), Err(Reason::JoinRequestNotFound), "{bad}");
        }
    }
}
