//! Groups: changed by the committer of their conversation, read from the tables.

use std::collections::BTreeSet;
use std::sync::Arc;

use mysql_async::Value;
use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, GroupId, UserId};
use nexo_chat::membership::{Group, GroupMember, JoinCode, JoinRequest};
use nexo_chat::model::Cursors;
use nexo_chat::store::{
    Actor, DecideGroup, GroupFactsQuery, GroupOutcome, GroupStore, StoreError, StoreFuture,
};

use super::MySql;
use super::change_group::GroupChangeRequest;
use super::committer::WriteRequest;
use super::core::Core;
use super::fault::SqlFault;
use super::fields::Fields;
use super::group_rows::{self, GROUP, MEMBER};
use super::sql::{select_in, values};

/// Selects members of a group that has not ended.
const GOES_ON: &str = "FROM group_members m JOIN conversations c \
     ON c.id = CONCAT('sg_', m.group_id) AND c.end_at IS NULL WHERE m.group_id = ?";

impl GroupStore for MySql {
    fn change_group(
        &self,
        id: &GroupId,
        asker: Actor,
        about: GroupFactsQuery,
        decide: DecideGroup,
    ) -> StoreFuture<'static, Result<GroupOutcome, Reason>> {
        let (id, conversation) = (id.clone(), id.conversation());
        let request = GroupChangeRequest { id, conversation, asker, about, decide };
        self.submit(0, |answer| WriteRequest::ChangeGroup(request, answer))
    }

    fn group(&self, id: &GroupId) -> StoreFuture<'_, Option<Arc<Group>>> {
        let id = id.clone();
        self.spawn_read(async move |core| {
            let rows = core.rows(&format!("{GROUP} WHERE g.id = ?"), values![id.as_str()]).await?;
            Ok(rows.into_iter().next().map(group_rows::group).transpose()?.map(Arc::new))
        })
    }

    fn groups(&self, after: Option<&GroupId>, limit: usize) -> StoreFuture<'_, Vec<Arc<Group>>> {
        let after = after.cloned();
        self.spawn_read(async move |core| {
            let after = after.as_ref().map_or("", GroupId::as_str);
            let sql = format!("{GROUP} WHERE g.id > ? ORDER BY g.id LIMIT ?");
            let rows = core.rows(&sql, values![after, limit as u64]).await?;
            let groups = rows.into_iter().map(|row| group_rows::group(row).map(Arc::new));
            Ok(groups.collect::<Result<_, SqlFault>>()?)
        })
    }

    fn group_by_code(&self, code: &JoinCode) -> StoreFuture<'_, Option<GroupId>> {
        let code = code.clone();
        self.spawn_read(async move |core| {
            let sql = "SELECT group_id FROM join_codes WHERE code = ?";
            let rows = core.rows(sql, values![code.as_str()]).await?;
            Ok(rows.into_iter().next().map(|row| Fields::from(row).group()).transpose()?)
        })
    }

    fn group_member(&self, group: &GroupId, user: &UserId) -> StoreFuture<'_, Option<GroupMember>> {
        let (group, user) = (group.clone(), user.clone());
        self.spawn_read(async move |core| {
            let sql = format!("SELECT {MEMBER} {GOES_ON} AND m.user_id = ?");
            let rows = core.rows(&sql, values![group.as_str(), user.as_str()]).await?;
            Ok(rows
                .into_iter()
                .next()
                .map(|row| group_rows::member(&mut Fields::from(row)))
                .transpose()?)
        })
    }

    fn group_members(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<GroupMember>> {
        let (group, after) = (group.clone(), after.cloned());
        self.spawn_read(async move |core| read_members(&core, &group, after.as_ref(), limit).await)
    }

    fn group_cursors(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(GroupMember, Cursors)>> {
        let (group, after) = (group.clone(), after.cloned());
        self.spawn_read(async move |core| read_cursors(&core, &group, after.as_ref(), limit).await)
    }

    fn share_conversation(&self, user: &UserId, others: Vec<UserId>) -> StoreFuture<'_, Vec<bool>> {
        let user = user.clone();
        self.spawn_read(async move |core| share_conversation(&core, &user, &others).await)
    }

    fn join_requests(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<JoinRequest>> {
        let (group, after) = (group.clone(), after.cloned());
        self.spawn_read(async move |core| {
            read_join_requests(&core, &group, after.as_ref(), limit).await
        })
    }
}

/// Reads a page of the members of a group that has not ended.
async fn read_members(
    core: &Core,
    group: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Vec<GroupMember>, StoreError> {
    let after = after.map_or("", UserId::as_str);
    let sql = format!("SELECT {MEMBER} {GOES_ON} AND m.user_id > ? ORDER BY m.user_id LIMIT ?");
    let rows = core.rows(&sql, values![group.as_str(), after, limit as u64]).await?;
    let members = rows.into_iter().map(|row| group_rows::member(&mut Fields::from(row)));
    Ok(members.collect::<Result<_, SqlFault>>()?)
}

/// Reads the same members with their cursors, in one statement.
async fn read_cursors(
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
        let member = group_rows::member(&mut fields)?;
        Ok((member, Cursors { delivered: fields.seq()?, read: fields.seq()? }))
    });
    Ok(found.collect::<Result<_, SqlFault>>()?)
}

async fn read_join_requests(
    core: &Core,
    group: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Vec<JoinRequest>, StoreError> {
    let after = after.map_or("", UserId::as_str);
    let sql = "SELECT user_id, message, at FROM join_requests \
         WHERE group_id = ? AND user_id > ? ORDER BY user_id LIMIT ?";
    let rows = core.rows(sql, values![group.as_str(), after, limit as u64]).await?;
    let requests =
        rows.into_iter().map(|row| group_rows::request(&mut Fields::from(row), group.clone()));
    Ok(requests.collect::<Result<_, SqlFault>>()?)
}

/// Tells which of these users share a conversation with `user`.
async fn share_conversation(
    core: &Core,
    user: &UserId,
    others: &[UserId],
) -> Result<Vec<bool>, StoreError> {
    let me = [Value::from(user.as_str())];
    let mut known: BTreeSet<UserId> = [user.clone()].into();
    let keys: Vec<_> =
        others.iter().map(|other| values![ConversationId::private(user, other).as_str()]).collect();
    let private = "SELECT id FROM conversations WHERE max_seq > 0 AND id IN {}";
    for (sql, params) in select_in(private, &[], &keys) {
        for row in core.rows(&sql, params).await? {
            known.extend(Fields::from(row).conversation()?.peer_of(user));
        }
    }
    let keys: Vec<_> = others.iter().map(|other| values![other.as_str()]).collect();
    let shares = "SELECT DISTINCT b.user_id FROM group_members a \
         JOIN conversations c ON c.id = CONCAT('sg_', a.group_id) AND c.end_at IS NULL \
         JOIN group_members b ON b.group_id = a.group_id WHERE a.user_id = ? AND b.user_id IN {}";
    for (sql, params) in select_in(shares, &me, &keys) {
        for row in core.rows(&sql, params).await? {
            known.insert(Fields::from(row).user()?);
        }
    }
    Ok(others.iter().map(|other| known.contains(other)).collect())
}
