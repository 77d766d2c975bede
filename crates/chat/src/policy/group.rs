//! What may be done to a group, and what becomes of it?

use std::collections::BTreeSet;

use crate::ids::{GroupId, Millis, Seq, UserId};
use crate::membership::{
    Decision, Ended, Group, GroupAct, GroupChange, GroupFacts, GroupMember, GroupProfile, History,
    JoinCode, JoinRequest, Joining, NewGroup, Role,
};
use crate::model::{ChangeKind, Draft, Edge, Window};
use crate::policy::send::says_nothing;
use crate::reason::Reason;
use crate::rules::GroupRules;

/// Whether the sender of a draft may speak in its group now. Asked inside the atomic append.
pub fn may_speak(
    group: Option<&Group>,
    member: Option<&GroupMember>,
    draft: &Draft,
) -> Result<(), Reason> {
    let group = alive(group)?;
    if draft.sender.is_system() {
        return Ok(()); // the operator speaks everywhere
    }
    let member = member.ok_or(Reason::NotGroupMember)?;
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
    if let GroupAct::Join { message } = act {
        return scene.join(message);
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
        code_at: now,
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

/// Whether a group's profile is within its lengths and shows a name.
pub fn good_profile(profile: &GroupProfile) -> Result<(), Reason> {
    let name = &profile.name;
    if name.chars().all(says_nothing)
        || name.chars().count() > 64
        || name.chars().any(char::is_control)
    {
        return Err(Reason::BadGroupName);
    }
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
        self.facts.members.get(self.by).ok_or(Reason::NotGroupMember)?;
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

    /// Those of these people come in who are not in yet.
    fn bring_in(&self, users: &[UserId]) -> Result<Decision, Reason> {
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
                inviter: (user != self.by).then(|| self.by.clone()),
                muted_until: self.facts.mutes.get(user).copied().unwrap_or_default(),
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
    fn settle(&self, decision: &mut Decision, users: &[UserId]) {
        for user in users.iter().filter(|user| self.facts.requests.contains_key(user)) {
            decision.settled.push(user.clone());
            decision.group.requests = decision.group.requests.saturating_sub(1);
        }
    }

    fn join(&self, message: &str) -> Result<Decision, Reason> {
        if self.facts.members.contains_key(self.by) {
            return Err(Reason::AlreadyMember);
        }
        match self.group.joining {
            Joining::Open => self.bring_in(std::slice::from_ref(self.by)),
            Joining::Invite => Err(Reason::JoinNotAllowed),
            Joining::Approval => self.ask(message),
        }
    }

    fn ask(&self, message: &str) -> Result<Decision, Reason> {
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
        decision.asked.push(JoinRequest {
            group: self.group.id.clone(),
            user: self.by.clone(),
            message: message.to_owned(),
            at: self.now,
        });
        Ok(decision)
    }

    fn answer(&self, role: Role, user: &UserId, accept: bool) -> Result<Decision, Reason> {
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

    fn invite(&self, role: Role, users: &[UserId]) -> Result<Decision, Reason> {
        if self.group.joining != Joining::Open && role < Role::Admin {
            return Err(Reason::NotGroupAdmin);
        }
        self.bring_in(users)
    }

    /// Somebody goes.
    fn without(&self, user: &UserId, change: ChangeKind) -> Decision {
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
    fn edge(&self) -> Edge {
        let change_seq = self.facts.change_seq.next();
        Edge { seq: self.facts.head, change_seq, at: self.now }
    }

    fn leave(&self, role: Role) -> Result<Decision, Reason> {
        if role == Role::Owner {
            return Err(Reason::OwnerMustTransfer);
        }
        Ok(self.without(self.by, ChangeKind::Left))
    }

    fn kick(&self, role: Role, user: &UserId) -> Result<Decision, Reason> {
        self.target(role, user)?;
        Ok(self.without(user, ChangeKind::Kicked { user: user.clone() }))
    }

    fn set_role(&self, role: Role, user: &UserId, wanted: Role) -> Result<Decision, Reason> {
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

    fn transfer(&self, role: Role, user: &UserId) -> Result<Decision, Reason> {
        if role < Role::Owner {
            return Err(Reason::NotGroupOwner);
        }
        self.target(role, user)?;
        Ok(self.with(ChangeKind::Owner { user: user.clone() }, |group| {
            group.admins.retain(|admin| admin != user);
            group.owner = user.clone();
        }))
    }

    fn mute(&self, role: Role, user: &UserId, until: Millis) -> Result<Decision, Reason> {
        let member = self.target(role, user)?.clone();
        let until = if until <= self.now { Millis(0) } else { until };
        if member.muted_until == until {
            return Ok(self.nothing());
        }
        let mut decision = self.with(ChangeKind::Muted { user: user.clone(), until }, |_| {});
        decision.changed.push(GroupMember { muted_until: until, ..member });
        Ok(decision)
    }

    fn mute_all(&self, role: Role, on: bool) -> Result<Decision, Reason> {
        if role < Role::Admin {
            return Err(Reason::NotGroupAdmin);
        }
        if self.group.is_muted == on {
            return Ok(self.nothing());
        }
        Ok(self.with(ChangeKind::AllMuted { on }, |group| group.is_muted = on))
    }

    fn update(&self, role: Role, change: &GroupChange) -> Result<Decision, Reason> {
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

    fn reset_code(&self, role: Role, code: &JoinCode) -> Result<Decision, Reason> {
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

    fn end(&self, role: Role, is_dismissed: bool) -> Result<Decision, Reason> {
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

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
