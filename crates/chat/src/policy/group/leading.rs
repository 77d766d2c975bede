//! Leading a group, and its end.

use crate::ids::{Millis, UserId};
use crate::membership::{
    Decision, Ended, GroupChange, GroupMember, GroupProfile, JoinCode, MemberProfileChange, Role,
};
use crate::model::ChangeKind;
use crate::reason::Reason;

use super::{Scene, good_member_profile, good_profile};

impl Scene<'_> {
    pub(super) fn set_role(
        &self,
        role: Role,
        user: &UserId,
        wanted: Role,
    ) -> Result<Decision, Reason> {
        if role < Role::Owner {
            return Err(Reason::NotGroupOwner);
        }
        if wanted == Role::Owner {
            return Err(Reason::InvalidParam); // that is a transfer
        }
        self.target(role, user)?;
        if self.group.role(user) == wanted {
            return Ok(self.nothing());
        }
        if wanted == Role::Admin && self.group.admins.len() >= self.rules.admins_max {
            return Err(Reason::TooManyAdmins);
        }
        let change = ChangeKind::Role { user: user.clone(), role: wanted };
        Ok(self.with(change, |group| {
            group.admins.retain(|admin| admin != user);
            if wanted == Role::Admin {
                group.admins.push(user.clone());
            }
        }))
    }

    pub(super) fn transfer(&self, role: Role, user: &UserId) -> Result<Decision, Reason> {
        if role < Role::Owner {
            return Err(Reason::NotGroupOwner);
        }
        self.target(role, user)?;
        Ok(self.with(ChangeKind::Owner { user: user.clone() }, |group| {
            group.admins.retain(|admin| admin != user);
            group.owner = user.clone();
        }))
    }

    pub(super) fn mute(
        &self,
        role: Role,
        user: &UserId,
        until: Millis,
    ) -> Result<Decision, Reason> {
        let member = self.target(role, user)?.clone();
        let until = if until <= self.now { Millis(0) } else { until };
        if member.muted_until == until {
            return Ok(self.nothing());
        }
        let mut decision = self.with(ChangeKind::Muted { user: user.clone(), until }, |_| {});
        decision.changed.push(GroupMember { muted_until: until, ..member });
        Ok(decision)
    }

    pub(super) fn mute_all(&self, role: Role, on: bool) -> Result<Decision, Reason> {
        if role < Role::Admin {
            return Err(Reason::NotGroupAdmin);
        }
        if self.group.is_muted == on {
            return Ok(self.nothing());
        }
        Ok(self.with(ChangeKind::AllMuted { on }, |group| group.is_muted = on))
    }

    pub(super) fn update(&self, role: Role, change: &GroupChange) -> Result<Decision, Reason> {
        if role < Role::Admin {
            return Err(Reason::NotGroupAdmin);
        }
        let mut wanted = self.group.clone();
        wanted.apply(change);
        good_profile(&wanted.profile)?;
        if wanted == *self.group {
            return Ok(self.nothing());
        }
        wanted.updated_at = self.now;
        Ok(self.with(ChangeKind::Updated(change.clone()), |group| *group = wanted))
    }

    /// Somebody's own doing, whatever their role.
    pub(super) fn set_profile(&self, change: &MemberProfileChange) -> Result<Decision, Reason> {
        let member = self.facts.members.get(self.by).ok_or(Reason::NotGroupMember)?.clone();
        let profile = member.profile.clone().with(change);
        good_member_profile(&profile)?;
        if profile == member.profile {
            return Ok(self.nothing());
        }
        let mut decision = self.with(ChangeKind::MemberUpdated(change.clone()), |_| {});
        decision.changed.push(GroupMember { profile, ..member });
        Ok(decision)
    }

    pub(super) fn reset_code(&self, role: Role, code: &JoinCode) -> Result<Decision, Reason> {
        if role < Role::Admin {
            return Err(Reason::NotGroupAdmin);
        }
        if self.now.since(self.group.code_at) < self.rules.code_cooldown_ms {
            return Err(Reason::CooldownNotReached);
        }
        if self.facts.code_is_taken {
            return Err(Reason::ServerBusy); // another draw will do
        }
        let mut decision = self.nothing();
        decision.group.code = code.clone();
        decision.group.code_at = self.now;
        Ok(decision)
    }

    pub(super) fn end(&self, role: Role, is_dismissed: bool) -> Result<Decision, Reason> {
        if role < Role::Owner {
            return Err(Reason::NotGroupOwner);
        }
        let change = if is_dismissed { ChangeKind::Dismissed } else { ChangeKind::Dissolved };
        Ok(self.with(change, |group| {
            group.ended = Some(Ended { is_dismissed, edge: self.edge() });
            group.members = 0;
            group.requests = 0;
            if is_dismissed {
                group.profile = GroupProfile::default();
                group.admins.clear();
            }
        }))
    }
}
