//! Groups of the reference engine.

use std::collections::BTreeMap;
use std::future::ready;
use std::ops::Bound;
use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, GroupId, Seq, UserId};
use nexo_chat::membership::{Group, GroupDecision, GroupFacts, GroupMember, JoinCode, JoinRequest};
use nexo_chat::model::Cursors;
use nexo_chat::progress::Progress;
use nexo_chat::store::{
    Actor, DecideGroup, GroupFactsQuery, GroupOutcome, GroupStore, StoreFuture,
};

use super::{Memory, MemoryMember, MemoryState};
use crate::group_events::group_events;

impl GroupStore for Memory {
    fn change_group(
        &self,
        id: &GroupId,
        asker: Actor,
        about: GroupFactsQuery,
        decide: DecideGroup,
    ) -> StoreFuture<'static, Result<GroupOutcome, Reason>> {
        let _order = self.lock_order();
        let outcome = self.try_write(|state| state.change_group(id, &asker, about, &decide));
        if let Ok(Ok(outcome)) = &outcome {
            self.announce(&group_events(outcome, &asker));
        }
        Box::pin(ready(outcome))
    }

    fn group(&self, id: &GroupId) -> StoreFuture<'_, Option<Arc<Group>>> {
        self.read(|state| state.groups.get(id).cloned())
    }

    fn groups(&self, after: Option<&GroupId>, limit: usize) -> StoreFuture<'_, Vec<Arc<Group>>> {
        self.read(|state| {
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            let rest = state.groups.range::<GroupId, _>((from, Bound::Unbounded));
            rest.take(limit).map(|(_, group)| Arc::clone(group)).collect()
        })
    }

    fn group_by_code(&self, code: &JoinCode) -> StoreFuture<'_, Option<GroupId>> {
        self.read(|state| state.join_codes.get(code).cloned())
    }

    fn group_member(&self, group: &GroupId, user: &UserId) -> StoreFuture<'_, Option<GroupMember>> {
        self.read(|state| state.group_member(group, user).cloned())
    }

    fn group_members(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<GroupMember>> {
        self.read(|state| match state.groups.get(group) {
            Some(it) if it.ended.is_none() => page(&state.group_members, group, after, limit),
            _ => Vec::new(),
        })
    }

    fn group_cursors(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(GroupMember, Cursors)>> {
        self.read(|state| match state.groups.get(group) {
            Some(it) if it.ended.is_none() => {
                let page = page(&state.group_members, group, after, limit);
                let with_cursors = |member: GroupMember| {
                    let member_key = (member.user.clone(), group.conversation());
                    let known = state.members.get(&member_key);
                    (member, known.map(|known| known.progress.cursors).unwrap_or_default())
                };
                page.into_iter().map(with_cursors).collect()
            }
            _ => Vec::new(),
        })
    }

    fn share_conversation(&self, user: &UserId, others: Vec<UserId>) -> StoreFuture<'_, Vec<bool>> {
        self.read(|state| {
            others.iter().map(|other| state.share_conversation(user, other)).collect()
        })
    }

    fn join_requests(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<JoinRequest>> {
        self.read(|state| page(&state.requests, group, after, limit))
    }
}

impl MemoryState {
    fn group_member(&self, group: &GroupId, user: &UserId) -> Option<&GroupMember> {
        self.groups.get(group).filter(|it| it.ended.is_none())?;
        self.group_members.get(&(group.clone(), user.clone()))
    }

    fn share_conversation(&self, user: &UserId, other: &UserId) -> bool {
        if user == other {
            return true;
        }
        let has_private = self.max_seq(&ConversationId::private(user, other)) > Seq::ZERO;
        let mine = self.group_members.keys().filter(|(_, member)| member == user);
        has_private
            || mine.into_iter().any(|(group, _)| {
                self.group_member(group, user).is_some()
                    && self.group_member(group, other).is_some()
            })
    }

    /// Reads what a decision about a group needs.
    fn facts(&self, id: &GroupId, asker: &Actor, about: GroupFactsQuery) -> GroupFacts {
        let conversation = id.conversation();
        let mut facts = GroupFacts {
            group: self.groups.get(id).map(|group| (**group).clone()),
            members: BTreeMap::new(),
            was_member: self.members.contains_key(&(asker.user.clone(), conversation.clone())),
            requests: BTreeMap::new(),
            mutes: BTreeMap::new(),
            code_is_taken: about.code.is_some_and(|code| self.join_codes.contains_key(&code)),
            head: self.max_seq(&conversation),
            change_seq: self.change_seq(&conversation),
        };
        for user in about.users.into_iter().chain([asker.user.clone()]) {
            let member_key = (id.clone(), user.clone());
            if let Some(request) = self.requests.get(&member_key) {
                facts.requests.insert(user.clone(), request.clone());
            }
            if let Some(until) = self.mutes.get(&member_key) {
                facts.mutes.insert(user.clone(), *until);
            }
            if let Some(member) = self.group_member(id, &user) {
                facts.members.insert(user, member.clone());
            }
        }
        facts
    }

    fn change_group(
        &mut self,
        id: &GroupId,
        asker: &Actor,
        about: GroupFactsQuery,
        decide: &DecideGroup,
    ) -> Result<GroupOutcome, Reason> {
        let facts = self.facts(id, asker, about);
        let decision = decide(&facts)?;
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
        if let Some(before) = &facts.group {
            self.join_codes.remove(&before.code);
        }
        if group.ended.is_none() {
            self.join_codes.insert(group.code.clone(), id.clone());
        }
        let group = Arc::new(group);
        self.groups.insert(id.clone(), Arc::clone(&group));
        let joined_users = joined.iter().map(|(member, _)| member.user.clone()).collect();
        for (member, window) in joined {
            let member_key = (member.user.clone(), conversation.clone());
            let progress = Progress::joined(facts.head);
            let entry = self
                .members
                .entry(member_key)
                .or_insert_with(|| MemoryMember::new(window, progress));
            (entry.window, entry.progress) = (window, progress);
            self.mutes.remove(&(id.clone(), member.user.clone()));
            self.group_members.insert((id.clone(), member.user.clone()), member);
        }
        self.mutes.extend(mutes.into_iter().map(|(user, until)| ((id.clone(), user), until)));
        for (user, edge) in left {
            if let Some(member) = self.members.get_mut(&(user.clone(), conversation.clone())) {
                member.window = member.window.until(Some(edge));
            }
            self.group_members.remove(&(id.clone(), user));
        }
        for member in changed_members {
            self.group_members.insert((id.clone(), member.user.clone()), member);
        }
        let mut new = new_requests.clone();
        new.retain(|request| !facts.requests.contains_key(&request.user));
        for request in new_requests {
            self.requests.insert((id.clone(), request.user.clone()), request);
        }
        let settled = closed_requests
            .into_iter()
            .filter_map(|user| self.requests.remove(&(id.clone(), user)));
        let settled = settled.collect();
        let changes = changes
            .into_iter()
            .map(|kind| self.append_change(&conversation, asker, kind))
            .collect();
        Ok(GroupOutcome { group, joined: joined_users, asked: new, settled, changes })
    }
}

/// Reads a page of a map by group and user.
fn page<T: Clone>(
    all: &BTreeMap<(GroupId, UserId), T>,
    group: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Vec<T> {
    let mine = all.iter().filter(|((of, _), _)| of == group);
    let rest = mine.filter(|((_, user), _)| after.is_none_or(|after| user > after));
    rest.map(|(_, value)| value.clone()).take(limit).collect()
}
