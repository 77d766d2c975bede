//! Coming into a group and going.

use std::collections::BTreeSet;

use crate::ids::{Seq, UserId};
use crate::membership::{
    Decision, GroupMember, History, JoinRequest, Joining, MemberProfile, Role,
};
use crate::model::{ChangeKind, Edge, Window};
use crate::reason::Reason;

use super::Scene;

impl Scene<'_> {
    /// Those of these people come in who are not in yet.
    pub(super) fn bring_in(&self, users: &[UserId]) -> Result<Decision, Reason> {
        let mut decision = self.nothing();
        let mut named = BTreeSet::new();
        let is_new = |user: &&UserId| {
            !self.facts.members.contains_key(user) && named.insert(UserId::clone(user))
        };
        let come: Vec<UserId> = users.iter().filter(is_new).cloned().collect();
        if come.is_empty() {
            return Ok(decision);
        }
        let room = self.rules.members_max.saturating_sub(self.group.members);
        let count = u32::try_from(come.len()).map_err(|_| Reason::GroupFull)?;
        if count > room {
            return Err(Reason::GroupFull);
        }
        let (from, change_min) = match self.group.history {
            History::Joined => (self.facts.head.next(), self.facts.change_seq.next()),
            History::All => (Seq(1), Seq(1)),
        };
        let window = Window { min: from, change_min, since: self.now, end: None };
        let joined = come.iter().map(|user| {
            let member = GroupMember {
                user: user.clone(),
                joined_at: self.now,
                join_seq: from,
                came_after: self.facts.head,
                inviter: (user != self.by).then(|| self.by.clone()),
                muted_until: self.facts.mutes.get(user).copied().unwrap_or_default(),
                profile: MemberProfile::default(),
            };
            (member, window)
        });
        decision.joined = joined.collect();
        decision.group.members += count;
        self.settle(&mut decision, &come);
        decision.changes.push(ChangeKind::Joined { users: come, from });
        Ok(decision)
    }

    /// Wishes of these people are settled.
    pub(super) fn settle(&self, decision: &mut Decision, users: &[UserId]) {
        for user in users.iter().filter(|user| self.facts.requests.contains_key(user)) {
            decision.settled.push(user.clone());
            decision.group.requests = decision.group.requests.saturating_sub(1);
        }
    }

    pub(super) fn join(&self, message: &str, inviter: Option<&UserId>) -> Result<Decision, Reason> {
        if self.facts.members.contains_key(self.by) {
            return Err(Reason::AlreadyMember);
        }
        match self.group.joining {
            Joining::Open => {
                let mut decision = self.bring_in(std::slice::from_ref(self.by))?;
                let inviter = inviter.filter(|inviter| self.facts.members.contains_key(inviter));
                for (member, _) in &mut decision.joined {
                    member.inviter = inviter.cloned();
                }
                Ok(decision)
            }
            Joining::Invite => Err(Reason::JoinNotAllowed),
            Joining::Approval => self.ask(message),
        }
    }

    pub(super) fn ask(&self, message: &str) -> Result<Decision, Reason> {
        if message.chars().count() > 256 {
            return Err(Reason::BodyTooLong);
        }
        let mut decision = self.nothing();
        if !self.facts.requests.contains_key(self.by) {
            if self.group.requests >= self.rules.requests_max {
                return Err(Reason::TooManyJoinRequests);
            }
            decision.group.requests += 1;
        }
        // Asking again without a word leaves the word before.
        let before = self.facts.requests.get(self.by).map_or("", |request| &request.message);
        let message = if message.is_empty() { before } else { message };
        decision.asked.push(JoinRequest {
            group: self.group.id.clone(),
            user: self.by.clone(),
            message: message.to_owned(),
            at: self.now,
        });
        Ok(decision)
    }

    pub(super) fn answer(
        &self,
        role: Role,
        user: &UserId,
        accept: bool,
    ) -> Result<Decision, Reason> {
        if role < Role::Admin {
            return Err(Reason::NotGroupAdmin);
        }
        self.facts.requests.get(user).ok_or(Reason::JoinRequestNotFound)?;
        if accept {
            return self.bring_in(std::slice::from_ref(user));
        }
        let mut decision = self.nothing();
        self.settle(&mut decision, std::slice::from_ref(user));
        Ok(decision)
    }

    pub(super) fn invite(&self, role: Role, users: &[UserId]) -> Result<Decision, Reason> {
        if self.group.joining != Joining::Open && role < Role::Admin {
            return Err(Reason::NotGroupAdmin);
        }
        self.bring_in(users)
    }

    /// Somebody goes.
    pub(super) fn without(&self, user: &UserId, change: ChangeKind) -> Decision {
        let mut decision = self.with(change, |group| {
            group.members = group.members.saturating_sub(1);
            group.admins.retain(|admin| admin != user);
        });
        decision.left.push((user.clone(), self.edge()));
        let muted = self.facts.members.get(user).map(|member| member.muted_until);
        let lasting = muted.filter(|until| *until > self.now);
        decision.mutes.extend(lasting.map(|until| (user.clone(), until)));
        decision
    }

    /// Where a window ends that is closed by the next change.
    pub(super) fn edge(&self) -> Edge {
        let change_seq = self.facts.change_seq.next();
        Edge { seq: self.facts.head, change_seq, at: self.now }
    }

    pub(super) fn leave(&self, role: Role) -> Result<Decision, Reason> {
        if role == Role::Owner {
            return Err(Reason::OwnerMustTransfer);
        }
        Ok(self.without(self.by, ChangeKind::Left))
    }

    pub(super) fn kick(&self, role: Role, user: &UserId) -> Result<Decision, Reason> {
        self.target(role, user)?;
        Ok(self.without(user, ChangeKind::Kicked { user: user.clone() }))
    }
}
