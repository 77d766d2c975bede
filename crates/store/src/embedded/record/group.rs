//! Groups, their members and join requests on disk.

use serde::{Deserialize, Serialize};

use nexo_chat::ids::{GroupId, Millis, Seq, UserId};
use nexo_chat::membership::{
    Group, GroupChange, GroupEnd, GroupMember, GroupProfile, HistoryPolicy, JoinCode, JoinPolicy,
    JoinRequest, MemberProfile, Role,
};

use super::member::EdgeRecord;
use super::{impossible, user_id};
use crate::embedded::keys::Keyspace;
use crate::embedded::poison::EngineFault;

#[derive(Serialize, Deserialize)]
pub(crate) struct GroupRecord<'a> {
    /// Name, introduction, announcement, avatar, extra.
    #[serde(borrow)]
    profile: [&'a str; 5],
    creator: &'a str,
    owner: &'a str,
    #[serde(borrow)]
    admins: Vec<&'a str>,
    joining: u8,
    history: u8,
    is_muted: bool,
    members: u32,
    requests: u32,
    code: &'a str,
    code_at: u64,
    created_at: u64,
    updated_at: u64,
    /// Whether it was dismissed, and the edge at which all windows end.
    ended: Option<(bool, EdgeRecord)>,
    /// Since version 2.
    group_type: i32,
}

impl<'a> From<&'a Group> for GroupRecord<'a> {
    fn from(group: &'a Group) -> Self {
        let GroupProfile { name, introduction, announcement, avatar, extra, group_type } =
            &group.profile;
        Self {
            profile: [name, introduction, announcement, avatar, extra],
            creator: group.creator.as_str(),
            owner: group.owner.as_str(),
            admins: group.admins.iter().map(UserId::as_str).collect(),
            joining: joining_number(group.joining),
            history: history_number(group.history),
            is_muted: group.is_muted,
            members: group.members,
            requests: group.requests,
            code: group.code.as_str(),
            code_at: group.code_at.0,
            created_at: group.created_at.0,
            updated_at: group.updated_at.0,
            ended: group.ended.map(|ended| (ended.is_dismissed, ended.window_end.into())),
            group_type: *group_type,
        }
    }
}

impl GroupRecord<'_> {
    pub(crate) fn group(&self, id: &GroupId) -> Result<Group, EngineFault> {
        let [name, introduction, announcement, avatar, extra] = self.profile.map(str::to_owned);
        let admins: Result<_, _> = self.admins.iter().map(|id| user_id(id)).collect();
        let code = JoinCode::parse(self.code);
        let group_type = self.group_type;
        Ok(Group {
            id: id.clone(),
            profile: GroupProfile { name, introduction, announcement, avatar, extra, group_type },
            creator: user_id(self.creator)?,
            owner: user_id(self.owner)?,
            admins: admins?,
            joining: joining(self.joining)?,
            history: history(self.history)?,
            is_muted: self.is_muted,
            members: self.members,
            requests: self.requests,
            code: code.ok_or_else(|| impossible(Keyspace::Groups, "not a join code"))?,
            code_at: Millis(self.code_at),
            created_at: Millis(self.created_at),
            updated_at: Millis(self.updated_at),
            ended: self
                .ended
                .map(|(is_dismissed, edge)| GroupEnd { is_dismissed, window_end: edge.into() }),
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct GroupMemberRecord<'a> {
    joined_at: u64,
    join_seq: u64,
    came_after: u64,
    #[serde(borrow)]
    inviter: Option<&'a str>,
    muted_until: u64,
    /// Since version 2: nickname, avatar, extra.
    #[serde(borrow)]
    profile: [&'a str; 3],
}

impl<'a> From<&'a GroupMember> for GroupMemberRecord<'a> {
    fn from(member: &'a GroupMember) -> Self {
        Self {
            joined_at: member.joined_at.0,
            join_seq: member.join_seq.0,
            came_after: member.came_after.0,
            inviter: member.inviter.as_ref().map(UserId::as_str),
            muted_until: member.muted_until.0,
            profile: [&member.profile.nickname, &member.profile.avatar, &member.profile.extra],
        }
    }
}

impl GroupMemberRecord<'_> {
    pub(crate) fn member(&self, user: UserId) -> Result<GroupMember, EngineFault> {
        let [nickname, avatar, extra] = self.profile.map(str::to_owned);
        Ok(GroupMember {
            user,
            joined_at: Millis(self.joined_at),
            join_seq: Seq(self.join_seq),
            came_after: Seq(self.came_after),
            inviter: self.inviter.map(user_id).transpose()?,
            muted_until: Millis(self.muted_until),
            profile: MemberProfile { nickname, avatar, extra },
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct RequestRecord<'a> {
    message: &'a str,
    at: u64,
}

impl<'a> From<&'a JoinRequest> for RequestRecord<'a> {
    fn from(request: &'a JoinRequest) -> Self {
        Self { message: &request.message, at: request.at.0 }
    }
}

impl RequestRecord<'_> {
    pub(crate) fn request(&self, group: &GroupId, user: UserId) -> JoinRequest {
        let (message, at) = (self.message.to_owned(), Millis(self.at));
        JoinRequest { group: group.clone(), user, message, at }
    }
}

/// The fields a change set: name, introduction, announcement, avatar, extra; joining; history.
#[derive(Serialize, Deserialize)]
pub(crate) struct GroupChangeRecord<'a>(
    #[serde(borrow)] [Option<&'a str>; 5],
    Option<u8>,
    Option<u8>,
);

impl<'a> From<&'a GroupChange> for GroupChangeRecord<'a> {
    fn from(change: &'a GroupChange) -> Self {
        let GroupChange { name, introduction, announcement, avatar, extra, joining, history } =
            change;
        Self(
            [name, introduction, announcement, avatar, extra].map(Option::as_deref),
            joining.map(joining_number),
            history.map(history_number),
        )
    }
}

impl TryFrom<&GroupChangeRecord<'_>> for GroupChange {
    type Error = EngineFault;

    fn try_from(record: &GroupChangeRecord<'_>) -> Result<Self, EngineFault> {
        let owned = |field: Option<&str>| field.map(str::to_owned);
        let [name, introduction, announcement, avatar, extra] = record.0.map(owned);
        let (joining, history) =
            (record.1.map(joining).transpose()?, record.2.map(history).transpose()?);
        Ok(Self { name, introduction, announcement, avatar, extra, joining, history })
    }
}

fn joining_number(joining: JoinPolicy) -> u8 {
    match joining {
        JoinPolicy::Open => 0,
        JoinPolicy::Approval => 1,
        JoinPolicy::Invite => 2,
    }
}

fn joining(number: u8) -> Result<JoinPolicy, EngineFault> {
    match number {
        0 => Ok(JoinPolicy::Open),
        1 => Ok(JoinPolicy::Approval),
        2 => Ok(JoinPolicy::Invite),
        _ => Err(impossible(Keyspace::Groups, "an unknown way to join")),
    }
}

fn history_number(history: HistoryPolicy) -> u8 {
    match history {
        HistoryPolicy::Joined => 0,
        HistoryPolicy::All => 1,
    }
}

fn history(number: u8) -> Result<HistoryPolicy, EngineFault> {
    match number {
        0 => Ok(HistoryPolicy::Joined),
        1 => Ok(HistoryPolicy::All),
        _ => Err(impossible(Keyspace::Groups, "an unknown history")),
    }
}

pub(crate) fn role_number(role: Role) -> u8 {
    match role {
        Role::Member => 0,
        Role::Admin => 1,
        Role::Owner => 2,
    }
}

pub(crate) fn role(number: u8) -> Result<Role, EngineFault> {
    match number {
        0 => Ok(Role::Member),
        1 => Ok(Role::Admin),
        2 => Ok(Role::Owner),
        _ => Err(impossible(Keyspace::Changes, "an unknown role")),
    }
}
