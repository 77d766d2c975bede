//! Changes a group inside the committer: decides, then adds the records to the batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, GroupId, Millis, UserId};
use nexo_chat::membership::{Group, GroupDecision, GroupFacts, GroupMember, JoinRequest};
use nexo_chat::model::{Window, WindowEnd};
use nexo_chat::progress::Progress;
use nexo_chat::store::{Actor, DecideGroup, GroupFactsQuery, GroupOutcome};

use super::heads::ConversationHead;
use super::keys::Keyspace;
use super::members::MemberChange;
use super::pending::Pending;
use super::poison::EngineFault;
use super::recall::append_change;
use super::record::{CursorRecord, GroupMemberRecord, GroupRecord, RequestRecord, WindowRecord};
use super::{groups, keys, record};
use crate::group_events::join_request_events;

/// Decides about a group and adds the records of the decision to the batch.
pub(crate) fn change_group(
    pending: &mut Pending<'_>,
    id: &GroupId,
    asker: &Actor,
    about: GroupFactsQuery,
    decide: &DecideGroup,
) -> Result<Result<GroupOutcome, Reason>, EngineFault> {
    let facts = facts(pending, id, asker, about)?;
    let decision = match decide(&facts) {
        Ok(decision) => decision,
        Err(reason) => return Ok(Err(reason)),
    };
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
    for (user, _) in &left {
        window_of(pending, user, &conversation)?; // read before anything is added
    }
    let group = put(pending, facts.group.as_ref(), group)?;
    let mut joined_users = Vec::with_capacity(joined.len());
    let progress = Progress::joined(facts.head);
    for (member, window) in joined {
        joined_users.push(member.user.clone());
        open_window(pending, (member.user.clone(), conversation.clone()), window, progress)?;
        if facts.mutes.contains_key(&member.user) {
            pending.delete(Keyspace::Mutes, keys::group_member(id, &member.user));
        }
        put_member(pending, id, member)?;
    }
    for (user, until) in mutes {
        pending.set(Keyspace::Mutes, keys::group_member(id, &user), &until.0)?;
    }
    for (user, edge) in left {
        close_window(pending, &user, &conversation, edge)?;
        pending.delete(Keyspace::GroupMembers, keys::group_member(id, &user));
        pending.effects().group_members.insert((id.clone(), user), None);
    }
    for member in changed_members {
        put_member(pending, id, member)?;
    }
    for request in &new_requests {
        let key = keys::group_member(id, &request.user);
        pending.set(Keyspace::JoinRequests, key, &RequestRecord::from(request))?;
    }
    for user in &closed_requests {
        pending.delete(Keyspace::JoinRequests, keys::group_member(id, user));
    }
    let is_new = |request: &JoinRequest| !facts.requests.contains_key(&request.user);
    let new = new_requests.into_iter().filter(is_new).collect();
    let settled =
        closed_requests.iter().filter_map(|user| facts.requests.get(user).cloned()).collect();
    let noted = changes
        .into_iter()
        .map(|kind| append_change(pending, &conversation, asker, kind, group.members));
    let changes = noted.collect::<Result<Vec<_>, EngineFault>>()?;
    let outcome = GroupOutcome { group, joined: joined_users, asked: new, settled, changes };
    pending.effects().events.extend(join_request_events(&outcome, asker));
    Ok(Ok(outcome))
}

/// Returns the group as it will be after the batch.
pub(crate) fn current_group(
    pending: &mut Pending<'_>,
    id: &GroupId,
) -> Result<Option<Arc<Group>>, EngineFault> {
    match pending.effects().groups.get(id) {
        Some(group) => Ok(Some(Arc::clone(group))),
        None => groups::find_group(pending.core, id),
    }
}

/// Returns a member as they will be after the batch, whether or not the group has ended.
pub(crate) fn current_member(
    pending: &mut Pending<'_>,
    group: &GroupId,
    user: &UserId,
) -> Result<Option<Arc<GroupMember>>, EngineFault> {
    match pending.effects().group_members.get(&(group.clone(), user.clone())) {
        Some(member) => Ok(member.clone()),
        None => groups::stored_member(pending.core, group, user),
    }
}

/// Whether the user is or ever was a member of a conversation.
pub(crate) fn was_member(
    pending: &mut Pending<'_>,
    user: &UserId,
    conversation: &ConversationId,
) -> Result<bool, EngineFault> {
    Ok(pending.get(Keyspace::Members, &keys::member(user, conversation))?.is_some())
}

fn facts(
    pending: &mut Pending<'_>,
    id: &GroupId,
    asker: &Actor,
    about: GroupFactsQuery,
) -> Result<GroupFacts, EngineFault> {
    let group = current_group(pending, id)?;
    let is_alive = group.as_ref().is_some_and(|group| group.ended.is_none());
    let (mut members, mut requests, mut mutes) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for user in about.users.into_iter().chain([asker.user.clone()]) {
        let key = keys::group_member(id, &user);
        if let Some(bytes) = pending.get(Keyspace::JoinRequests, &key)? {
            let record: RequestRecord<'_> = record::decode(Keyspace::JoinRequests, &key, &bytes)?;
            requests.insert(user.clone(), record.request(id, user.clone()));
        }
        if let Some(bytes) = pending.get(Keyspace::Mutes, &key)? {
            let until = Millis(record::decode(Keyspace::Mutes, &key, &bytes)?);
            mutes.insert(user.clone(), until);
        }
        if let Some(member) = current_member(pending, id, &user)?.filter(|_| is_alive) {
            members.insert(user, GroupMember::clone(&member));
        }
    }
    let code = about.code.as_ref().map(|code| code.as_str().as_bytes());
    let code_is_taken = match code {
        Some(code) => pending.get(Keyspace::JoinCodes, code)?.is_some(),
        None => false,
    };
    let was_member = was_member(pending, &asker.user, &id.conversation())?;
    let ConversationHead { seq: head, change_seq, .. } = pending.head(&id.conversation())?;
    let group = group.map(|group| Group::clone(&group));
    Ok(GroupFacts { group, members, was_member, requests, mutes, code_is_taken, head, change_seq })
}

/// Writes a group that changed, and its join code.
fn put(
    pending: &mut Pending<'_>,
    before: Option<&Group>,
    group: Group,
) -> Result<Arc<Group>, EngineFault> {
    let group = Arc::new(group);
    if before == Some(&*group) {
        return Ok(group);
    }
    if let Some(before) = before.filter(|it| it.code != group.code || group.ended.is_some()) {
        pending.delete(Keyspace::JoinCodes, before.code.as_str().as_bytes().to_vec());
    }
    if group.ended.is_none() && before.is_none_or(|before| before.code != group.code) {
        let key = group.code.as_str().as_bytes().to_vec();
        pending.set(Keyspace::JoinCodes, key, &group.id.as_str())?;
    }
    pending.set(Keyspace::Groups, keys::group(&group.id), &GroupRecord::from(&*group))?;
    pending.effects().groups.insert(group.id.clone(), Arc::clone(&group));
    Ok(group)
}

fn put_member(
    pending: &mut Pending<'_>,
    id: &GroupId,
    member: GroupMember,
) -> Result<(), EngineFault> {
    let key = keys::group_member(id, &member.user);
    pending.set(Keyspace::GroupMembers, key, &GroupMemberRecord::from(&member))?;
    let member_key = (id.clone(), member.user.clone());
    pending.effects().group_members.insert(member_key, Some(Arc::new(member)));
    Ok(())
}

fn open_window(
    pending: &mut Pending<'_>,
    member_key: (UserId, ConversationId),
    window: Window,
    progress: Progress,
) -> Result<(), EngineFault> {
    let key = keys::member(&member_key.0, &member_key.1);
    pending.set(Keyspace::Members, key.clone(), &WindowRecord::from(window))?;
    pending.set(Keyspace::Cursors, key, &CursorRecord::from(progress))?;
    pending.effects().members.push((member_key, MemberChange::Joined(window, progress)));
    Ok(())
}

fn close_window(
    pending: &mut Pending<'_>,
    user: &UserId,
    conversation: &ConversationId,
    edge: WindowEnd,
) -> Result<(), EngineFault> {
    let key = keys::member(user, conversation);
    let window = window_of(pending, user, conversation)?.until(Some(edge));
    pending.set(Keyspace::Members, key, &WindowRecord::from(window))?;
    let member_key = (user.clone(), conversation.clone());
    pending.effects().members.push((member_key, MemberChange::Left(window)));
    Ok(())
}

fn window_of(
    pending: &Pending<'_>,
    user: &UserId,
    conversation: &ConversationId,
) -> Result<Window, EngineFault> {
    let key = keys::member(user, conversation);
    let Some(bytes) = pending.get(Keyspace::Members, &key)? else {
        return Err(record::impossible(Keyspace::GroupMembers, "a member without a window"));
    };
    Ok(Window::from(record::decode::<WindowRecord>(Keyspace::Members, &key, &bytes)?))
}
