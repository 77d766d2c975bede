//! What a member can do to a group, the facts a decision needs, and the decision.

use std::collections::BTreeMap;

use crate::ids::{Millis, Seq, UserId};
use crate::membership::{
    Group, GroupChange, GroupMember, GroupProfile, HistoryPolicy, JoinCode, JoinPolicy,
    JoinRequest, MemberProfileChange, Role,
};
use crate::model::{ChangeKind, Window, WindowEnd};

/// A requested change to a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupAction {
    Create(NewGroup),
    /// Join, or request to join.
    Join {
        /// Shown to the owner and admins who decide.
        message: String,
        /// The inviter according to the client. Ignored unless it is a member.
        inviter: Option<UserId>,
    },
    /// Accept or reject a request to join.
    AnswerRequest {
        user: UserId,
        accept: bool,
    },
    Invite(Vec<UserId>),
    Leave,
    Kick(UserId),
    SetRole(UserId, Role),
    Transfer(UserId),
    /// Mute a member until a time; zero unmutes.
    Mute(UserId, Millis),
    /// Let only the owner and admins post, or everyone again.
    MuteAll(bool),
    Update(GroupChange),
    /// Change the caller's profile in this group.
    SetProfile(MemberProfileChange),
    ResetCode(JoinCode),
    /// End the group and keep its messages and profile.
    Dissolve,
    /// End the group and delete its profile.
    Dismiss,
}

/// A group to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGroup {
    pub profile: GroupProfile,
    pub joining: JoinPolicy,
    pub history: HistoryPolicy,
    /// Initial members besides the creator.
    pub members: Vec<UserId>,
    /// Fewer members than this are refused.
    pub members_min: usize,
    pub code: JoinCode,
}

impl GroupAction {
    /// The users that the action names.
    pub fn users(&self) -> &[UserId] {
        match self {
            Self::Create(new) => &new.members,
            Self::Invite(users) => users,
            Self::Join { inviter, .. } => inviter.as_slice(),
            Self::AnswerRequest { user, .. }
            | Self::Kick(user)
            | Self::SetRole(user, _)
            | Self::Transfer(user)
            | Self::Mute(user, _) => std::slice::from_ref(user),
            _ => &[],
        }
    }

    /// The same users, to replace typed ids by those of the accounts.
    pub(crate) fn users_mut(&mut self) -> &mut [UserId] {
        match self {
            Self::Create(new) => &mut new.members,
            Self::Invite(users) => users,
            Self::Join { inviter, .. } => inviter.as_mut_slice(),
            Self::AnswerRequest { user, .. }
            | Self::Kick(user)
            | Self::SetRole(user, _)
            | Self::Transfer(user)
            | Self::Mute(user, _) => std::slice::from_mut(user),
            _ => &mut [],
        }
    }

    /// The join code that the group would get.
    pub fn code(&self) -> Option<&JoinCode> {
        match self {
            Self::Create(new) => Some(&new.code),
            Self::ResetCode(code) => Some(code),
            _ => None,
        }
    }
}

/// What a decision about a group needs to know, read inside the store's transaction.
#[derive(Clone, Debug)]
pub struct GroupFacts {
    /// The group, ended or not; `None` if there never was one.
    pub group: Option<Group>,
    /// The actor and the named users, as far as they are members.
    pub members: BTreeMap<UserId, GroupMember>,
    /// Whether the actor is or was a member.
    pub was_member: bool,
    /// Their open requests to join.
    pub requests: BTreeMap<UserId, JoinRequest>,
    /// Their mutes from an earlier membership.
    pub mutes: BTreeMap<UserId, Millis>,
    /// Whether another group has the wanted code.
    pub code_is_taken: bool,
    /// The seq of the newest message.
    pub head: Seq,
    /// The seq of the newest change.
    pub change_seq: Seq,
}

/// The changes to write, all in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDecision {
    /// The group after the change.
    pub group: Group,
    /// New members with their windows.
    pub joined: Vec<(GroupMember, Window)>,
    /// Members who leave, with the end of their windows.
    pub left: Vec<(UserId, WindowEnd)>,
    /// Mutes of members who leave, kept in case they rejoin.
    pub mutes: Vec<(UserId, Millis)>,
    pub changed_members: Vec<GroupMember>,
    pub new_requests: Vec<JoinRequest>,
    /// Users whose requests to join are accepted or rejected.
    pub closed_requests: Vec<UserId>,
    /// The changes to publish.
    pub changes: Vec<ChangeKind>,
}
