//! Groups: changed under the lock of their conversation, in one order with its messages.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use mysql_async::{Row, Value};
use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, GroupId, Millis, Seq, UserId};
use nexo_chat::membership::{
    Decision, Ended, Group, GroupFacts, GroupMember, GroupProfile, History, JoinCode, JoinRequest,
    Joining,
};
use nexo_chat::model::{Change, ChangeKind};
use nexo_chat::progress::Progress;
use nexo_chat::store::{About, Asker, Decide, Decided, StoreError};

use super::act::Act;
use super::core::Core;
use super::cursors;
use super::fault::{Fault, damaged};
use super::row::{self, Fields};
use super::sql::{looking, values};
use crate::told::told;

/// The columns of [`group`].
const GROUP: &str = "SELECT g.id, g.name, g.introduction, g.announcement, g.avatar, g.extra, \
     g.creator, g.owner, g.admins, g.joining, g.history, g.is_muted, g.members, g.requests, \
     g.code, g.code_at, g.created_at, g.updated_at, g.is_dismissed, c.end_seq, c.end_change_seq, \
     c.end_at FROM chat_groups g JOIN conversations c ON c.id = CONCAT('sg_', g.id)";

fn group(row: Row) -> Result<Group, Fault> {
    let mut fields = Fields::from(row);
    let id = fields.group()?;
    let profile = GroupProfile {
        name: fields.text()?,
        introduction: fields.text()?,
        announcement: fields.text()?,
        avatar: fields.text()?,
        extra: fields.text()?,
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

fn group_values(group: &Group) -> Vec<Value> {
    let GroupProfile { name, introduction, announcement, avatar, extra } = &group.profile;
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
        group.ended.is_some_and(|ended| ended.is_dismissed),
    ]
}

/// The columns of [`member`], beside the group.
const MEMBER: &str = "user_id, joined_at, join_seq, came_after, inviter, muted_until";

fn member(fields: &mut Fields) -> Result<GroupMember, Fault> {
    Ok(GroupMember {
        user: fields.user()?,
        joined_at: fields.millis()?,
        join_seq: fields.seq()?,
        came_after: fields.seq()?,
        inviter: fields.maybe_user()?,
        muted_until: fields.millis()?,
    })
}

fn member_values(group: &GroupId, member: &GroupMember) -> Vec<Value> {
    values![
        group.as_str(),
        member.user.as_str(),
        member.joined_at.0,
        member.join_seq.0,
        member.came_after.0,
        member.inviter.as_ref().map(UserId::as_str),
        member.muted_until.0,
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
pub(crate) async fn by_code(core: &Core, code: &JoinCode) -> Result<Option<GroupId>, StoreError> {
    let sql = "SELECT group_id FROM join_codes WHERE code = ?";
    let rows = core.rows(sql, values![code.as_str()]).await?;
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
    let requests = rows.into_iter().map(|row| request(row, group));
    Ok(requests.collect::<Result<_, Fault>>()?)
}

fn request(row: Row, group: &GroupId) -> Result<JoinRequest, Fault> {
    let mut fields = Fields::from(row);
    let (user, message, at) = (fields.user()?, fields.text()?, fields.millis()?);
    Ok(JoinRequest { group: group.clone(), user, message, at })
}

/// Which of these people a user knows.
pub(crate) async fn acquainted(
    core: &Core,
    user: &UserId,
    others: &[UserId],
) -> Result<Vec<bool>, StoreError> {
    let mut known: BTreeSet<UserId> = [user.clone()].into();
    let keys: Vec<_> =
        others.iter().map(|other| values![ConversationId::private(user, other).as_str()]).collect();
    let talks = "SELECT conversation_id FROM members WHERE user_id = ? AND conversation_id IN {}";
    for (sql, params) in looking(talks, &values![user.as_str()], &keys) {
        for row in core.rows(&sql, params).await? {
            known.extend(Fields::from(row).conversation()?.peer_of(user));
        }
    }
    let keys: Vec<_> = others.iter().map(|other| values![other.as_str()]).collect();
    let shares = "SELECT DISTINCT b.user_id FROM group_members a \
         JOIN conversations c ON c.id = CONCAT('sg_', a.group_id) AND c.end_at IS NULL \
         JOIN group_members b ON b.group_id = a.group_id WHERE a.user_id = ? AND b.user_id IN {}";
    for (sql, params) in looking(shares, &values![user.as_str()], &keys) {
        for row in core.rows(&sql, params).await? {
            known.insert(Fields::from(row).user()?);
        }
    }
    Ok(others.iter().map(|other| known.contains(other)).collect())
}

/// A change to a group that waits for its turn.
pub(crate) struct GroupAct {
    pub(crate) id: GroupId,
    pub(crate) asker: Asker,
    pub(crate) about: About,
    pub(crate) decide: Decide,
}

/// Decides about a group and does what was decided.
pub(crate) async fn change(
    core: &Core,
    it: GroupAct,
) -> Result<Result<Decided, Reason>, StoreError> {
    let GroupAct { id, asker, about, decide } = it;
    let mut open = Open::Undecided(decide);
    let mut tries = core.tries();
    loop {
        match attempt(core, &id, &asker, &about, &mut open).await {
            Ok(Ok(decided)) => {
                core.announce(&told(&decided, &asker));
                return Ok(Ok(decided));
            }
            Ok(Err(reason)) => return Ok(Err(reason)),
            Err(fault) => tries.again(fault).await?,
        }
    }
}

/// A decision is asked for once. Tried again, it holds as long as what it was made on does.
enum Open {
    Undecided(Decide),
    Decided(Box<(GroupFacts, Result<Decision, Reason>)>),
    Lost,
}

impl Open {
    fn decide(&mut self, facts: &GroupFacts) -> Result<Result<Decision, Reason>, Fault> {
        let decision = match std::mem::replace(self, Self::Lost) {
            Self::Undecided(decide) => decide(facts),
            Self::Decided(made) if made.0 == *facts => made.1,
            _ => {
                let others = "the group changed while the database was away: ask again";
                return Err(Fault::Unknown(others.into()));
            }
        };
        *self = Self::Decided(Box::new((facts.clone(), decision.clone())));
        Ok(decision)
    }
}

async fn attempt(
    core: &Core,
    id: &GroupId,
    asker: &Asker,
    about: &About,
    open: &mut Open,
) -> Result<Result<Decided, Reason>, Fault> {
    let mut act = core.begin().await?;
    let facts = facts(&mut act, id, asker, about).await?;
    let decision = match open.decide(&facts)? {
        Ok(decision) => decision,
        Err(reason) => {
            act.roll_back().await?;
            return Ok(Err(reason));
        }
    };
    let decided = write(&mut act, id, asker, &facts, decision).await?;
    act.commit().await?;
    Ok(Ok(decided))
}

async fn facts(
    act: &mut Act,
    id: &GroupId,
    asker: &Asker,
    about: &About,
) -> Result<GroupFacts, Fault> {
    let conversation = id.conversation();
    let sql = "SELECT max_seq, change_seq FROM conversations WHERE id = ? FOR UPDATE";
    let row = act.rows(sql, values![conversation.as_str()]).await?.into_iter().next();
    let (mut head, mut change_seq) = (Seq::ZERO, Seq::ZERO);
    if let Some(row) = row {
        let mut fields = Fields::from(row);
        (head, change_seq) = (fields.seq()?, fields.seq()?);
    }
    let group = load(act, &[id.clone()].into()).await?.remove(id);
    let group = group.map(Arc::unwrap_or_clone);
    let places: BTreeSet<(GroupId, UserId)> =
        about.users.iter().chain([&asker.user]).map(|user| (id.clone(), user.clone())).collect();
    let mut members = BTreeMap::new();
    if group.as_ref().is_some_and(|group| group.ended.is_none()) {
        let found = load_members(act, &places).await?;
        members = found.into_iter().map(|((_, user), member)| (user, member)).collect();
    }
    let keys: Vec<_> =
        places.iter().map(|(id, user)| values![id.as_str(), user.as_str()]).collect();
    let sql = "SELECT user_id, message, at FROM join_requests WHERE (group_id, user_id) IN {}";
    let mut requests = BTreeMap::new();
    for row in act.look(sql, &keys).await? {
        let request = request(row, id)?;
        requests.insert(request.user.clone(), request);
    }
    let sql = "SELECT user_id, muted_until FROM mutes WHERE (group_id, user_id) IN {}";
    let mut mutes: BTreeMap<UserId, Millis> = BTreeMap::new();
    for row in act.look(sql, &keys).await? {
        let mut fields = Fields::from(row);
        mutes.insert(fields.user()?, fields.millis()?);
    }
    let mut code_is_taken = false;
    if let Some(code) = &about.code {
        let sql = "SELECT 1 FROM join_codes WHERE code = ?";
        code_is_taken = !act.rows(sql, values![code.as_str()]).await?.is_empty();
    }
    Ok(GroupFacts { group, members, requests, mutes, code_is_taken, head, change_seq })
}

async fn write(
    act: &mut Act,
    id: &GroupId,
    asker: &Asker,
    facts: &GroupFacts,
    decision: Decision,
) -> Result<Decided, Fault> {
    let Decision { group, joined, left, mutes, changed, asked, settled, changes } = decision;
    let conversation = id.conversation();
    let changes = number(&conversation, facts.change_seq, asker, changes);
    let change_seq = changes.last().map_or(facts.change_seq, |change| change.seq);
    write_group(act, facts, &group, change_seq).await?;
    write_codes(act, facts.group.as_ref(), &group).await?;
    let progress = Progress::joined(facts.head);
    let comers = joined.iter().map(|(member, window)| (&member.user, *window));
    cursors::open_windows(act, &conversation, comers, progress).await?;
    let came: Vec<UserId> = joined.iter().map(|(member, _)| member.user.clone()).collect();
    forget(act, "mutes", id, came.iter().filter(|user| facts.mutes.contains_key(user))).await?;
    let rows = mutes.iter().map(|(user, at)| values![id.as_str(), user.as_str(), at.0]).collect();
    let sql = "INSERT INTO mutes (group_id, user_id, muted_until) VALUES {} \
         ON DUPLICATE KEY UPDATE muted_until = VALUES(muted_until)";
    act.write(sql, rows).await?;
    for (user, edge) in &left {
        cursors::close_window(act, user, &conversation, *edge).await?;
    }
    forget(act, "group_members", id, left.iter().map(|(user, _)| user)).await?;
    let members = joined.iter().map(|(member, _)| member).chain(&changed);
    let rows = members.map(|member| member_values(id, member)).collect();
    let sql = format!(
        "INSERT INTO group_members (group_id, {MEMBER}) VALUES {{}} ON DUPLICATE KEY UPDATE \
         joined_at = VALUES(joined_at), join_seq = VALUES(join_seq), \
         came_after = VALUES(came_after), inviter = VALUES(inviter), \
         muted_until = VALUES(muted_until)",
    );
    act.write(&sql, rows).await?;
    let rows = asked
        .iter()
        .map(|it| values![id.as_str(), it.user.as_str(), &it.message, it.at.0])
        .collect();
    let sql = "INSERT INTO join_requests (group_id, user_id, message, at) VALUES {} \
         ON DUPLICATE KEY UPDATE message = VALUES(message), at = VALUES(at)";
    act.write(sql, rows).await?;
    forget(act, "join_requests", id, settled.iter()).await?;
    let rows = changes.iter().map(|change| row::change_values(change)).collect();
    let sql = format!("INSERT INTO changes (conversation_id, {}) VALUES {{}}", row::CHANGE);
    act.write(&sql, rows).await?;
    let is_new = |request: &JoinRequest| !facts.requests.contains_key(&request.user);
    let asked = asked.into_iter().filter(is_new).collect();
    let settled = settled.iter().filter_map(|user| facts.requests.get(user).cloned()).collect();
    Ok(Decided { group: Arc::new(group), joined: came, asked, settled, changes })
}

/// Gives changes the next places.
pub(crate) fn number(
    conversation: &ConversationId,
    after: Seq,
    asker: &Asker,
    kinds: Vec<ChangeKind>,
) -> Vec<Arc<Change>> {
    let mut seq = after;
    let numbered = kinds.into_iter().map(|kind| {
        seq = seq.next();
        let (conversation, by) = (conversation.clone(), asker.user.clone());
        Arc::new(Change { conversation, seq, by, at: asker.at, kind })
    });
    numbered.collect()
}

async fn write_group(
    act: &mut Act,
    facts: &GroupFacts,
    group: &Group,
    change_seq: Seq,
) -> Result<(), Fault> {
    let conversation = group.id.conversation();
    let end = row::edge_values(group.ended.map(|ended| ended.edge));
    if facts.group.is_none() {
        let mut row = values![conversation.as_str(), facts.head.0, change_seq.0, 0];
        row.extend(end);
        let sql = "INSERT INTO conversations (id, max_seq, change_seq, newest_at, end_seq, \
             end_change_seq, end_at) VALUES (?, ?, ?, ?, ?, ?, ?)";
        act.run(sql, row).await?;
    } else {
        let mut params = values![change_seq.0];
        params.extend(end);
        params.extend(values![conversation.as_str()]);
        let sql = "UPDATE conversations SET change_seq = ?, end_seq = ?, end_change_seq = ?, \
             end_at = ? WHERE id = ?";
        act.run(sql, params).await?;
    }
    let columns = "id, name, introduction, announcement, avatar, extra, creator, owner, admins, \
         joining, history, is_muted, members, requests, code, code_at, created_at, updated_at, \
         is_dismissed";
    let sets: Vec<String> = columns
        .split(", ")
        .skip(1)
        .map(str::trim)
        .map(|column| format!("{column} = VALUES({column})"))
        .collect();
    let sql = format!(
        "INSERT INTO chat_groups ({columns}) VALUES {{}} ON DUPLICATE KEY UPDATE {}",
        sets.join(", "),
    );
    act.write(&sql, vec![group_values(group)]).await
}

/// The code leads to the group as long as it goes on.
async fn write_codes(act: &mut Act, before: Option<&Group>, group: &Group) -> Result<(), Fault> {
    let old = before.filter(|before| before.ended.is_none()).map(|before| &before.code);
    let new = Some(&group.code).filter(|_| group.ended.is_none());
    if old == new {
        return Ok(());
    }
    if let Some(code) = old {
        act.run("DELETE FROM join_codes WHERE code = ?", values![code.as_str()]).await?;
    }
    if let Some(code) = new {
        let sql = "INSERT INTO join_codes (code, group_id) VALUES (?, ?)";
        act.run(sql, values![code.as_str(), group.id.as_str()]).await?;
    }
    Ok(())
}

/// Deletes people's rows of a table that is kept by group and user.
async fn forget(
    act: &mut Act,
    table: &str,
    id: &GroupId,
    users: impl Iterator<Item = &UserId>,
) -> Result<(), Fault> {
    let keys: Vec<_> = users.map(|user| values![id.as_str(), user.as_str()]).collect();
    let sql = format!("DELETE FROM {table} WHERE (group_id, user_id) IN {{}}");
    for (sql, params) in looking(&sql, &[], &keys) {
        act.run(sql, params).await?;
    }
    Ok(())
}
