//! May this be done to a group, and what is the result?

mod administration;
mod joining;

use crate::ids::{GroupId, Millis, UserId};
use crate::membership::{
    Group, GroupAction, GroupDecision, GroupFacts, GroupMember, GroupProfile, JoinPolicy,
    MemberProfile, MembershipStatus, NewGroup, Role,
};
use crate::model::{ChangeKind, Draft};
use crate::policy::name;
use crate::reason::Reason;
use crate::rules::GroupRules;

/// Whether the sender of a draft may post in its group now. Called inside the append's transaction.
pub fn may_speak(
    group: Option<&Group>,
    sender: MembershipStatus<'_>,
    draft: &Draft,
) -> Result<(), Reason> {
    let group = require_active(group)?;
    if draft.sender.is_system() {
        return Ok(()); // the system user may post in every group
    }
    let member = sender.member()?;
    let role = group.role(&member.user);
    if member.muted_until > draft.sent_at && role < Role::Owner {
        return Err(Reason::GroupSpeakMuted);
    }
    if group.is_muted && role < Role::Admin {
        return Err(Reason::GroupMuted);
    }
    if draft.content.mentions_all && role < Role::Admin {
        return Err(Reason::NotGroupAdmin);
    }
    Ok(())
}

/// Whether a user may see a group: members always, others unless it is by invitation only or has ended.
pub fn may_view(group: Option<&Group>, is_member: bool) -> Result<&Group, Reason> {
    match group {
        Some(group) if is_member => Ok(group),
        Some(group) if group.joining != JoinPolicy::Invite && group.ended.is_none() => Ok(group),
        _ => Err(Reason::GroupNotFound),
    }
}

/// Decides on a requested action.
pub fn decide(
    rules: &GroupRules,
    facts: &GroupFacts,
    id: &GroupId,
    by: &UserId,
    action: &GroupAction,
    now: Millis,
) -> Result<GroupDecision, Reason> {
    if let GroupAction::Create(new) = action {
        return create(rules, facts, id, by, new, now);
    }
    let group = require_active(facts.group.as_ref())?;
    let context = GroupContext { rules, facts, group, by, now };
    if let GroupAction::Join { message, inviter } = action {
        return context.join(message, inviter.as_ref());
    }
    let role = context.role()?;
    match action {
        GroupAction::Create(_) | GroupAction::Join { .. } => Err(Reason::InternalError), // decided above
        GroupAction::AnswerRequest { user, accept } => context.answer_request(role, user, *accept),
        GroupAction::Invite(users) => context.invite(role, users),
        GroupAction::Leave => context.leave(role),
        GroupAction::Kick(user) => context.kick(role, user),
        GroupAction::SetRole(user, wanted) => context.set_role(role, user, *wanted),
        GroupAction::Transfer(user) => context.transfer(role, user),
        GroupAction::Mute(user, until) => context.mute(role, user, *until),
        GroupAction::MuteAll(on) => context.mute_all(role, *on),
        GroupAction::Update(change) => context.update(role, change),
        GroupAction::SetProfile(change) => context.set_profile(change),
        GroupAction::ResetCode(code) => context.reset_code(role, code),
        GroupAction::Dissolve => context.end_group(role, false),
        GroupAction::Dismiss => context.end_group(role, true),
    }
}

fn require_active(group: Option<&Group>) -> Result<&Group, Reason> {
    match group {
        Some(group) if group.ended.is_none() => Ok(group),
        Some(_) => Err(Reason::GroupDissolved),
        None => Err(Reason::GroupNotFound),
    }
}

fn create(
    rules: &GroupRules,
    facts: &GroupFacts,
    id: &GroupId,
    by: &UserId,
    new: &NewGroup,
    now: Millis,
) -> Result<GroupDecision, Reason> {
    check_group_profile(&new.profile)?;
    // The random id or code is taken. The request is fine, so the client should retry.
    if facts.group.is_some() || facts.code_is_taken {
        return Err(Reason::ServerBusy);
    }
    let group = Group {
        id: id.clone(),
        profile: new.profile.clone(),
        creator: by.clone(),
        owner: by.clone(),
        admins: Vec::new(),
        joining: new.joining,
        history: new.history,
        is_muted: false,
        members: 0,
        requests: 0,
        code: new.code.clone(),
        code_at: Millis(0), // never replaced
        created_at: now,
        updated_at: now,
        ended: None,
    };
    let mut users = vec![by.clone()];
    users.extend(new.members.iter().filter(|user| *user != by).cloned());
    let context = GroupContext { rules, facts, group: &group, by, now };
    let decision = context.add_members(&users)?;
    if decision.joined.len() < new.members_min {
        return Err(Reason::GroupTooSmall);
    }
    Ok(decision)
}

/// Upper bound for the names of groups and of members in a group.
pub const NAME_CHARS_MAX: usize = 128;

fn check_member_profile(profile: &MemberProfile) -> Result<(), Reason> {
    // Empty means that the account's nickname is shown.
    if !profile.nickname.is_empty() {
        name::normalize(&profile.nickname, NAME_CHARS_MAX).ok_or(Reason::BadNickname)?;
    }
    let is_valid = profile.avatar.len() <= 1024 && profile.extra.len() <= 4096;
    if is_valid { Ok(()) } else { Err(Reason::BadGroupProfile) }
}

/// Checks the lengths, and that the name is visible.
pub fn check_group_profile(profile: &GroupProfile) -> Result<(), Reason> {
    name::normalize(&profile.name, NAME_CHARS_MAX).ok_or(Reason::BadGroupName)?;
    let is_valid = profile.introduction.chars().count() <= 1024
        && profile.announcement.chars().count() <= 4096
        && profile.avatar.len() <= 1024
        && profile.extra.len() <= 4096;
    if is_valid { Ok(()) } else { Err(Reason::BadGroupProfile) }
}

/// What every decision about an existing group needs.
struct GroupContext<'a> {
    rules: &'a GroupRules,
    facts: &'a GroupFacts,
    group: &'a Group,
    by: &'a UserId,
    now: Millis,
}

impl GroupContext<'_> {
    /// The role of the actor. The system user, as whom operators act, has the owner's rights without being a
    /// member; no client can act as it.
    fn role(&self) -> Result<Role, Reason> {
        if self.by.is_system() {
            return Ok(Role::Owner);
        }
        MembershipStatus::new(self.facts.members.get(self.by), self.facts.was_member).member()?;
        Ok(self.group.role(self.by))
    }

    /// A decision that changes nothing.
    fn unchanged(&self) -> GroupDecision {
        GroupDecision {
            group: self.group.clone(),
            joined: Vec::new(),
            left: Vec::new(),
            mutes: Vec::new(),
            changed_members: Vec::new(),
            new_requests: Vec::new(),
            closed_requests: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// A decision that changes the group and publishes the change.
    fn with_change(&self, change: ChangeKind, edit: impl FnOnce(&mut Group)) -> GroupDecision {
        let mut decision = self.unchanged();
        edit(&mut decision.group);
        decision.changes.push(change);
        decision
    }

    /// Another member, over whom `role` has power.
    fn require_target(&self, role: Role, user: &UserId) -> Result<&GroupMember, Reason> {
        if user == self.by {
            return Err(Reason::TargetIsSelf);
        }
        if role < Role::Admin {
            return Err(Reason::NotGroupAdmin);
        }
        let member = self.facts.members.get(user).ok_or(Reason::TargetNotMember)?;
        match self.group.role(user) {
            Role::Owner => Err(Reason::CannotTouchOwner),
            Role::Admin if role < Role::Owner => Err(Reason::CannotTouchAdmin),
            Role::Admin | Role::Member => Ok(member),
        }
    }
}

#[cfg(test)]
mod tests;
