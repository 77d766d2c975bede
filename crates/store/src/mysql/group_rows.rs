//! Rows of groups, group members and join requests.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use mysql_async::{Row, Value};
use nexo_chat::ids::{GroupId, UserId};
use nexo_chat::membership::{
    Group, GroupEnd, GroupMember, GroupProfile, HistoryPolicy, JoinCode, JoinPolicy, JoinRequest,
    MemberProfile,
};

use super::fault::{SqlFault, damaged};
use super::fields::Fields;
use super::row;
use super::sql::values;
use super::transaction::Transaction;

/// The columns of [`group`].
pub(crate) const GROUP: &str = "SELECT g.id, g.name, g.introduction, g.announcement, g.avatar, \
     g.extra, g.creator, g.owner, g.admins, g.joining, g.history, g.is_muted, g.members, g.requests, \
     g.code, g.code_at, g.created_at, g.updated_at, g.group_type, g.is_dismissed, c.end_seq, \
     c.end_change_seq, c.end_at FROM chat_groups g JOIN conversations c ON c.id = CONCAT('sg_', g.id)";

pub(crate) fn group(row: Row) -> Result<Group, SqlFault> {
    let mut fields = Fields::from(row);
    let id = fields.group()?;
    let mut profile = GroupProfile {
        name: fields.text()?,
        introduction: fields.text()?,
        announcement: fields.text()?,
        avatar: fields.text()?,
        extra: fields.text()?,
        group_type: 0,
    };
    let (creator, owner) = (fields.user()?, fields.user()?);
    let admins = serde_json::from_slice(&fields.bytes()?);
    let admins = admins.map_err(|error| damaged(format!("admins of a group: {error}")))?;
    let joining = match fields.u8()? {
        0 => JoinPolicy::Open,
        1 => JoinPolicy::Approval,
        2 => JoinPolicy::Invite,
        _ => return Err(damaged("an unknown way to join")),
    };
    let history = match fields.u8()? {
        0 => HistoryPolicy::Joined,
        1 => HistoryPolicy::All,
        _ => return Err(damaged("an unknown history")),
    };
    let (is_muted, members, requests) = (fields.bool()?, fields.u32()?, fields.u32()?);
    let code = JoinCode::parse(&fields.text()?).ok_or_else(|| damaged("not a join code"))?;
    let (code_at, created_at, updated_at) = (fields.millis()?, fields.millis()?, fields.millis()?);
    profile.group_type = fields.i32()?;
    let is_dismissed = fields.bool()?;
    let ended = fields.window_end()?.map(|window_end| GroupEnd { is_dismissed, window_end });
    Ok(Group {
        id,
        profile,
        creator,
        owner,
        admins,
        joining,
        history,
        is_muted,
        members,
        requests,
        code,
        code_at,
        created_at,
        updated_at,
        ended,
    })
}

/// The columns of [`group_values`].
pub(crate) const GROUP_COLUMNS: &str = "id, name, introduction, announcement, avatar, extra, \
     creator, owner, admins, joining, history, is_muted, members, requests, code, code_at, \
     created_at, updated_at, group_type, is_dismissed";

pub(crate) fn group_values(group: &Group) -> Vec<Value> {
    let GroupProfile { name, introduction, announcement, avatar, extra, group_type } =
        &group.profile;
    let joining = match group.joining {
        JoinPolicy::Open => 0,
        JoinPolicy::Approval => 1,
        JoinPolicy::Invite => 2,
    };
    let history = match group.history {
        HistoryPolicy::Joined => 0,
        HistoryPolicy::All => 1,
    };
    values![
        group.id.as_str(),
        name,
        introduction,
        announcement,
        avatar,
        extra,
        group.creator.as_str(),
        group.owner.as_str(),
        row::json(&group.admins),
        joining,
        history,
        group.is_muted,
        group.members,
        group.requests,
        group.code.as_str(),
        group.code_at.0,
        group.created_at.0,
        group.updated_at.0,
        *group_type,
        group.ended.is_some_and(|ended| ended.is_dismissed),
    ]
}

/// The columns of [`member`], besides the group.
pub(crate) const MEMBER: &str = "user_id, joined_at, join_seq, came_after, inviter, muted_until, \
     nickname, avatar, extra";

pub(crate) fn member(fields: &mut Fields) -> Result<GroupMember, SqlFault> {
    Ok(GroupMember {
        user: fields.user()?,
        joined_at: fields.millis()?,
        join_seq: fields.seq()?,
        came_after: fields.seq()?,
        inviter: fields.maybe_user()?,
        muted_until: fields.millis()?,
        profile: MemberProfile {
            nickname: fields.maybe_text()?,
            avatar: fields.maybe_text()?,
            extra: fields.maybe_text()?,
        },
    })
}

pub(crate) fn member_values(group: &GroupId, member: &GroupMember) -> Vec<Value> {
    values![
        group.as_str(),
        member.user.as_str(),
        member.joined_at.0,
        member.join_seq.0,
        member.came_after.0,
        member.inviter.as_ref().map(UserId::as_str),
        member.muted_until.0,
        row::maybe(&member.profile.nickname),
        row::maybe(&member.profile.avatar),
        row::maybe(&member.profile.extra),
    ]
}

pub(crate) fn request(fields: &mut Fields, group: GroupId) -> Result<JoinRequest, SqlFault> {
    let (user, message, at) = (fields.user()?, fields.text()?, fields.millis()?);
    Ok(JoinRequest { group, user, message, at })
}

/// Loads groups, ended or not.
pub(crate) async fn load(
    transaction: &mut Transaction,
    ids: &BTreeSet<GroupId>,
) -> Result<HashMap<GroupId, Arc<Group>>, SqlFault> {
    let keys: Vec<_> = ids.iter().map(|id| values![id.as_str()]).collect();
    let rows = transaction.rows_by_keys(&format!("{GROUP} WHERE g.id IN {{}}"), &keys).await?;
    let groups = rows.into_iter().map(|row| group(row).map(|it| (it.id.clone(), Arc::new(it))));
    groups.collect()
}

/// Loads those of these users who are members of these groups, ended or not.
pub(crate) async fn load_members(
    transaction: &mut Transaction,
    member_keys: &BTreeSet<(GroupId, UserId)>,
) -> Result<HashMap<(GroupId, UserId), GroupMember>, SqlFault> {
    let keys: Vec<_> =
        member_keys.iter().map(|(id, user)| values![id.as_str(), user.as_str()]).collect();
    let sql =
        format!("SELECT group_id, {MEMBER} FROM group_members WHERE (group_id, user_id) IN {{}}");
    let rows = transaction.rows_by_keys(&sql, &keys).await?;
    rows.into_iter()
        .map(|row| {
            let mut fields = Fields::from(row);
            let group = fields.group()?;
            let member = member(&mut fields)?;
            Ok(((group, member.user.clone()), member))
        })
        .collect()
}
