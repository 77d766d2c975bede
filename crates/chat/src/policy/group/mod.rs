//! What may be done to a group, and what becomes of it?

mod coming;
mod leading;

use crate::ids::{GroupId, Millis, UserId};
use crate::membership::{
    Belonging, Decision, Group, GroupAct, GroupFacts, GroupMember, GroupProfile, Joining,
    MemberProfile, NewGroup, Role,
};
use crate::model::{ChangeKind, Draft};
use crate::policy::name;
use crate::reason::Reason;
use crate::rules::GroupRules;

/// Whether the sender of a draft may speak in its group now. Asked inside the atomic append.
pub fn may_speak(
    group: Option<&Group>,
    sender: Belonging<'_>,
    draft: &Draft,
) -> Result<(), Reason> {
    let group = alive(group)?;
    if draft.sender.is_system() {
        return Ok(()); // the operator speaks everywhere
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

/// Whether a group shows itself to somebody: always to its members, else unless it is by
/// invitation only.
pub fn may_look(group: Option<&Group>, is_member: bool) -> Result<&Group, Reason> {
    match group {
        Some(group) if is_member => Ok(group),
        Some(group) if group.joining != Joining::Invite && group.ended.is_none() => Ok(group),
        _ => Err(Reason::GroupNotFound),
    }
}

/// Decides what somebody wants to do to a group.
pub fn decide(
    rules: &GroupRules,
    facts: &GroupFacts,
    id: &GroupId,
    by: &UserId,
    act: &GroupAct,
    now: Millis,
) -> Result<Decision, Reason> {
    if let GroupAct::Create(new) = act {
        return create(rules, facts, id, by, new, now);
    }
    let group = alive(facts.group.as_ref())?;
    let scene = Scene { rules, facts, group, by, now };
    if let GroupAct::Join { message, inviter } = act {
        return scene.join(message, inviter.as_ref());
    }
    let role = scene.role()?;
    match act {
        GroupAct::Create(_) | GroupAct::Join { .. } => Err(Reason::InternalError), // decided above
        GroupAct::Answer { user, accept } => scene.answer(role, user, *accept),
        GroupAct::Invite(users) => scene.invite(role, users),
        GroupAct::Leave => scene.leave(role),
        GroupAct::Kick(user) => scene.kick(role, user),
        GroupAct::SetRole(user, wanted) => scene.set_role(role, user, *wanted),
        GroupAct::Transfer(user) => scene.transfer(role, user),
        GroupAct::Mute(user, until) => scene.mute(role, user, *until),
        GroupAct::MuteAll(on) => scene.mute_all(role, *on),
        GroupAct::Update(change) => scene.update(role, change),
        GroupAct::SetProfile(change) => scene.set_profile(change),
        GroupAct::ResetCode(code) => scene.reset_code(role, code),
        GroupAct::Dissolve => scene.end(role, false),
        GroupAct::Dismiss => scene.end(role, true),
    }
}

fn alive(group: Option<&Group>) -> Result<&Group, Reason> {
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
) -> Result<Decision, Reason> {
    good_profile(&new.profile)?;
    // An id or a code drawn twice: nothing is wrong with the request, another draw will do.
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
        code_at: Millis(0), // nobody has replaced it yet
        created_at: now,
        updated_at: now,
        ended: None,
    };
    let mut users = vec![by.clone()];
    users.extend(new.members.iter().filter(|user| *user != by).cloned());
    let scene = Scene { rules, facts, group: &group, by, now };
    let decision = scene.bring_in(&users)?;
    if decision.joined.len() < new.least {
        return Err(Reason::GroupTooSmall);
    }
    Ok(decision)
}

/// Characters of a name at most, of a group or of somebody in it.
pub const NAME_CHARS_MAX: usize = 128;

/// Whether what a member says about themselves is within its lengths.
fn good_member_profile(profile: &MemberProfile) -> Result<(), Reason> {
    // Without a name of their own, members go by their nickname.
    if !profile.nickname.is_empty() {
        name::tidy(&profile.nickname, NAME_CHARS_MAX).ok_or(Reason::BadNickname)?;
    }
    let fits = profile.avatar.len() <= 1024 && profile.extra.len() <= 4096;
    if fits { Ok(()) } else { Err(Reason::BadGroupProfile) }
}

/// Whether a group's profile is within its lengths and shows a name.
pub fn good_profile(profile: &GroupProfile) -> Result<(), Reason> {
    name::tidy(&profile.name, NAME_CHARS_MAX).ok_or(Reason::BadGroupName)?;
    let fits = profile.introduction.chars().count() <= 1024
        && profile.announcement.chars().count() <= 4096
        && profile.avatar.len() <= 1024
        && profile.extra.len() <= 4096;
    if fits { Ok(()) } else { Err(Reason::BadGroupProfile) }
}

/// Somebody before a living group.
struct Scene<'a> {
    rules: &'a GroupRules,
    facts: &'a GroupFacts,
    group: &'a Group,
    by: &'a UserId,
    now: Millis,
}

impl Scene<'_> {
    fn role(&self) -> Result<Role, Reason> {
        Belonging::new(self.facts.members.get(self.by), self.facts.was_in).member()?;
        Ok(self.group.role(self.by))
    }

    /// Nothing happens.
    fn nothing(&self) -> Decision {
        Decision {
            group: self.group.clone(),
            joined: Vec::new(),
            left: Vec::new(),
            mutes: Vec::new(),
            changed: Vec::new(),
            asked: Vec::new(),
            settled: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// The group itself changes, and everybody is told.
    fn with(&self, change: ChangeKind, act: impl FnOnce(&mut Group)) -> Decision {
        let mut decision = self.nothing();
        act(&mut decision.group);
        decision.changes.push(change);
        decision
    }

    /// Somebody else who is in the group and whom `role` may deal with.
    fn target(&self, role: Role, user: &UserId) -> Result<&GroupMember, Reason> {
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
