//! A conversation change as wire fields. Every dialect and HTTP render the same `ChangeFields`.

use std::sync::Arc;

use nexo_chat::ids::{MessageId, Millis, Seq, UserId};
use nexo_chat::membership::{GroupChange, MemberProfileChange, Role};
use nexo_chat::model::{Change, ChangeKind};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{enum_values, field_schemas};

/// A change taken apart: its kind as a word, and the fields that this kind has.
#[derive(Default)]
pub(crate) struct ChangeFields<'a> {
    pub(crate) kind: &'static str,
    pub(crate) recall: Option<RecallFields<'a>>,
    /// The members who joined.
    pub(crate) users: Option<&'a [UserId]>,
    /// The first message that they see.
    pub(crate) from: Option<Seq>,
    /// The member whom the change is about.
    pub(crate) user: Option<&'a UserId>,
    pub(crate) role: Option<Role>,
    pub(crate) muted_until: Option<Millis>,
    pub(crate) on: Option<bool>,
    pub(crate) group: Option<GroupUpdate>,
    pub(crate) member: Option<MemberUpdate>,
}

/// The recalled message.
#[derive(Clone, Copy)]
pub(crate) struct RecallFields<'a> {
    pub(crate) message: MessageId,
    pub(crate) seq: Seq,
    pub(crate) sender: &'a UserId,
}

impl<'a> ChangeFields<'a> {
    fn plain(kind: &'static str) -> Self {
        Self { kind, ..Self::default() }
    }

    fn about(kind: &'static str, user: &'a UserId) -> Self {
        Self { user: Some(user), ..Self::plain(kind) }
    }
}

impl<'a> From<&'a Change> for ChangeFields<'a> {
    fn from(change: &'a Change) -> Self {
        match &change.kind {
            ChangeKind::Recalled { message, seq, sender } => {
                let recall = RecallFields { message: *message, seq: *seq, sender };
                Self { recall: Some(recall), ..Self::plain("recalled") }
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
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct GroupUpdate {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) introduction: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) announcement: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) avatar: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) extra: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = field_schemas::join_policy)]
    pub(crate) join_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = field_schemas::history_policy)]
    pub(crate) history: Option<&'static str>,
}

impl From<&GroupChange> for GroupUpdate {
    fn from(change: &GroupChange) -> Self {
        Self {
            name: change.name.clone(),
            introduction: change.introduction.clone(),
            announcement: change.announcement.clone(),
            avatar: change.avatar.clone(),
            extra: change.extra.clone(),
            join_type: change.joining.map(enum_values::join_policy),
            history: change.history.map(enum_values::history_policy),
        }
    }
}

/// How a member wants to be seen in the group: what changed, and only that.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct MemberUpdate {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group_nickname: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group_avatar: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) extra: Option<String>,
}

impl From<&MemberProfileChange> for MemberUpdate {
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
    #[schema(schema_with = field_schemas::role)]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    muted_until: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<GroupUpdate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<MemberUpdate>,
    at: u64,
}

impl From<&Arc<Change>> for ChangeEntity {
    fn from(change: &Arc<Change>) -> Self {
        let fields = ChangeFields::from(&**change);
        let ids = |users: &[UserId]| users.iter().map(ToString::to_string).collect();
        Self {
            conversation_id: change.conversation.to_string(),
            change_seq: change.seq.0,
            kind: fields.kind,
            operator_id: change.by.to_string(),
            server_msg_id: fields.recall.map(|recall| recall.message.to_string()),
            seq: fields.recall.map(|recall| recall.seq.0),
            user_ids: fields.users.map(ids),
            from_seq: fields.from.map(|from| from.0),
            user_id: fields.user.map(ToString::to_string),
            role: fields.role.map(enum_values::role),
            muted_until: fields.muted_until.map(|until| until.0),
            on: fields.on,
            group: fields.group,
            member: fields.member,
            at: change.at.0,
        }
    }
}
