//! Joining and leaving a group.

use std::collections::BTreeSet;

use crate::ids::{Seq, UserId};
use crate::membership::{
    GroupDecision, GroupMember, HistoryPolicy, JoinPolicy, JoinRequest, MemberProfile, Role,
};
use crate::model::{ChangeKind, Window, WindowEnd};
use crate::reason::Reason;

use super::GroupContext;

impl GroupContext<'_> {
    /// Adds those users who are not members yet.
    pub(super) fn add_members(&self, users: &[UserId]) -> Result<GroupDecision, Reason> {
        let mut decision = self.unchanged();
        let mut seen = BTreeSet::new();
        let is_new = |user: &&UserId| {
            !self.facts.members.contains_key(user) && seen.insert(UserId::clone(user))
        };
        let new_users: Vec<UserId> = users.iter().filter(is_new).cloned().collect();
        if new_users.is_empty() {
            return Ok(decision);
        }
        let room = self.rules.members_max.saturating_sub(self.group.members);
        let count = u32::try_from(new_users.len()).map_err(|_| Reason::GroupFull)?;
        if count > room {
            return Err(Reason::GroupFull);
        }
        let (from, change_min) = match self.group.history {
            HistoryPolicy::Joined => (self.facts.head.next(), self.facts.change_seq.next()),
            HistoryPolicy::All => (Seq(1), Seq(1)),
        };
        let window = Window { min: from, change_min, since: self.now, end: None };
        let joined = new_users.iter().map(|user| {
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
        self.close_requests(&mut decision, &new_users);
        decision.changes.push(ChangeKind::Joined { users: new_users, from });
        Ok(decision)
    }

    /// Closes the open requests to join of these users.
    pub(super) fn close_requests(&self, decision: &mut GroupDecision, users: &[UserId]) {
        for user in users.iter().filter(|user| self.facts.requests.contains_key(user)) {
            decision.closed_requests.push(user.clone());
            decision.group.requests = decision.group.requests.saturating_sub(1);
        }
    }

    pub(super) fn join(
        &self,
        message: &str,
        inviter: Option<&UserId>,
    ) -> Result<GroupDecision, Reason> {
        if self.facts.members.contains_key(self.by) {
            return Err(Reason::AlreadyMember);
        }
        match self.group.joining {
            JoinPolicy::Open => {
                let mut decision = self.add_members(std::slice::from_ref(self.by))?;
                let inviter = inviter.filter(|inviter| self.facts.members.contains_key(inviter));
                for (member, _) in &mut decision.joined {
                    member.inviter = inviter.cloned();
                }
                Ok(decision)
            }
            JoinPolicy::Invite => Err(Reason::JoinNotAllowed),
            JoinPolicy::Approval => self.request_to_join(message),
        }
    }

    pub(super) fn request_to_join(&self, message: &str) -> Result<GroupDecision, Reason> {
        if message.chars().count() > 256 {
            return Err(Reason::BodyTooLong);
        }
        let mut decision = self.unchanged();
        if !self.facts.requests.contains_key(self.by) {
            if self.group.requests >= self.rules.requests_max {
                return Err(Reason::TooManyJoinRequests);
            }
            decision.group.requests += 1;
        }
        // A repeated request without a message keeps the earlier message.
        let before = self.facts.requests.get(self.by).map_or("", |request| &request.message);
        let message = if message.is_empty() { before } else { message };
        decision.new_requests.push(JoinRequest {
            group: self.group.id.clone(),
            user: self.by.clone(),
            message: message.to_owned(),
            at: self.now,
        });
        Ok(decision)
    }

    pub(super) fn answer_request(
        &self,
        role: Role,
        user: &UserId,
        accept: bool,
    ) -> Result<GroupDecision, Reason> {
        if role < Role::Admin {
            return Err(Reason::NotGroupAdmin);
        }
        self.facts.requests.get(user).ok_or(Reason::JoinRequestNotFound)?;
        if accept {
            return self.add_members(std::slice::from_ref(user));
        }
        let mut decision = self.unchanged();
        self.close_requests(&mut decision, std::slice::from_ref(user));
        Ok(decision)
    }

    pub(super) fn invite(&self, role: Role, users: &[UserId]) -> Result<GroupDecision, Reason> {
        if self.group.joining != JoinPolicy::Open && role < Role::Admin {
            return Err(Reason::NotGroupAdmin);
        }
        self.add_members(users)
    }

    /// A member leaves or is removed.
    pub(super) fn remove_member(&self, user: &UserId, change: ChangeKind) -> GroupDecision {
        let mut decision = self.with_change(change, |group| {
            group.members = group.members.saturating_sub(1);
            group.admins.retain(|admin| admin != user);
        });
        decision.left.push((user.clone(), self.window_end()));
        let muted = self.facts.members.get(user).map(|member| member.muted_until);
        let lasting = muted.filter(|until| *until > self.now);
        decision.mutes.extend(lasting.map(|until| (user.clone(), until)));
        decision
    }

    /// The end of a window that the next change closes.
    pub(super) fn window_end(&self) -> WindowEnd {
        let change_seq = self.facts.change_seq.next();
        WindowEnd { seq: self.facts.head, change_seq, at: self.now }
    }

    pub(super) fn leave(&self, role: Role) -> Result<GroupDecision, Reason> {
        if role == Role::Owner {
            return Err(Reason::OwnerMustTransfer);
        }
        Ok(self.remove_member(self.by, ChangeKind::Left))
    }

    pub(super) fn kick(&self, role: Role, user: &UserId) -> Result<GroupDecision, Reason> {
        self.require_target(role, user)?;
        Ok(self.remove_member(user, ChangeKind::Kicked { user: user.clone() }))
    }
}
