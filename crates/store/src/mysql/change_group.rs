//! Changes a group under the lock of its conversation, in one order with the messages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, GroupId, Millis, Seq, UserId};
use nexo_chat::membership::{Group, GroupDecision, GroupFacts, JoinRequest};
use nexo_chat::model::{Change, ChangeKind};
use nexo_chat::progress::Progress;
use nexo_chat::store::{Actor, DecideGroup, GroupFactsQuery, GroupOutcome, StoreError};

use super::core::Core;
use super::fault::SqlFault;
use super::fields::Fields;
use super::group_rows::{
    self, GROUP_COLUMNS, MEMBER, group_values, load, load_members, member_values,
};
use super::sql::{select_in, values};
use super::transaction::Transaction;
use super::{members, row};
use crate::group_events::group_events;

/// A change of a group in the queue of a committer.
pub(crate) struct GroupChangeRequest {
    pub(crate) id: GroupId,
    pub(crate) conversation: ConversationId,
    pub(crate) asker: Actor,
    pub(crate) about: GroupFactsQuery,
    pub(crate) decide: DecideGroup,
}

/// Decides about a group and carries out the decision.
pub(crate) async fn change(
    core: &Core,
    it: GroupChangeRequest,
) -> Result<Result<GroupOutcome, Reason>, StoreError> {
    let mut retry = core.retry_policy();
    loop {
        match attempt(core, &it).await {
            Ok(Ok(outcome)) => {
                core.announce(&group_events(&outcome, &it.asker));
                return Ok(Ok(outcome));
            }
            Ok(Err(reason)) => return Ok(Err(reason)),
            Err(fault) => retry.wait(fault).await?,
        }
    }
}

async fn attempt(
    core: &Core,
    it: &GroupChangeRequest,
) -> Result<Result<GroupOutcome, Reason>, SqlFault> {
    let GroupChangeRequest { id, asker, about, decide, .. } = it;
    let mut transaction = core.begin().await?;
    let facts = facts(&mut transaction, id, asker, about).await?;
    let decision = match decide(&facts) {
        Ok(decision) => decision,
        Err(reason) => {
            transaction.roll_back().await?;
            return Ok(Err(reason));
        }
    };
    let outcome = write(&mut transaction, id, asker, &facts, decision).await?;
    transaction.commit().await?;
    Ok(Ok(outcome))
}

async fn facts(
    transaction: &mut Transaction,
    id: &GroupId,
    asker: &Actor,
    about: &GroupFactsQuery,
) -> Result<GroupFacts, SqlFault> {
    let conversation = id.conversation();
    let sql = "SELECT max_seq, change_seq FROM conversations WHERE id = ? FOR UPDATE";
    let row = transaction.rows(sql, values![conversation.as_str()]).await?.into_iter().next();
    let (mut head, mut change_seq) = (Seq::ZERO, Seq::ZERO);
    if let Some(row) = row {
        let mut fields = Fields::from(row);
        (head, change_seq) = (fields.seq()?, fields.seq()?);
    }
    let group = load(transaction, &[id.clone()].into()).await?.remove(id);
    let group = group.map(Arc::unwrap_or_clone);
    let member_keys: BTreeSet<(GroupId, UserId)> =
        about.users.iter().chain([&asker.user]).map(|user| (id.clone(), user.clone())).collect();
    let mut members = BTreeMap::new();
    if group.as_ref().is_some_and(|group| group.ended.is_none()) {
        let found = load_members(transaction, &member_keys).await?;
        members = found.into_iter().map(|((_, user), member)| (user, member)).collect();
    }
    let keys: Vec<_> =
        member_keys.iter().map(|(id, user)| values![id.as_str(), user.as_str()]).collect();
    let sql = "SELECT user_id, message, at FROM join_requests WHERE (group_id, user_id) IN {}";
    let mut requests = BTreeMap::new();
    for row in transaction.rows_by_keys(sql, &keys).await? {
        let request = group_rows::request(&mut Fields::from(row), id.clone())?;
        requests.insert(request.user.clone(), request);
    }
    let sql = "SELECT user_id, muted_until FROM mutes WHERE (group_id, user_id) IN {}";
    let mut mutes: BTreeMap<UserId, Millis> = BTreeMap::new();
    for row in transaction.rows_by_keys(sql, &keys).await? {
        let mut fields = Fields::from(row);
        mutes.insert(fields.user()?, fields.millis()?);
    }
    let mut code_is_taken = false;
    if let Some(code) = &about.code {
        let sql = "SELECT 1 FROM join_codes WHERE code = ?";
        code_is_taken = !transaction.rows(sql, values![code.as_str()]).await?.is_empty();
    }
    let asking = (asker.user.clone(), conversation);
    let was_member = members.contains_key(&asker.user)
        || members::existing(transaction, &[asking.clone()].into()).await?.contains(&asking);
    Ok(GroupFacts { group, members, was_member, requests, mutes, code_is_taken, head, change_seq })
}

async fn write(
    transaction: &mut Transaction,
    id: &GroupId,
    asker: &Actor,
    facts: &GroupFacts,
    decision: GroupDecision,
) -> Result<GroupOutcome, SqlFault> {
    let GroupDecision {
        group,
        joined,
        left,
        mutes,
        changed_members,
        new_requests,
        closed_requests,
        changes,
    } = decision;
    let conversation = id.conversation();
    let changes = number_changes(&conversation, facts.change_seq, asker, changes);
    let change_seq = changes.last().map_or(facts.change_seq, |change| change.seq);
    write_group(transaction, facts, &group, change_seq).await?;
    write_codes(transaction, facts.group.as_ref(), &group).await?;
    let progress = Progress::joined(facts.head);
    let comers = joined.iter().map(|(member, window)| (&member.user, *window));
    members::open_windows(transaction, &conversation, comers, progress).await?;
    let joined_users: Vec<UserId> = joined.iter().map(|(member, _)| member.user.clone()).collect();
    delete_users(
        transaction,
        "mutes",
        id,
        joined_users.iter().filter(|user| facts.mutes.contains_key(user)),
    )
    .await?;
    let rows = mutes.iter().map(|(user, at)| values![id.as_str(), user.as_str(), at.0]).collect();
    let sql = "INSERT INTO mutes (group_id, user_id, muted_until) VALUES {} \
         ON DUPLICATE KEY UPDATE muted_until = VALUES(muted_until)";
    transaction.write(sql, rows).await?;
    for (user, edge) in &left {
        members::close_window(transaction, user, &conversation, *edge).await?;
    }
    delete_users(transaction, "group_members", id, left.iter().map(|(user, _)| user)).await?;
    let members = joined.iter().map(|(member, _)| member).chain(&changed_members);
    let rows = members.map(|member| member_values(id, member)).collect();
    let sql = format!(
        "INSERT INTO group_members (group_id, {MEMBER}) VALUES {{}} ON DUPLICATE KEY UPDATE \
         joined_at = VALUES(joined_at), join_seq = VALUES(join_seq), \
         came_after = VALUES(came_after), inviter = VALUES(inviter), \
         muted_until = VALUES(muted_until), nickname = VALUES(nickname), \
         avatar = VALUES(avatar), extra = VALUES(extra)",
    );
    transaction.write(&sql, rows).await?;
    let rows = new_requests
        .iter()
        .map(|it| values![id.as_str(), it.user.as_str(), &it.message, it.at.0])
        .collect();
    let sql = "INSERT INTO join_requests (group_id, user_id, message, at) VALUES {} \
         ON DUPLICATE KEY UPDATE message = VALUES(message), at = VALUES(at)";
    transaction.write(sql, rows).await?;
    delete_users(transaction, "join_requests", id, closed_requests.iter()).await?;
    let rows = changes.iter().map(|change| row::change_values(change)).collect();
    let sql = format!("INSERT INTO changes (conversation_id, {}) VALUES {{}}", row::CHANGE);
    transaction.write(&sql, rows).await?;
    let is_new = |request: &JoinRequest| !facts.requests.contains_key(&request.user);
    let new = new_requests.into_iter().filter(is_new).collect();
    let settled =
        closed_requests.iter().filter_map(|user| facts.requests.get(user).cloned()).collect();
    Ok(GroupOutcome { group: Arc::new(group), joined: joined_users, asked: new, settled, changes })
}

/// Assigns the next change seqs.
pub(crate) fn number_changes(
    conversation: &ConversationId,
    after: Seq,
    asker: &Actor,
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
    transaction: &mut Transaction,
    facts: &GroupFacts,
    group: &Group,
    change_seq: Seq,
) -> Result<(), SqlFault> {
    let conversation = group.id.conversation();
    let end = row::window_end_values(group.ended.map(|ended| ended.window_end));
    if facts.group.is_none() {
        let mut row = values![conversation.as_str(), facts.head.0, change_seq.0, 0];
        row.extend(end);
        let sql = "INSERT INTO conversations (id, max_seq, change_seq, newest_at, end_seq, \
             end_change_seq, end_at) VALUES (?, ?, ?, ?, ?, ?, ?)";
        transaction.run(sql, row).await?;
    } else {
        let mut params = values![change_seq.0];
        params.extend(end);
        params.extend(values![conversation.as_str()]);
        let sql = "UPDATE conversations SET change_seq = ?, end_seq = ?, end_change_seq = ?, \
             end_at = ? WHERE id = ?";
        transaction.run(sql, params).await?;
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
    transaction.write(&sql, vec![group_values(group)]).await
}

/// Moves the join code of a group; a group that has ended has none.
async fn write_codes(
    transaction: &mut Transaction,
    before: Option<&Group>,
    group: &Group,
) -> Result<(), SqlFault> {
    let old = before.filter(|before| before.ended.is_none()).map(|before| &before.code);
    let new = Some(&group.code).filter(|_| group.ended.is_none());
    if old == new {
        return Ok(());
    }
    if let Some(code) = old {
        transaction.run("DELETE FROM join_codes WHERE code = ?", values![code.as_str()]).await?;
    }
    if let Some(code) = new {
        let sql = "INSERT INTO join_codes (code, group_id) VALUES (?, ?)";
        transaction.run(sql, values![code.as_str(), group.id.as_str()]).await?;
    }
    Ok(())
}

/// Deletes users' rows of a table that has group and user as its key.
async fn delete_users(
    transaction: &mut Transaction,
    table: &str,
    id: &GroupId,
    users: impl Iterator<Item = &UserId>,
) -> Result<(), SqlFault> {
    let keys: Vec<_> = users.map(|user| values![id.as_str(), user.as_str()]).collect();
    let sql = format!("DELETE FROM {table} WHERE (group_id, user_id) IN {{}}");
    for (sql, params) in select_in(&sql, &[], &keys) {
        transaction.run(sql, params).await?;
    }
    Ok(())
}
