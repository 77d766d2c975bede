//! Groups of the reference engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, GroupId, UserId};
use nexo_chat::membership::{Decision, GroupFacts, GroupMember};
use nexo_chat::progress::Progress;
use nexo_chat::store::{About, Asker, Decide, Decided};

use super::{Member, State};

impl State {
    pub(super) fn group_member(&self, group: &GroupId, user: &UserId) -> Option<&GroupMember> {
        self.groups.get(group).filter(|it| it.ended.is_none())?;
        self.group_members.get(&(group.clone(), user.clone()))
    }

    pub(super) fn acquainted(&self, user: &UserId, other: &UserId) -> bool {
        if user == other {
            return true;
        }
        let talk = self.members.contains_key(&(user.clone(), ConversationId::private(user, other)));
        let mine = self.group_members.keys().filter(|(_, member)| member == user);
        talk || mine.into_iter().any(|(group, _)| {
            self.group_member(group, user).is_some() && self.group_member(group, other).is_some()
        })
    }

    fn facts(&self, id: &GroupId, asker: &Asker, about: About) -> GroupFacts {
        let conversation = id.conversation();
        let mut facts = GroupFacts {
            group: self.groups.get(id).map(|group| (**group).clone()),
            members: BTreeMap::new(),
            was_in: self.members.contains_key(&(asker.user.clone(), conversation.clone())),
            requests: BTreeMap::new(),
            mutes: BTreeMap::new(),
            code_is_taken: about.code.is_some_and(|code| self.codes.contains_key(&code)),
            head: self.max_seq(&conversation),
            change_seq: self.change_seq(&conversation),
        };
        for user in about.users.into_iter().chain([asker.user.clone()]) {
            let place = (id.clone(), user.clone());
            if let Some(request) = self.requests.get(&place) {
                facts.requests.insert(user.clone(), request.clone());
            }
            if let Some(until) = self.mutes.get(&place) {
                facts.mutes.insert(user.clone(), *until);
            }
            if let Some(member) = self.group_member(id, &user) {
                facts.members.insert(user, member.clone());
            }
        }
        facts
    }

    pub(super) fn change_group(
        &mut self,
        id: &GroupId,
        asker: &Asker,
        about: About,
        decide: &Decide,
    ) -> Result<Decided, Reason> {
        let facts = self.facts(id, asker, about);
        let decision = decide(&facts)?;
        let Decision { group, joined, left, mutes, changed, asked, settled, changes } = decision;
        let conversation = id.conversation();
        if let Some(before) = &facts.group {
            self.codes.remove(&before.code);
        }
        if group.ended.is_none() {
            self.codes.insert(group.code.clone(), id.clone());
        }
        let group = Arc::new(group);
        self.groups.insert(id.clone(), Arc::clone(&group));
        let came = joined.iter().map(|(member, _)| member.user.clone()).collect();
        for (member, window) in joined {
            let place = (member.user.clone(), conversation.clone());
            let progress = Progress::joined(facts.head);
            let entry = self.members.entry(place).or_insert_with(|| Member::new(window, progress));
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
        for member in changed {
            self.group_members.insert((id.clone(), member.user.clone()), member);
        }
        let mut new = asked.clone();
        new.retain(|request| !facts.requests.contains_key(&request.user));
        for request in asked {
            self.requests.insert((id.clone(), request.user.clone()), request);
        }
        let settled =
            settled.into_iter().filter_map(|user| self.requests.remove(&(id.clone(), user)));
        let settled = settled.collect();
        let changes =
            changes.into_iter().map(|kind| self.note(&conversation, asker, kind)).collect();
        Ok(Decided { group, joined: came, asked: new, settled, changes })
    }
}

/// A page of what is kept by group and user.
pub(super) fn page<T: Clone>(
    all: &BTreeMap<(GroupId, UserId), T>,
    group: &GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Vec<T> {
    let mine = all.iter().filter(|((of, _), _)| of == group);
    let rest = mine.filter(|((_, user), _)| after.is_none_or(|after| user > after));
    rest.map(|(_, kept)| kept.clone()).take(limit).collect()
}
