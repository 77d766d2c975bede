//! Groups: changed by the committer in one order with their messages, read through caches.

use std::collections::BTreeMap;
use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, GroupId, Millis, UserId};
use nexo_chat::membership::{Decision, Group, GroupFacts, GroupMember, JoinCode, JoinRequest};
use nexo_chat::model::{Cursors, Edge, Window};
use nexo_chat::progress::Progress;
use nexo_chat::store::{About, Asker, Decide, Decided, Order};

use crate::told::wishes;

use super::core::Core;
use super::cursors::MemberChange;
use super::group_record::{GroupMemberRecord, GroupRecord, RequestRecord};
use super::heads::Head;
use super::keys::{self, Space};
use super::pending::Pending;
use super::poison::Fault;
use super::read;
use super::recall::note;
use super::record::{self, CursorRecord, WindowRecord, user_id};

/// A group, ended or not.
pub(crate) fn get(core: &Core, id: &GroupId) -> Result<Option<Arc<Group>>, Fault> {
    core.groups.get(id, || {
        let key = keys::group(id);
        let Some(bytes) = core.engine.get(Space::Groups, &key)? else { return Ok(None) };
        Ok(Some(record::decode::<GroupRecord<'_>>(Space::Groups, &key, &bytes)?.group(id)?))
    })
}

/// Somebody in a group that goes on.
pub(crate) fn member(
    core: &Core,
    group: &GroupId,
    user: &UserId,
) -> Result<Option<Arc<GroupMember>>, Fault> {
    if get(core, group)?.is_none_or(|group| group.ended.is_some()) {
        return Ok(None);
    }
    stored_member(core, group, user)
}

fn stored_member(
    core: &Core,
    group: &GroupId,
    user: &UserId,
) -> Result<Option<Arc<GroupMember>>, Fault> {
    core.group_members.get(&(group.clone(), user.clone()), || {
        let key = keys::group_member(group, user);
        let Some(bytes) = core.engine.get(Space::GroupMembers, &key)? else { return Ok(None) };
        let record: GroupMemberRecord<'_> = record::decode(Space::GroupMembers, &key, &bytes)?;
        Ok(Some(record.member(user.clone())?))
    })
}

/// A page of the members of a group that goes on.
pub(crate) fn members(
    core: &Core,
    group: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Vec<GroupMember>, Fault> {
    if get(core, group)?.is_none_or(|group| group.ended.is_some()) {
        return Ok(Vec::new());
    }
    page(core, Space::GroupMembers, group, after, limit, |key, bytes, user| {
        record::decode::<GroupMemberRecord<'_>>(Space::GroupMembers, key, bytes)?.member(user)
    })
}

/// The same with how far each has come, which memory knows.
pub(crate) fn cursors(
    core: &Core,
    group: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Vec<(GroupMember, Cursors)>, Fault> {
    let mut found = Vec::new();
    for member in members(core, group, after, limit)? {
        let place = (member.user.clone(), group.conversation());
        let known = core.members.get(&core.engine, &place)?;
        found.push((member, known.map(|known| known.progress.cursors).unwrap_or_default()));
    }
    Ok(found)
}

/// Which of these people a user knows.
pub(crate) fn acquainted(
    core: &Core,
    user: &UserId,
    others: &[UserId],
) -> Result<Vec<bool>, Fault> {
    let mut mine = Vec::new();
    for standing in read::standings(core, user, None, usize::MAX)? {
        mine.extend(standing.conversation.group().filter(|_| standing.is_active()));
    }
    let mut known = Vec::with_capacity(others.len());
    for other in others {
        let talk = (user.clone(), ConversationId::private(user, other));
        let mut is_known = user == other || core.members.get(&core.engine, &talk)?.is_some();
        for group in &mine {
            if is_known {
                break;
            }
            is_known = member(core, group, other)?.is_some();
        }
        known.push(is_known);
    }
    Ok(known)
}

/// A page of those who want in.
pub(crate) fn requests(
    core: &Core,
    group: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Vec<JoinRequest>, Fault> {
    page(core, Space::Requests, group, after, limit, |key, bytes, user| {
        let record: RequestRecord<'_> = record::decode(Space::Requests, key, bytes)?;
        Ok(record.request(group, user))
    })
}

fn page<T>(
    core: &Core,
    space: Space,
    group: &GroupId,
    after: Option<&UserId>,
    limit: usize,
    decode: impl Fn(&[u8], &[u8], UserId) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let range = keys::group_members(group, after);
    let found = core.engine.scan(space, range, limit, Order::Ascending, usize::MAX)?;
    let mut items = Vec::with_capacity(found.len());
    for (key, bytes) in found {
        let user =
            keys::user_of(&key, group).ok_or_else(|| record::impossible(space, "no user"))?;
        items.push(decode(&key, &bytes, user_id(user)?)?);
    }
    Ok(items)
}

/// The group a code leads to.
pub(crate) fn by_code(core: &Core, wanted: &JoinCode) -> Result<Option<GroupId>, Fault> {
    let key = wanted.as_str().as_bytes();
    let Some(bytes) = core.engine.get(Space::Codes, key)? else { return Ok(None) };
    let id: &str = record::decode(Space::Codes, key, &bytes)?;
    let id = GroupId::parse(id).map_err(|_| record::impossible(Space::Codes, "no group id"))?;
    Ok(Some(id))
}

/// The group as it will be after the batch.
pub(crate) fn current(
    pending: &mut Pending<'_>,
    id: &GroupId,
) -> Result<Option<Arc<Group>>, Fault> {
    match pending.decided().groups.get(id) {
        Some(group) => Ok(Some(Arc::clone(group))),
        None => get(pending.core, id),
    }
}

/// A member as they will be after the batch, whether or not the group goes on.
pub(crate) fn current_member(
    pending: &mut Pending<'_>,
    group: &GroupId,
    user: &UserId,
) -> Result<Option<Arc<GroupMember>>, Fault> {
    match pending.decided().group_members.get(&(group.clone(), user.clone())) {
        Some(member) => Ok(member.clone()),
        None => stored_member(pending.core, group, user),
    }
}

/// Whether somebody is or ever was in a conversation.
pub(crate) fn was_in(
    pending: &mut Pending<'_>,
    user: &UserId,
    conversation: &ConversationId,
) -> Result<bool, Fault> {
    Ok(pending.get(Space::Members, &keys::member(user, conversation))?.is_some())
}

/// Decides about a group and adds what becomes of it to the batch.
pub(crate) fn change(
    pending: &mut Pending<'_>,
    id: &GroupId,
    asker: &Asker,
    about: About,
    decide: &Decide,
) -> Result<Result<Decided, Reason>, Fault> {
    let facts = facts(pending, id, asker, about)?;
    let decision = match decide(&facts) {
        Ok(decision) => decision,
        Err(reason) => return Ok(Err(reason)),
    };
    let Decision { group, joined, left, mutes, changed, asked, settled, changes } = decision;
    let conversation = id.conversation();
    let group = put(pending, facts.group.as_ref(), group)?;
    let mut came = Vec::with_capacity(joined.len());
    let progress = Progress::joined(facts.head);
    for (member, window) in joined {
        came.push(member.user.clone());
        open_window(pending, (member.user.clone(), conversation.clone()), window, progress)?;
        if facts.mutes.contains_key(&member.user) {
            pending.delete(Space::Mutes, keys::group_member(id, &member.user));
        }
        put_member(pending, id, member)?;
    }
    for (user, until) in mutes {
        pending.set(Space::Mutes, keys::group_member(id, &user), &until.0)?;
    }
    for (user, edge) in left {
        close_window(pending, &user, &conversation, edge)?;
        pending.delete(Space::GroupMembers, keys::group_member(id, &user));
        pending.decided().group_members.insert((id.clone(), user), None);
    }
    for member in changed {
        put_member(pending, id, member)?;
    }
    for request in &asked {
        let key = keys::group_member(id, &request.user);
        pending.set(Space::Requests, key, &RequestRecord::from(request))?;
    }
    for user in &settled {
        pending.delete(Space::Requests, keys::group_member(id, user));
    }
    let is_new = |request: &JoinRequest| !facts.requests.contains_key(&request.user);
    let new = asked.into_iter().filter(is_new).collect();
    let settled = settled.iter().filter_map(|user| facts.requests.get(user).cloned()).collect();
    let noted =
        changes.into_iter().map(|kind| note(pending, &conversation, asker, kind, group.members));
    let changes = noted.collect::<Result<Vec<_>, Fault>>()?;
    let decided = Decided { group, joined: came, asked: new, settled, changes };
    pending.decided().kept.extend(wishes(&decided, asker));
    Ok(Ok(decided))
}

fn facts(
    pending: &mut Pending<'_>,
    id: &GroupId,
    asker: &Asker,
    about: About,
) -> Result<GroupFacts, Fault> {
    let group = current(pending, id)?;
    let is_alive = group.as_ref().is_some_and(|group| group.ended.is_none());
    let (mut members, mut requests, mut mutes) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for user in about.users.into_iter().chain([asker.user.clone()]) {
        let key = keys::group_member(id, &user);
        if let Some(bytes) = pending.get(Space::Requests, &key)? {
            let record: RequestRecord<'_> = record::decode(Space::Requests, &key, &bytes)?;
            requests.insert(user.clone(), record.request(id, user.clone()));
        }
        if let Some(bytes) = pending.get(Space::Mutes, &key)? {
            let until = Millis(record::decode(Space::Mutes, &key, &bytes)?);
            mutes.insert(user.clone(), until);
        }
        if let Some(member) = current_member(pending, id, &user)?.filter(|_| is_alive) {
            members.insert(user, GroupMember::clone(&member));
        }
    }
    let code = about.code.as_ref().map(|code| code.as_str().as_bytes());
    let code_is_taken = match code {
        Some(code) => pending.get(Space::Codes, code)?.is_some(),
        None => false,
    };
    let was_in = was_in(pending, &asker.user, &id.conversation())?;
    let Head { seq: head, change_seq, .. } = pending.head(&id.conversation())?;
    let group = group.map(|group| Group::clone(&group));
    Ok(GroupFacts { group, members, was_in, requests, mutes, code_is_taken, head, change_seq })
}

/// Writes a group that changed, and the code that leads to it.
fn put(
    pending: &mut Pending<'_>,
    before: Option<&Group>,
    group: Group,
) -> Result<Arc<Group>, Fault> {
    let group = Arc::new(group);
    if before == Some(&*group) {
        return Ok(group);
    }
    if let Some(before) = before.filter(|it| it.code != group.code || group.ended.is_some()) {
        pending.delete(Space::Codes, before.code.as_str().as_bytes().to_vec());
    }
    if group.ended.is_none() && before.is_none_or(|before| before.code != group.code) {
        let key = group.code.as_str().as_bytes().to_vec();
        pending.set(Space::Codes, key, &group.id.as_str())?;
    }
    pending.set(Space::Groups, keys::group(&group.id), &GroupRecord::from(&*group))?;
    pending.decided().groups.insert(group.id.clone(), Arc::clone(&group));
    Ok(group)
}

fn put_member(pending: &mut Pending<'_>, id: &GroupId, member: GroupMember) -> Result<(), Fault> {
    let key = keys::group_member(id, &member.user);
    pending.set(Space::GroupMembers, key, &GroupMemberRecord::from(&member))?;
    let place = (id.clone(), member.user.clone());
    pending.decided().group_members.insert(place, Some(Arc::new(member)));
    Ok(())
}

fn open_window(
    pending: &mut Pending<'_>,
    place: (UserId, ConversationId),
    window: Window,
    progress: Progress,
) -> Result<(), Fault> {
    let key = keys::member(&place.0, &place.1);
    pending.set(Space::Members, key.clone(), &WindowRecord::from(window))?;
    pending.set(Space::Cursors, key, &CursorRecord::from(progress))?;
    pending.decided().members.push((place, MemberChange::Joined(window, progress)));
    Ok(())
}

fn close_window(
    pending: &mut Pending<'_>,
    user: &UserId,
    conversation: &ConversationId,
    edge: Edge,
) -> Result<(), Fault> {
    let key = keys::member(user, conversation);
    let Some(bytes) = pending.get(Space::Members, &key)? else {
        return Err(record::impossible(Space::GroupMembers, "a member without a window"));
    };
    let window = Window::from(record::decode::<WindowRecord>(Space::Members, &key, &bytes)?);
    let window = window.until(Some(edge));
    pending.set(Space::Members, key, &WindowRecord::from(window))?;
    let place = (user.clone(), conversation.clone());
    pending.decided().members.push((place, MemberChange::Left(window)));
    Ok(())
}
