//! Roles, mutes, profile and the end of a group.

use crate::ids::{Millis, UserId};
use crate::membership::{
    GroupChange, GroupDecision, GroupEnd, GroupMember, GroupProfile, JoinCode, MemberProfileChange,
    Role,
};
use crate::model::ChangeKind;
use crate::reason::Reason;

use super::{GroupContext, check_group_profile, check_member_profile};

impl GroupContext<'_> {
    pub(super) fn set_role(
        &self,
        role: Role,
        user: &UserId,
        wanted: Role,
    ) -> Result<GroupDecision, Reason> {
        if role < Role::Owner {
            return Err(Reason::NotGroupOwner);
        }
        if wanted == Role::Owner {
            return Err(Reason::InvalidParam); // that is a transfer
        }
        self.require_target(role, user)?;
        if self.group.role(user) == wanted {
            return Ok(self.unchanged());
        }
        if wanted == Role::Admin && self.group.admins.len() >= self.rules.admins_max {
            return Err(Reason::TooManyAdmins);
        }
        let change = ChangeKind::Role { user: user.clone(), role: wanted };
        Ok(self.with_change(change, |group| {
            group.admins.retain(|admin| admin != user);
            if wanted == Role::Admin {
                group.admins.push(user.clone());
            }
        }))
    }

    pub(super) fn transfer(&self, role: Role, user: &UserId) -> Result<GroupDecision, Reason> {
        if role < Role::Owner {
            return Err(Reason::NotGroupOwner);
        }
        self.require_target(role, user)?;
        Ok(self.with_change(ChangeKind::Owner { user: user.clone() }, |group| {
            group.admins.retain(|admin| admin != user);
            group.owner = user.clone();
        }))
    }

    pub(super) fn mute(
        &self,
        role: Role,
        user: &UserId,
        until: Millis,
    ) -> Result<GroupDecision, Reason> {
        let member = self.require_target(role, user)?.clone();
        let until = if until <= self.now { Millis(0) } else { until };
        if member.muted_until == until {
            return Ok(self.unchanged());
        }
        let mut decision =
            self.with_change(ChangeKind::Muted { user: user.clone(), until }, |_| {});
        decision.changed_members.push(GroupMember { muted_until: until, ..member });
        Ok(decision)
    }

    pub(super) fn mute_all(&self, role: Role, on: bool) -> Result<GroupDecision, Reason> {
        if role < Role::Admin {
            return Err(Reason::NotGroupAdmin);
        }
        if self.group.is_muted == on {
            return Ok(self.unchanged());
        }
        Ok(self.with_change(ChangeKind::AllMuted { on }, |group| group.is_muted = on))
    }

    pub(super) fn update(&self, role: Role, change: &GroupChange) -> Result<GroupDecision, Reason> {
        if role < Role::Admin {
            return Err(Reason::NotGroupAdmin);
        }
        let mut wanted = self.group.clone();
        wanted.apply(change);
        check_group_profile(&wanted.profile)?;
        if wanted == *self.group {
            return Ok(self.unchanged());
        }
        wanted.updated_at = self.now;
        Ok(self.with_change(ChangeKind::Updated(change.clone()), |group| *group = wanted))
    }

    /// Changes the caller's own profile in the group; any member may.
    pub(super) fn set_profile(
        &self,
        change: &MemberProfileChange,
    ) -> Result<GroupDecision, Reason> {
        let member = self.facts.members.get(self.by).ok_or(Reason::NotGroupMember)?.clone();
        let profile = member.profile.clone().with(change);
        check_member_profile(&profile)?;
        if profile == member.profile {
            return Ok(self.unchanged());
        }
        let mut decision = self.with_change(ChangeKind::MemberUpdated(change.clone()), |_| {});
        decision.changed_members.push(GroupMember { profile, ..member });
        Ok(decision)
    }

    pub(super) fn reset_code(&self, role: Role, code: &JoinCode) -> Result<GroupDecision, Reason> {
        if role < Role::Admin {
            return Err(Reason::NotGroupAdmin);
        }
        if self.now.since(self.group.code_at) < self.rules.code_cooldown_ms {
            return Err(Reason::CooldownNotReached);
        }
        if self.facts.code_is_taken {
            return Err(Reason::ServerBusy); // the client should retry with another random code
        }
        let mut decision = self.unchanged();
        decision.group.code = code.clone();
        decision.group.code_at = self.now;
        Ok(decision)
    }

    pub(super) fn end_group(
        &self,
        role: Role,
        is_dismissed: bool,
    ) -> Result<GroupDecision, Reason> {
        if role < Role::Owner {
            return Err(Reason::NotGroupOwner);
        }
        let change = if is_dismissed { ChangeKind::Dismissed } else { ChangeKind::Dissolved };
        Ok(self.with_change(change, |group| {
            group.ended = Some(GroupEnd { is_dismissed, window_end: self.window_end() });
            group.members = 0;
            group.requests = 0;
            if is_dismissed {
                group.profile = GroupProfile::default();
                group.admins.clear();
            }
        }))
    }
}
