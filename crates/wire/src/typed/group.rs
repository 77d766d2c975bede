//! Frames that only groups have.

use nexo_chat::ids::{Millis, UserId};
use nexo_chat::membership::JoinRequest;
use nexo_chat::model::{Change, Message};
use serde::Serialize;
use utoipa::ToSchema;

use super::frame::{Frame, Place, Shown, text};
use crate::changes::{MemberUpdated, Told, Updated};
use crate::{groups, shapes, words};

/// A word that there is a message, without what it says: for groups too large to push it all.
pub fn group_notify(message: &Message, important: bool) -> String {
    let place = Place::of(&message.conversation, &message.sender);
    text(&Frame {
        kind: "GROUP_NOTIFY",
        from: Some(message.sender.as_str()),
        group_id: place.group(),
        conversation_id: Some(message.conversation.as_str()),
        server_msg_id: Some(Shown(&message.id)),
        msg_seq: Some(Shown(&message.seq)),
        important: important.then_some(true),
        ts: message.sent_at.0,
        ..Frame::default()
    })
}

/// What happened to a group or to those in it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Changed<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    event: &'static str,
    from: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group_id: Option<&'a str>,
    conversation_id: &'a str,
    #[schema(value_type = String)]
    change_seq: Shown<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_ids: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    msg_seq: Option<Shown<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<&'a str>,
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
    ts: u64,
}

pub(super) fn changed(change: &Change) -> String {
    let told = Told::from(change);
    let place = Place::of(&change.conversation, &change.by);
    text(&Changed {
        kind: "GROUP_CHANGED",
        event: told.word,
        from: change.by.as_str(),
        group_id: place.group(),
        conversation_id: change.conversation.as_str(),
        change_seq: Shown(&change.seq),
        user_ids: told.users.map(|users| users.iter().map(UserId::as_str).collect()),
        msg_seq: told.from.as_ref().map(|from| Shown(from)),
        user_id: told.user.map(UserId::as_str),
        role: told.role.map(words::role),
        muted_until: told.muted_until.map(|until| until.0),
        on: told.on,
        group: told.group,
        member: told.member,
        ts: change.at.0,
    })
}

pub(super) fn join_request(request: &JoinRequest) -> String {
    let id = groups::request_id(&request.group, &request.user);
    text(&Frame {
        kind: "GROUP_JOIN_REQUEST",
        from: Some(request.user.as_str()),
        group_id: Some(request.group.as_str()),
        server_msg_id: Some(Shown(&id)),
        body: Some(&request.message),
        ts: request.at.0,
        ..Frame::default()
    })
}

pub(super) fn join_decision(
    request: &JoinRequest,
    accepted: bool,
    by: &UserId,
    at: Millis,
) -> String {
    let id = groups::request_id(&request.group, &request.user);
    text(&Frame {
        kind: "GROUP_JOIN_DECISION",
        from: Some(by.as_str()),
        to: Some(request.user.as_str()),
        group_id: Some(request.group.as_str()),
        server_msg_id: Some(Shown(&id)),
        body: Some(if accepted { "ACCEPTED" } else { "REJECTED" }),
        ts: at.0,
        ..Frame::default()
    })
}
