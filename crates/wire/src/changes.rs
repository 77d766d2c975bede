//! What happened to something stored, in the words that frames and HTTP share.

use std::sync::Arc;

use nexo_chat::ids::{MessageId, Millis, Seq, UserId};
use nexo_chat::membership::{GroupChange, MemberProfileChange, Role};
use nexo_chat::model::{Change, ChangeKind};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{shapes, words};

/// A change taken apart: its word, and whatever that kind of change speaks of.
#[derive(Default)]
pub(crate) struct Told<'a> {
    pub(crate) word: &'static str,
    /// The message that was taken back.
    pub(crate) message: Option<MessageId>,
    /// The place of that message.
    pub(crate) seq: Option<Seq>,
    /// Those who came.
    pub(crate) users: Option<&'a [UserId]>,
    /// The first message they see.
    pub(crate) from: Option<Seq>,
    /// The one person it happened to.
    pub(crate) user: Option<&'a UserId>,
    pub(crate) role: Option<Role>,
    pub(crate) muted_until: Option<Millis>,
    pub(crate) on: Option<bool>,
    pub(crate) group: Option<Updated>,
    pub(crate) member: Option<MemberUpdated>,
}

impl<'a> Told<'a> {
    fn plain(word: &'static str) -> Self {
        Self { word, ..Self::default() }
    }

    fn about(word: &'static str, user: &'a UserId) -> Self {
        Self { user: Some(user), ..Self::plain(word) }
    }
}

impl<'a> From<&'a Change> for Told<'a> {
    fn from(change: &'a Change) -> Self {
        match &change.kind {
            ChangeKind::Recalled { message, seq, .. } => {
                Self { message: Some(*message), seq: Some(*seq), ..Self::plain("recalled") }
            }
            ChangeKind::Joined { users, from } => {
                Self { users: Some(users), from: Some(*from), ..Self::plain("joined") }
            }
            ChangeKind::Left => Self::about("left", &change.by),
            ChangeKind::Kicked { user } => Self::about("kicked", user),
            ChangeKind::Role { user, role } => {
                Self { role: Some(*role), ..Self::about("role", user) }
            }
            ChangeKind::Owner { user } => Self::about("owner", user),
            ChangeKind::Updated(group) => {
                Self { group: Some(group.into()), ..Self::plain("updated") }
            }
            ChangeKind::Muted { user, until } => {
                Self { muted_until: Some(*until), ..Self::about("muted", user) }
            }
            ChangeKind::AllMuted { on } => Self { on: Some(*on), ..Self::plain("all_muted") },
            ChangeKind::Dissolved => Self::plain("dissolved"),
            ChangeKind::Dismissed => Self::plain("dismissed"),
            ChangeKind::MemberUpdated(member) => {
                Self { member: Some(member.into()), ..Self::about("member_updated", &change.by) }
            }
        }
    }
}

/// What changed about a group, and only that, in the names one asks for it by.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GroupUpdate)]
pub(crate) struct Updated {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    introduction: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    announcement: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    avatar: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = shapes::joining)]
    join_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = shapes::history)]
    history: Option<&'static str>,
}

impl From<&GroupChange> for Updated {
    fn from(change: &GroupChange) -> Self {
        Self {
            name: change.name.clone(),
            introduction: change.introduction.clone(),
            announcement: change.announcement.clone(),
            avatar: change.avatar.clone(),
            extra: change.extra.clone(),
            join_type: change.joining.map(words::joining),
            history: change.history.map(words::history),
        }
    }
}

/// How a member wants to be seen in the group: what changed, and only that.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MemberUpdate)]
pub(crate) struct MemberUpdated {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group_nickname: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group_avatar: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) extra: Option<String>,
}

impl From<&MemberProfileChange> for MemberUpdated {
    fn from(change: &MemberProfileChange) -> Self {
        let MemberProfileChange { nickname, avatar, extra } = change.clone();
        Self { group_nickname: nickname, group_avatar: avatar, extra }
    }
}

/// A change, as HTTP and the numbered dialect tell it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChangeEntity {
    conversation_id: String,
    change_seq: u64,
    kind: &'static str,
    operator_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_msg_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_ids: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = shapes::role)]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    muted_until: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<Updated>,
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<MemberUpdated>,
    at: u64,
}

impl From<&Arc<Change>> for ChangeEntity {
    fn from(change: &Arc<Change>) -> Self {
        let told = Told::from(&**change);
        let ids = |users: &[UserId]| users.iter().map(ToString::to_string).collect();
        Self {
            conversation_id: change.conversation.to_string(),
            change_seq: change.seq.0,
            kind: told.word,
            operator_id: change.by.to_string(),
            server_msg_id: told.message.map(|message| message.to_string()),
            seq: told.seq.map(|seq| seq.0),
            user_ids: told.users.map(ids),
            from_seq: told.from.map(|from| from.0),
            user_id: told.user.map(ToString::to_string),
            role: told.role.map(words::role),
            muted_until: told.muted_until.map(|until| until.0),
            on: told.on,
            group: told.group,
            member: told.member,
            at: change.at.0,
        }
    }
}
