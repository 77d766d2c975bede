//! Groups and who is in them, as rows and as they are read.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use mysql_async::{Row, Value};
use nexo_chat::ids::{ConversationId, GroupId, UserId};
use nexo_chat::membership::{
    Ended, Group, GroupMember, GroupProfile, History, JoinCode, JoinRequest, Joining, MemberProfile,
};
use nexo_chat::model::Cursors;
use nexo_chat::store::StoreError;

use super::act::Act;
use super::core::Core;
use super::fault::{Fault, damaged};
use super::row::{self, Fields};
use super::sql::{looking, values};

/// The columns of [`group`].
pub(crate) const GROUP: &str = "SELECT g.id, g.name, g.introduction, g.announcement, g.avatar, \
     g.extra, g.creator, g.owner, g.admins, g.joining, g.history, g.is_muted, g.members, g.requests, \
     g.code, g.code_at, g.created_at, g.updated_at, g.group_type, g.is_dismissed, c.end_seq, \
     c.end_change_seq, c.end_at FROM chat_groups g JOIN conversations c ON c.id = CONCAT('sg_', g.id)";

pub(crate) fn group(row: Row) -> Result<Group, Fault> {
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
        0 => Joining::Open,
        1 => Joining::Approval,
        2 => Joining::Invite,
        _ => return Err(damaged("an unknown way to join")),
    };
    let history = match fields.u8()? {
        0 => History::Joined,
        1 => History::All,
        _ => return Err(damaged("an unknown history")),
    };
    let (is_muted, members, requests) = (fields.bool()?, fields.u32()?, fields.u32()?);
    let code = JoinCode::parse(&fields.text()?).ok_or_else(|| damaged("not a join code"))?;
    let (code_at, created_at, updated_at) = (fields.millis()?, fields.millis()?, fields.millis()?);
    profile.group_type = fields.i32()?;
    let is_dismissed = fields.bool()?;
    let ended = fields.edge()?.map(|edge| Ended { is_dismissed, edge });
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
        Joining::Open => 0,
        Joining::Approval => 1,
        Joining::Invite => 2,
    };
    let history = match group.history {
        History::Joined => 0,
        History::All => 1,
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

/// The columns of [`member`], beside the group.
pub(crate) const MEMBER: &str = "user_id, joined_at, join_seq, came_after, inviter, muted_until, \
     nickname, avatar, extra";

pub(crate) fn member(fields: &mut Fields) -> Result<GroupMember, Fault> {
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

/// These groups, ended or not.
pub(crate) async fn load(
    act: &mut Act,
    ids: &BTreeSet<GroupId>,
) -> Result<HashMap<GroupId, Arc<Group>>, Fault> {
    let keys: Vec<_> = ids.iter().map(|id| values![id.as_str()]).collect();
    let rows = act.look(&format!("{GROUP} WHERE g.id IN {{}}"), &keys).await?;
    let groups = rows.into_iter().map(|row| group(row).map(|it| (it.id.clone(), Arc::new(it))));
    groups.collect()
}

/// Those of these people who are in these groups, ended or not.
pub(crate) async fn load_members(
    act: &mut Act,
    places: &BTreeSet<(GroupId, UserId)>,
) -> Result<HashMap<(GroupId, UserId), GroupMember>, Fault> {
    let keys: Vec<_> =
        places.iter().map(|(id, user)| values![id.as_str(), user.as_str()]).collect();
    let sql =
        format!("SELECT group_id, {MEMBER} FROM group_members WHERE (group_id, user_id) IN {{}}");
    let rows = act.look(&sql, &keys).await?;
    rows.into_iter()
        .map(|row| {
            let mut fields = Fields::from(row);
            let group = fields.group()?;
            let member = member(&mut fields)?;
            Ok(((group, member.user.clone()), member))
        })
        .collect()
}

/// A group, ended or not.
pub(crate) async fn get(core: &Core, id: &GroupId) -> Result<Option<Arc<Group>>, StoreError> {
    let rows = core.rows(&format!("{GROUP} WHERE g.id = ?"), values![id.as_str()]).await?;
    Ok(rows.into_iter().next().map(group).transpose()?.map(Arc::new))
}

/// The group a code leads to.
pub(crate) async fn by_code(core: &Core, wanted: &JoinCode) -> Result<Option<GroupId>, StoreError> {
    let sql = "SELECT group_id FROM join_codes WHERE code = ?";
    let rows = core.rows(sql, values![wanted.as_str()]).await?;
    Ok(rows.into_iter().next().map(|row| Fields::from(row).group()).transpose()?)
}

/// What makes members of a group that goes on.
const GOES_ON: &str = "FROM group_members m JOIN conversations c \
     ON c.id = CONCAT('sg_', m.group_id) AND c.end_at IS NULL WHERE m.group_id = ?";

/// Somebody in a group that goes on.
pub(crate) async fn get_member(
    core: &Core,
    group: &GroupId,
    user: &UserId,
) -> Result<Option<GroupMember>, StoreError> {
    let sql = format!("SELECT {MEMBER} {GOES_ON} AND m.user_id = ?");
    let rows = core.rows(&sql, values![group.as_str(), user.as_str()]).await?;
    Ok(rows.into_iter().next().map(|row| member(&mut Fields::from(row))).transpose()?)
}

/// A page of the members of a group that goes on.
pub(crate) async fn members(
    core: &Core,
    group: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Vec<GroupMember>, StoreError> {
    let after = after.map_or("", UserId::as_str);
    let sql = format!("SELECT {MEMBER} {GOES_ON} AND m.user_id > ? ORDER BY m.user_id LIMIT ?");
    let rows = core.rows(&sql, values![group.as_str(), after, limit as u64]).await?;
    let members = rows.into_iter().map(|row| member(&mut Fields::from(row)));
    Ok(members.collect::<Result<_, Fault>>()?)
}

/// The same with how far each has come, in one statement.
pub(crate) async fn cursors(
    core: &Core,
    group: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Vec<(GroupMember, Cursors)>, StoreError> {
    let after = after.map_or("", UserId::as_str);
    let columns: Vec<String> = MEMBER.split(", ").map(|column| format!("m.{column}")).collect();
    let sql = format!(
        "SELECT {}, p.delivered_seq, p.read_seq FROM group_members m \
         JOIN conversations c ON c.id = CONCAT('sg_', m.group_id) AND c.end_at IS NULL \
         JOIN members p ON p.user_id = m.user_id AND p.conversation_id = c.id \
         WHERE m.group_id = ? AND m.user_id > ? ORDER BY m.user_id LIMIT ?",
        columns.join(", "),
    );
    let rows = core.rows(&sql, values![group.as_str(), after, limit as u64]).await?;
    let found = rows.into_iter().map(|row| {
        let mut fields = Fields::from(row);
        let member = member(&mut fields)?;
        Ok((member, Cursors { delivered: fields.seq()?, read: fields.seq()? }))
    });
    Ok(found.collect::<Result<_, Fault>>()?)
}

/// A page of those who want in.
pub(crate) async fn requests(
    core: &Core,
    group: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Vec<JoinRequest>, StoreError> {
    let after = after.map_or("", UserId::as_str);
    let sql = "SELECT user_id, message, at FROM join_requests \
         WHERE group_id = ? AND user_id > ? ORDER BY user_id LIMIT ?";
    let rows = core.rows(sql, values![group.as_str(), after, limit as u64]).await?;
    let requests = rows.into_iter().map(|row| request(&mut Fields::from(row), group.clone()));
    Ok(requests.collect::<Result<_, Fault>>()?)
}

pub(crate) fn request(fields: &mut Fields, group: GroupId) -> Result<JoinRequest, Fault> {
    let (user, message, at) = (fields.user()?, fields.text()?, fields.millis()?);
    Ok(JoinRequest { group, user, message, at })
}

/// Which of these people a user knows.
pub(crate) async fn acquainted(
    core: &Core,
    user: &UserId,
    others: &[UserId],
) -> Result<Vec<bool>, StoreError> {
    let me = [Value::from(user.as_str())];
    let mut known: BTreeSet<UserId> = [user.clone()].into();
    let keys: Vec<_> =
        others.iter().map(|other| values![ConversationId::private(user, other).as_str()]).collect();
    let talks = "SELECT conversation_id FROM members WHERE user_id = ? AND conversation_id IN {}";
    for (sql, params) in looking(talks, &me, &keys) {
        for row in core.rows(&sql, params).await? {
            known.extend(Fields::from(row).conversation()?.peer_of(user));
        }
    }
    let keys: Vec<_> = others.iter().map(|other| values![other.as_str()]).collect();
    let shares = "SELECT DISTINCT b.user_id FROM group_members a \
         JOIN conversations c ON c.id = CONCAT('sg_', a.group_id) AND c.end_at IS NULL \
         JOIN group_members b ON b.group_id = a.group_id WHERE a.user_id = ? AND b.user_id IN {}";
    for (sql, params) in looking(shares, &me, &keys) {
        for row in core.rows(&sql, params).await? {
            known.insert(Fields::from(row).user()?);
        }
    }
    Ok(others.iter().map(|other| known.contains(other)).collect())
}
