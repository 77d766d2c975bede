//! Frames of groups.

use nexo_chat::ids::{Millis, UserId};
use nexo_chat::membership::JoinRequest;
use nexo_chat::model::{Change, Message};
use serde::Serialize;
use utoipa::ToSchema;

use super::frame::{Addressee, DisplayString, ServerFrame, text};
use crate::changes::{ChangeFields, GroupUpdate, MemberUpdate};
use crate::http::joining;
use crate::{enum_values, field_schemas};

/// Says that there is a message, without its content: for groups too large to push it to every member.
pub fn group_notify(message: &Message, important: bool) -> String {
    let addressee = Addressee::of(&message.conversation, &message.sender);
    text(&ServerFrame {
        kind: "GROUP_NOTIFY",
        from: Some(message.sender.as_str()),
        group_id: addressee.group(),
        conversation_id: Some(message.conversation.as_str()),
        server_msg_id: Some(DisplayString(&message.id)),
        msg_seq: Some(DisplayString(&message.seq)),
        important: important.then_some(true),
        ts: message.sent_at.0,
        ..ServerFrame::default()
    })
}

/// A change of a group or of its members.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupChangedFrame<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    event: &'static str,
    from: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_id: Option<&'a str>,
    conversation_id: &'a str,
    #[schema(value_type = String)]
    change_seq: DisplayString<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_ids: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    msg_seq: Option<DisplayString<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<&'a str>,
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
    ts: u64,
}

pub(super) fn changed(change: &Change, fields: ChangeFields<'_>) -> String {
    let addressee = Addressee::of(&change.conversation, &change.by);
    text(&GroupChangedFrame {
        kind: "GROUP_CHANGED",
        event: fields.kind,
        from: change.by.as_str(),
        group_id: addressee.group(),
        conversation_id: change.conversation.as_str(),
        change_seq: DisplayString(&change.seq),
        user_ids: fields.users.map(|users| users.iter().map(UserId::as_str).collect()),
        msg_seq: fields.from.as_ref().map(|from| DisplayString(from)),
        user_id: fields.user.map(UserId::as_str),
        role: fields.role.map(enum_values::role),
        muted_until: fields.muted_until.map(|until| until.0),
        on: fields.on,
        group: fields.group,
        member: fields.member,
        ts: change.at.0,
    })
}

pub(super) fn join_request(request: &JoinRequest) -> String {
    let id = joining::request_id(&request.group, &request.user);
    text(&ServerFrame {
        kind: "GROUP_JOIN_REQUEST",
        from: Some(request.user.as_str()),
        group_id: Some(request.group.as_str()),
        server_msg_id: Some(DisplayString(&id)),
        body: Some(&request.message),
        ts: request.at.0,
        ..ServerFrame::default()
    })
}

pub(super) fn join_decision(
    request: &JoinRequest,
    accepted: bool,
    by: &UserId,
    at: Millis,
) -> String {
    let id = joining::request_id(&request.group, &request.user);
    text(&ServerFrame {
        kind: "GROUP_JOIN_DECISION",
        from: Some(by.as_str()),
        to: Some(request.user.as_str()),
        group_id: Some(request.group.as_str()),
        server_msg_id: Some(DisplayString(&id)),
        body: Some(if accepted { "ACCEPTED" } else { "REJECTED" }),
        ts: at.0,
        ..ServerFrame::default()
    })
}
