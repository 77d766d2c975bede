//! Groups: changed by the committer in one order with their messages, read through caches.

use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, GroupId, Seq, UserId};
use nexo_chat::membership::{Group, GroupMember, JoinCode, JoinRequest};
use nexo_chat::model::Cursors;
use nexo_chat::store::{
    Actor, DecideGroup, GroupFactsQuery, GroupOutcome, GroupStore, Order, StoreFuture,
};

use super::core::Core;
use super::keys::Keyspace;
use super::poison::EngineFault;
use super::record::{GroupMemberRecord, GroupRecord, RequestRecord, user_id};
use super::{CHANGE_BYTES, Embedded, change_group, conversations, keys, record};

impl GroupStore for Embedded {
    fn change_group(
        &self,
        id: &GroupId,
        asker: Actor,
        about: GroupFactsQuery,
        decide: DecideGroup,
    ) -> StoreFuture<'static, Result<GroupOutcome, Reason>> {
        let id = id.clone();
        let bytes = CHANGE_BYTES * (1 + about.users.len());
        self.submit(bytes, move |pending| {
            change_group::change_group(pending, &id, &asker, about, &decide)
        })
    }

    fn group(&self, id: &GroupId) -> StoreFuture<'_, Option<Arc<Group>>> {
        self.read_now(|core| find_group(core, id))
    }

    fn groups(&self, after: Option<&GroupId>, limit: usize) -> StoreFuture<'_, Vec<Arc<Group>>> {
        let after = after.cloned();
        self.read_blocking(move |core| read_groups(core, after.as_ref(), limit))
    }

    fn group_by_code(&self, code: &JoinCode) -> StoreFuture<'_, Option<GroupId>> {
        self.read_now(|core| find_by_code(core, code))
    }

    fn group_member(&self, group: &GroupId, user: &UserId) -> StoreFuture<'_, Option<GroupMember>> {
        self.read_now(|core| {
            Ok(find_member(core, group, user)?.map(|member| GroupMember::clone(&member)))
        })
    }

    fn group_members(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<GroupMember>> {
        let (group, after) = (group.clone(), after.cloned());
        self.read_blocking(move |core| read_members(core, &group, after.as_ref(), limit))
    }

    fn group_cursors(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(GroupMember, Cursors)>> {
        let (group, after) = (group.clone(), after.cloned());
        self.read_blocking(move |core| read_cursors(core, &group, after.as_ref(), limit))
    }

    fn share_conversation(&self, user: &UserId, others: Vec<UserId>) -> StoreFuture<'_, Vec<bool>> {
        let user = user.clone();
        self.read_blocking(move |core| share_conversation(core, &user, &others))
    }

    fn join_requests(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<JoinRequest>> {
        let (group, after) = (group.clone(), after.cloned());
        self.read_blocking(move |core| read_join_requests(core, &group, after.as_ref(), limit))
    }
}

/// Returns a group, ended or not.
pub(crate) fn find_group(core: &Core, id: &GroupId) -> Result<Option<Arc<Group>>, EngineFault> {
    core.groups.get(id, || {
        let key = keys::group(id);
        let Some(bytes) = core.engine.get(Keyspace::Groups, &key)? else { return Ok(None) };
        Ok(Some(record::decode::<GroupRecord<'_>>(Keyspace::Groups, &key, &bytes)?.group(id)?))
    })
}

/// Reads a page of all groups, ended or not.
fn read_groups(
    core: &Core,
    after: Option<&GroupId>,
    limit: usize,
) -> Result<Vec<Arc<Group>>, EngineFault> {
    let keyspace = Keyspace::Groups;
    let range = keys::after(after.map(keys::group));
    let found = core.engine.scan(keyspace, range, limit, Order::Ascending, usize::MAX)?;
    let groups = found.iter().map(|(key, value)| {
        let id = std::str::from_utf8(key).ok().and_then(|id| GroupId::parse(id).ok());
        let id = id.ok_or_else(|| record::impossible(keyspace, "not a group id"))?;
        record::decode::<GroupRecord<'_>>(keyspace, key, value)?.group(&id).map(Arc::new)
    });
    groups.collect()
}

/// Returns a member of a group that has not ended.
pub(crate) fn find_member(
    core: &Core,
    group: &GroupId,
    user: &UserId,
) -> Result<Option<Arc<GroupMember>>, EngineFault> {
    if find_group(core, group)?.is_none_or(|group| group.ended.is_some()) {
        return Ok(None);
    }
    stored_member(core, group, user)
}

pub(super) fn stored_member(
    core: &Core,
    group: &GroupId,
    user: &UserId,
) -> Result<Option<Arc<GroupMember>>, EngineFault> {
    core.group_members.get(&(group.clone(), user.clone()), || {
        let key = keys::group_member(group, user);
        let Some(bytes) = core.engine.get(Keyspace::GroupMembers, &key)? else { return Ok(None) };
        let record: GroupMemberRecord<'_> = record::decode(Keyspace::GroupMembers, &key, &bytes)?;
        Ok(Some(record.member(user.clone())?))
    })
}

/// Reads a page of the members of a group that has not ended.
pub(crate) fn read_members(
    core: &Core,
    group: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Vec<GroupMember>, EngineFault> {
    if find_group(core, group)?.is_none_or(|group| group.ended.is_some()) {
        return Ok(Vec::new());
    }
    page(core, Keyspace::GroupMembers, group, after, limit, |key, bytes, user| {
        record::decode::<GroupMemberRecord<'_>>(Keyspace::GroupMembers, key, bytes)?.member(user)
    })
}

/// Reads the same members with their cursors, which are cached.
pub(crate) fn read_cursors(
    core: &Core,
    group: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Vec<(GroupMember, Cursors)>, EngineFault> {
    let mut found = Vec::new();
    for member in read_members(core, group, after, limit)? {
        let member_key = (member.user.clone(), group.conversation());
        let known = core.members.get(&core.engine, &member_key)?;
        found.push((member, known.map(|known| known.progress.cursors).unwrap_or_default()));
    }
    Ok(found)
}

/// Tells which of these users share a conversation with `user`.
pub(crate) fn share_conversation(
    core: &Core,
    user: &UserId,
    others: &[UserId],
) -> Result<Vec<bool>, EngineFault> {
    let mut mine = Vec::new();
    for standing in conversations::read_standings(core, user, None, usize::MAX)? {
        mine.extend(standing.conversation.group().filter(|_| standing.is_active()));
    }
    let mut known = Vec::with_capacity(others.len());
    for other in others {
        let private = ConversationId::private(user, other);
        let mut is_known =
            user == other || core.heads.get_readable(core, &private)?.head.seq > Seq::ZERO;
        for group in &mine {
            if is_known {
                break;
            }
            is_known = find_member(core, group, other)?.is_some();
        }
        known.push(is_known);
    }
    Ok(known)
}

pub(crate) fn read_join_requests(
    core: &Core,
    group: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Vec<JoinRequest>, EngineFault> {
    page(core, Keyspace::JoinRequests, group, after, limit, |key, bytes, user| {
        let record: RequestRecord<'_> = record::decode(Keyspace::JoinRequests, key, bytes)?;
        Ok(record.request(group, user))
    })
}

fn page<T>(
    core: &Core,
    keyspace: Keyspace,
    group: &GroupId,
    after: Option<&UserId>,
    limit: usize,
    decode: impl Fn(&[u8], &[u8], UserId) -> Result<T, EngineFault>,
) -> Result<Vec<T>, EngineFault> {
    let range = keys::group_members(group, after);
    let found = core.engine.scan(keyspace, range, limit, Order::Ascending, usize::MAX)?;
    let mut items = Vec::with_capacity(found.len());
    for (key, bytes) in found {
        let user =
            keys::user_of(&key, group).ok_or_else(|| record::impossible(keyspace, "no user"))?;
        items.push(decode(&key, &bytes, user_id(user)?)?);
    }
    Ok(items)
}

pub(crate) fn find_by_code(core: &Core, wanted: &JoinCode) -> Result<Option<GroupId>, EngineFault> {
    let key = wanted.as_str().as_bytes();
    let Some(bytes) = core.engine.get(Keyspace::JoinCodes, key)? else { return Ok(None) };
    let id: &str = record::decode(Keyspace::JoinCodes, key, &bytes)?;
    let id =
        GroupId::parse(id).map_err(|_| record::impossible(Keyspace::JoinCodes, "no group id"))?;
    Ok(Some(id))
}
