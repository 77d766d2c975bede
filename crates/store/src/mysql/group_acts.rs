//! Groups are changed under the lock of their conversation, in one order with its messages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, GroupId, Millis, Seq, UserId};
use nexo_chat::membership::{Decision, Group, GroupFacts, JoinRequest};
use nexo_chat::model::{Change, ChangeKind};
use nexo_chat::progress::Progress;
use nexo_chat::store::{About, Asker, Decide, Decided, StoreError};

use super::act::Act;
use super::core::Core;
use super::cursors;
use super::fault::Fault;
use super::groups::{
    GROUP_COLUMNS, MEMBER, group_values, load, load_members, member_values, request,
};
use super::row::{self, Fields};
use super::sql::{looking, values};
use crate::told::told;

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
    let mut tries = core.tries();
    loop {
        match attempt(core, &it).await {
            Ok(Ok(decided)) => {
                core.announce(&told(&decided, &it.asker));
                return Ok(Ok(decided));
            }
            Ok(Err(reason)) => return Ok(Err(reason)),
            Err(fault) => tries.again(fault).await?,
        }
    }
}

async fn attempt(core: &Core, it: &GroupAct) -> Result<Result<Decided, Reason>, Fault> {
    let GroupAct { id, asker, about, decide } = it;
    let mut act = core.begin().await?;
    let facts = facts(&mut act, id, asker, about).await?;
    let decision = match decide(&facts) {
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
        let request = request(&mut Fields::from(row), id.clone())?;
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
    let asking = (asker.user.clone(), conversation);
    let was_in = members.contains_key(&asker.user)
        || cursors::are_there(act, &[asking.clone()].into()).await?.contains(&asking);
    Ok(GroupFacts { group, members, was_in, requests, mutes, code_is_taken, head, change_seq })
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
         muted_until = VALUES(muted_until), nickname = VALUES(nickname), \
         avatar = VALUES(avatar), extra = VALUES(extra)",
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
    let new = asked.into_iter().filter(is_new).collect();
    let settled = settled.iter().filter_map(|user| facts.requests.get(user).cloned()).collect();
    Ok(Decided { group: Arc::new(group), joined: came, asked: new, settled, changes })
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
    let sets: Vec<String> = GROUP_COLUMNS
        .split(", ")
        .skip(1)
        .map(str::trim)
        .map(|column| format!("{column} = VALUES({column})"))
        .collect();
    let sql = format!(
        "INSERT INTO chat_groups ({GROUP_COLUMNS}) VALUES {{}} ON DUPLICATE KEY UPDATE {}",
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
