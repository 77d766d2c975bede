//! Groups and their members.

use serde::{Deserialize, Serialize};

pub use crate::group_action::{GroupAction, GroupDecision, GroupFacts, NewGroup};
use crate::ids::{GroupId, Millis, Seq, UserId};
use crate::model::WindowEnd;
use crate::reason::Reason;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub id: GroupId,
    pub profile: GroupProfile,
    pub creator: UserId,
    pub owner: UserId,
    /// Everyone else is a plain member, so the group alone determines a member's role.
    pub admins: Vec<UserId>,
    pub joining: JoinPolicy,
    /// How much history new members see.
    pub history: HistoryPolicy,
    /// Whether only the owner and admins may post.
    pub is_muted: bool,
    pub members: u32,
    /// Open requests to join.
    pub requests: u32,
    /// The code to join with.
    pub code: JoinCode,
    /// When the code was last replaced.
    pub code_at: Millis,
    pub created_at: Millis,
    /// When its profile or policies last changed.
    pub updated_at: Millis,
    pub ended: Option<GroupEnd>,
}

impl Group {
    /// The role of a member. For users who are not members the result is meaningless.
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

/// How a group ended, and up to which message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupEnd {
    /// Whether its profile was deleted too.
    pub is_dismissed: bool,
    /// Closes the windows of all members.
    pub window_end: WindowEnd,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupProfile {
    pub name: String,
    pub introduction: String,
    pub announcement: String,
    /// A URL or key, opaque to the server.
    pub avatar: String,
    /// The app's own data, opaque to the server.
    pub extra: String,
    /// The app's own number, set at creation and opaque to the server.
    pub group_type: i32,
}

/// A change to a group's profile and policies; `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupChange {
    pub name: Option<String>,
    pub introduction: Option<String>,
    pub announcement: Option<String>,
    pub avatar: Option<String>,
    pub extra: Option<String>,
    pub joining: Option<JoinPolicy>,
    /// Applies to members who join from now on.
    pub history: Option<HistoryPolicy>,
}

impl Group {
    /// Sets the fields that the change contains.
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

/// Who may join a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum JoinPolicy {
    /// Any user.
    #[default]
    Open,
    /// Users whose request the owner or an admin accepts.
    Approval,
    /// Users whom the owner or an admin invites.
    Invite,
}

/// How much history new members see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HistoryPolicy {
    #[default]
    Joined,
    All,
}

/// A member's role, ordered from the least power to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    Member,
    Admin,
    Owner,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMember {
    pub user: UserId,
    pub joined_at: Millis,
    /// The first visible message.
    pub join_seq: Seq,
    /// The group's newest message when they joined. With full history they see older ones too, but were not
    /// there to read them.
    pub came_after: Seq,
    /// The member who invited or accepted them.
    pub inviter: Option<UserId>,
    /// They may not post before this time.
    pub muted_until: Millis,
    pub profile: MemberProfile,
}

/// A member's profile in one group. Empty fields fall back to the account's profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberProfile {
    pub nickname: String,
    /// A URL or key, opaque to the server.
    pub avatar: String,
    /// The app's own data, opaque to the server.
    pub extra: String,
}

/// A change to a member's profile; `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberProfileChange {
    pub nickname: Option<String>,
    pub avatar: Option<String>,
    pub extra: Option<String>,
}

impl MemberProfile {
    /// Sets the fields that the change contains.
    #[must_use]
    pub fn with(self, change: &MemberProfileChange) -> Self {
        Self {
            nickname: change.nickname.clone().unwrap_or(self.nickname),
            avatar: change.avatar.clone().unwrap_or(self.avatar),
            extra: change.extra.clone().unwrap_or(self.extra),
        }
    }
}

/// A user's relation to a group.
#[derive(Clone, Copy, Debug)]
pub enum MembershipStatus<'a> {
    Member(&'a GroupMember),
    /// Left or was removed.
    Former,
    /// Never was a member.
    Stranger,
}

impl<'a> MembershipStatus<'a> {
    /// `was_member` only matters without a current `member`.
    pub fn new(member: Option<&'a GroupMember>, was_member: bool) -> Self {
        match member {
            Some(member) => Self::Member(member),
            None if was_member => Self::Former,
            None => Self::Stranger,
        }
    }

    /// The member, or the reason to refuse anyone else.
    pub fn member(self) -> Result<&'a GroupMember, Reason> {
        match self {
            Self::Member(member) => Ok(member),
            Self::Former => Err(Reason::MemberNotActive),
            Self::Stranger => Err(Reason::NotGroupMember),
        }
    }
}

/// A user's request to join a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRequest {
    pub group: GroupId,
    pub user: UserId,
    pub message: String,
    pub at: Millis,
}

/// Eight letters and digits to join a group with, without `I O 0 1`, which look alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JoinCode(String);

impl JoinCode {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

    /// Derives a code from random bytes.
    pub fn random(bytes: [u8; 8]) -> Self {
        let letter = |byte: u8| char::from(Self::ALPHABET[usize::from(byte % 32)]);
        Self(bytes.into_iter().map(letter).collect())
    }

    /// Parses a typed code in either case.
    pub fn parse(text: &str) -> Option<Self> {
        let code = text.to_ascii_uppercase();
        let is_valid = code.len() == 8 && code.bytes().all(|byte| Self::ALPHABET.contains(&byte));
        is_valid.then_some(Self(code))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
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
