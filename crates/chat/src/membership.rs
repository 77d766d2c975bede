//! Groups and who is in them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{GroupId, Millis, Seq, UserId};
use crate::model::{ChangeKind, Edge, Window};
use crate::reason::Reason;

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Which.
    pub id: GroupId,
    /// How it is seen.
    pub profile: GroupProfile,
    /// Who made it.
    pub creator: UserId,
    /// Who owns it.
    pub owner: UserId,
    /// Who helps the owner. Everybody else is a plain member, so a role is told by the group alone.
    pub admins: Vec<UserId>,
    /// How one comes in.
    pub joining: Joining,
    /// What a newcomer sees of what was said before.
    pub history: History,
    /// Only owner and admins may speak.
    pub is_muted: bool,
    /// How many are in it.
    pub members: u32,
    /// How many wait to be let in.
    pub requests: u32,
    /// The code that leads here.
    pub code: JoinCode,
    /// When the code was last replaced.
    pub code_at: Millis,
    /// When it was made.
    pub created_at: Millis,
    /// When its profile or ways last changed.
    pub updated_at: Millis,
    /// Set once it ended.
    pub ended: Option<Ended>,
}

impl Group {
    /// The role of somebody who is in it.
    pub fn role(&self, user: &UserId) -> Role {
        if self.owner == *user {
            Role::Owner
        } else if self.admins.contains(user) {
            Role::Admin
        } else {
            Role::Member
        }
    }
}

/// How and where a group ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Whether its profile is gone too.
    pub is_dismissed: bool,
    /// The end of everybody's window.
    pub edge: Edge,
}

/// How a group is seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupProfile {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub introduction: String,
    /// What everybody should know now.
    pub announcement: String,
    /// Where its picture is, as the app knows it.
    pub avatar: String,
    /// The app's own data, opaque to the server.
    pub extra: String,
    /// What kind of group the app takes it for: a number of its own, chosen when it is made.
    pub group_type: i32,
}

/// A change to a group's profile and ways; `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupChange {
    /// New name.
    pub name: Option<String>,
    /// New introduction.
    pub introduction: Option<String>,
    /// New announcement.
    pub announcement: Option<String>,
    /// New avatar.
    pub avatar: Option<String>,
    /// New app data.
    pub extra: Option<String>,
    /// How one comes in from now on.
    pub joining: Option<Joining>,
    /// What those who come from now on see.
    pub history: Option<History>,
}

impl Group {
    /// Takes over what a change names.
    pub fn apply(&mut self, change: &GroupChange) {
        let set = |field: &mut String, new: &Option<String>| {
            if let Some(new) = new {
                field.clone_from(new);
            }
        };
        set(&mut self.profile.name, &change.name);
        set(&mut self.profile.introduction, &change.introduction);
        set(&mut self.profile.announcement, &change.announcement);
        set(&mut self.profile.avatar, &change.avatar);
        set(&mut self.profile.extra, &change.extra);
        self.joining = change.joining.unwrap_or(self.joining);
        self.history = change.history.unwrap_or(self.history);
    }
}

/// How one comes into a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Joining {
    /// Whoever knows it.
    #[default]
    Open,
    /// Whoever is let in.
    Approval,
    /// Whoever is invited by owner or admins.
    Invite,
}

/// What a newcomer sees of what was said before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum History {
    /// Nothing.
    #[default]
    Joined,
    /// Everything.
    All,
}

/// What somebody may do in a group, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// Speaks.
    Member,
    /// Keeps order among members.
    Admin,
    /// Decides.
    Owner,
}

/// Somebody in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMember {
    /// Who.
    pub user: UserId,
    /// When they came.
    pub joined_at: Millis,
    /// The first message they see.
    pub join_seq: Seq,
    /// The newest message when they came: what they were there for is after it.
    pub came_after: Seq,
    /// Who brought or let them in.
    pub inviter: Option<UserId>,
    /// They may not speak before this.
    pub muted_until: Millis,
    /// How they want to be seen here.
    pub profile: MemberProfile,
}

/// How a member wants to be seen in a group; what is empty is as in their account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberProfile {
    /// Their name here.
    pub nickname: String,
    /// Where their picture for here is, as the app knows it.
    pub avatar: String,
    /// The app's own data, opaque to the server.
    pub extra: String,
}

/// A change to how a member is seen; `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberProfileChange {
    /// New name.
    pub nickname: Option<String>,
    /// New picture.
    pub avatar: Option<String>,
    /// New app data.
    pub extra: Option<String>,
}

impl MemberProfile {
    /// Takes over what a change names.
    #[must_use]
    pub fn with(self, change: &MemberProfileChange) -> Self {
        Self {
            nickname: change.nickname.clone().unwrap_or(self.nickname),
            avatar: change.avatar.clone().unwrap_or(self.avatar),
            extra: change.extra.clone().unwrap_or(self.extra),
        }
    }
}

/// What somebody is to a group.
#[derive(Clone, Copy, Debug)]
pub enum Belonging<'a> {
    /// They are in it.
    Member(&'a GroupMember),
    /// They left, or were put out.
    Former,
    /// They never were in it.
    Stranger,
}

impl<'a> Belonging<'a> {
    /// Of whoever is not in it one has to know whether they ever were.
    pub fn new(member: Option<&'a GroupMember>, was_in: bool) -> Self {
        match member {
            Some(member) => Self::Member(member),
            None if was_in => Self::Former,
            None => Self::Stranger,
        }
    }

    /// The member, or what everybody else is told.
    pub fn member(self) -> Result<&'a GroupMember, Reason> {
        match self {
            Self::Member(member) => Ok(member),
            Self::Former => Err(Reason::MemberNotActive),
            Self::Stranger => Err(Reason::NotGroupMember),
        }
    }
}

/// Somebody who wants in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRequest {
    /// Where.
    pub group: GroupId,
    /// Who.
    pub user: UserId,
    /// What they say.
    pub message: String,
    /// When.
    pub at: Millis,
}

/// Eight letters and digits that lead to a group, without those that look alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JoinCode(String);

impl JoinCode {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

    /// Makes a code from random bytes.
    pub fn random(bytes: [u8; 8]) -> Self {
        let letter = |byte: u8| char::from(Self::ALPHABET[usize::from(byte % 32)]);
        Self(bytes.into_iter().map(letter).collect())
    }

    /// A code as somebody typed it; anything else leads nowhere.
    pub fn parse(text: &str) -> Option<Self> {
        let code = text.to_ascii_uppercase();
        let fits = code.len() == 8 && code.bytes().all(|byte| Self::ALPHABET.contains(&byte));
        fits.then_some(Self(code))
    }

    /// The code as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What somebody wants to do to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupAct {
    /// Make it.
    Create(NewGroup),
    /// Come in, or ask to.
    Join {
        /// What they say to those who decide.
        message: String,
        /// Who brought them, as they say; believed of somebody who is in it.
        inviter: Option<UserId>,
    },
    /// Let somebody in who asked, or not.
    Answer {
        /// Who asked.
        user: UserId,
        /// Which.
        accept: bool,
    },
    /// Bring people in.
    Invite(Vec<UserId>),
    /// Go.
    Leave,
    /// Put somebody out.
    Kick(UserId),
    /// Make somebody an admin or a member.
    SetRole(UserId, Role),
    /// Give the group to somebody.
    Transfer(UserId),
    /// Keep somebody from speaking until then; zero lets them speak.
    Mute(UserId, Millis),
    /// Let only owner and admins speak, or everybody.
    MuteAll(bool),
    /// Change the profile or the ways.
    Update(GroupChange),
    /// Be seen otherwise here.
    SetProfile(MemberProfileChange),
    /// Replace the code.
    ResetCode(JoinCode),
    /// End it and keep what was said.
    Dissolve,
    /// End it and forget its profile.
    Dismiss,
}

/// A group in the making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGroup {
    /// How it is seen.
    pub profile: GroupProfile,
    /// How one comes in.
    pub joining: Joining,
    /// What newcomers see.
    pub history: History,
    /// Who is in it from the start, beside the creator.
    pub members: Vec<UserId>,
    /// How many people it needs.
    pub least: usize,
    /// The code that leads to it.
    pub code: JoinCode,
}

impl GroupAct {
    /// The people it speaks of.
    pub fn users(&self) -> &[UserId] {
        match self {
            Self::Create(new) => &new.members,
            Self::Invite(users) => users,
            Self::Join { inviter, .. } => inviter.as_slice(),
            Self::Answer { user, .. }
            | Self::Kick(user)
            | Self::SetRole(user, _)
            | Self::Transfer(user)
            | Self::Mute(user, _) => std::slice::from_ref(user),
            _ => &[],
        }
    }

    /// The same people, to put everybody's own id where a name was typed.
    pub(crate) fn users_mut(&mut self) -> &mut [UserId] {
        match self {
            Self::Create(new) => &mut new.members,
            Self::Invite(users) => users,
            Self::Join { inviter, .. } => inviter.as_mut_slice(),
            Self::Answer { user, .. }
            | Self::Kick(user)
            | Self::SetRole(user, _)
            | Self::Transfer(user)
            | Self::Mute(user, _) => std::slice::from_mut(user),
            _ => &mut [],
        }
    }

    /// The code it would take.
    pub fn code(&self) -> Option<&JoinCode> {
        match self {
            Self::Create(new) => Some(&new.code),
            Self::ResetCode(code) => Some(code),
            _ => None,
        }
    }
}

/// What a decision about a group needs to know, as it is inside the atomic act.
#[derive(Clone, Debug)]
pub struct GroupFacts {
    /// The group, if there is or was one.
    pub group: Option<Group>,
    /// Those of the people asked about who are in it.
    pub members: BTreeMap<UserId, GroupMember>,
    /// Whether the asker is in it, or was.
    pub was_in: bool,
    /// Those of them who wait to be let in.
    pub requests: BTreeMap<UserId, JoinRequest>,
    /// Mutes of theirs from before they left.
    pub mutes: BTreeMap<UserId, Millis>,
    /// Whether the code asked about leads elsewhere.
    pub code_is_taken: bool,
    /// The newest message.
    pub head: Seq,
    /// The newest change.
    pub change_seq: Seq,
}

/// What becomes of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The group as it will be.
    pub group: Group,
    /// Who comes, and what they will see.
    pub joined: Vec<(GroupMember, Window)>,
    /// Who goes, and where their windows end.
    pub left: Vec<(UserId, Edge)>,
    /// Mutes that wait for those who went, should they come back.
    pub mutes: Vec<(UserId, Millis)>,
    /// Members who changed.
    pub changed: Vec<GroupMember>,
    /// New wishes to come in.
    pub asked: Vec<JoinRequest>,
    /// Wishes that are settled.
    pub settled: Vec<UserId>,
    /// What everybody is told.
    pub changes: Vec<ChangeKind>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_people_type_them() {
        let code = JoinCode::random([0, 31, 32, 255, 7, 8, 9, 10]);
        assert_eq!(code.as_str(), "A9A9HJKL");
        assert_eq!(JoinCode::parse("a9a9hjkl"), Some(code));
        for bad in ["", "A9A9HJK", "A9A9HJKLM", "A9A9HJK0", "A9A9HJKI", "ééééé"] {
            assert_eq!(JoinCode::parse(bad), None, "{bad}");
        }
    }
}
