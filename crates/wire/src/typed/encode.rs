//! Encodes replies and events as text frames.

use nexo_chat::Reason;
use nexo_chat::command::{Reply, Saved};
use nexo_chat::event::{Event, Receipt};
use nexo_chat::ids::{ConversationId, Millis};
use nexo_chat::model::{Caller, Change, CursorKind, Message, Settings};
use serde::Serialize;
use utoipa::ToSchema;

use super::decode::kind_name;
use super::frame::{Addressee, DisplayString, ServerFrame, text};
use super::{group, two_phase};
use crate::changes::ChangeFields;
use crate::dialect::{Echo, View};
use crate::{codes, enum_values, field_schemas, mentions};

/// What a client must keep to, told in `AUTH_OK`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Limits)]
#[serde(rename_all = "camelCase")]
pub struct ClientLimits {
    /// Bytes of a frame.
    pub frame_bytes_max: usize,
    /// Characters of a text.
    pub text_chars_max: usize,
    /// Frames of a connection per second; zero is no limit.
    pub connection_frames_per_second: u32,
    /// Sends of a user per second; zero is no limit.
    pub user_sends_per_second: u32,
    /// HTTP requests of a user per second; zero is no limit.
    pub user_requests_per_second: u32,
    /// The connection ends when nothing is heard for this long: send a PING well before.
    pub idle_timeout_ms: u64,
    /// Members of a group.
    pub group_members_max: u32,
    /// People one message may mention.
    pub mentions_max: usize,
    /// A sender may recall their message for this long, so clients offer it no longer.
    pub recall_window_ms: u64,
}

pub fn auth_ok(caller: &Caller, limits: &ClientLimits, now: Millis) -> String {
    text(&ServerFrame {
        kind: "AUTH_OK",
        from: Some(caller.user.as_str()),
        token_expires_at: Some(caller.expires_at.0),
        limits: Some(limits),
        ts: now.0,
        ..ServerFrame::default()
    })
}

/// The connection ends after this frame.
pub fn auth_fail(reason: Reason, now: Millis) -> String {
    refused("AUTH_FAIL", reason, &Echo::default(), now)
}

pub fn refusal(reason: Reason, echo: &Echo, now: Millis) -> String {
    refused("ERROR", reason, echo, now)
}

fn refused(kind: &'static str, reason: Reason, echo: &Echo, now: Millis) -> String {
    text(&ServerFrame {
        kind,
        reason: Some(codes::row(reason).typed),
        message: Some(DisplayString(&reason)),
        client_msg_id: echo.client_msg_id.as_deref(),
        server_msg_id: echo.server_msg_id.as_ref().map(|id| DisplayString(id)),
        ts: now.0,
        ..ServerFrame::default()
    })
}

/// The ack of a durable message. Everything comes from the stored message, so a retry gets the same frame.
pub fn saved(saved: &Saved) -> String {
    let body = String::from_utf8_lossy(&saved.message.content.body);
    saved_frame(&saved.message, saved.cleaned.then_some(&*body))
}

/// `body` is set if the word filter replaced words of it.
pub(super) fn saved_frame(message: &Message, body: Option<&str>) -> String {
    let addressee = Addressee::of(&message.conversation, &message.sender);
    text(&ServerFrame {
        kind: "ACK",
        ack_type: Some("saved"),
        from: Some(message.sender.as_str()),
        to: addressee.to(),
        group_id: addressee.group(),
        conversation_id: Some(message.conversation.as_str()),
        client_msg_id: Some(message.client_id.as_str()),
        server_msg_id: Some(DisplayString(&message.id)),
        msg_seq: Some(DisplayString(&message.seq)),
        body,
        ts: message.sent_at.0,
        ..ServerFrame::default()
    })
}

/// A message, with the same bytes for all receivers that agree on `important`: whether it mentions them or replies to
/// them.
pub fn message(message: &Message, important: bool) -> String {
    with_message_frame(message, |frame| {
        text(&ServerFrame { important: important.then_some(true), ..frame })
    })
}

/// Passes the frame of a message to `then`: the frame borrows the body, which lives only here.
pub(super) fn with_message_frame(
    message: &Message,
    then: impl FnOnce(ServerFrame<'_>) -> String,
) -> String {
    let addressee = Addressee::of(&message.conversation, &message.sender);
    let content = &message.content;
    then(ServerFrame {
        kind: if addressee.group().is_some() { "GROUP_CHAT" } else { "SINGLE_CHAT" },
        from: Some(message.sender.as_str()),
        to: addressee.to(),
        group_id: addressee.group(),
        conversation_id: Some(message.conversation.as_str()),
        client_msg_id: Some(message.client_id.as_str()),
        server_msg_id: Some(DisplayString(&message.id)),
        msg_seq: Some(DisplayString(&message.seq)),
        msg_type: Some(kind_name(content.kind)),
        body: Some(&String::from_utf8_lossy(&content.body)),
        extra: (!content.extra.is_empty()).then_some(&content.extra),
        mentions: mentions::mention_names(content),
        reply_to_server_msg_id: content
            .reply_to
            .as_ref()
            .map(|reply| DisplayString(&reply.message)),
        revoked: message.recalled.as_ref().map(|_| true),
        ts: message.sent_at.0,
        ..ServerFrame::default()
    })
}

/// The ack of a recall, also of one that was recalled before.
pub fn recalled(message: &Message, echo: &Echo) -> String {
    let at = message.recalled.as_ref().map_or(message.sent_at, |recall| recall.at);
    let addressee = Addressee::of(&message.conversation, &message.sender);
    text(&ServerFrame {
        kind: "ACK",
        ack_type: Some("revoked"),
        group_id: addressee.group(),
        conversation_id: Some(message.conversation.as_str()),
        client_msg_id: echo.client_msg_id.as_deref(),
        server_msg_id: Some(DisplayString(&message.id)),
        msg_seq: Some(DisplayString(&message.seq)),
        ts: at.0,
        ..ServerFrame::default()
    })
}

fn change(change: &Change) -> String {
    let fields = ChangeFields::from(change);
    let Some(recall) = fields.recall else { return group::changed(change, fields) };
    let addressee = Addressee::of(&change.conversation, recall.sender);
    text(&ServerFrame {
        kind: "MESSAGE_REVOKED",
        from: Some(change.by.as_str()),
        to: addressee.to(),
        group_id: addressee.group(),
        conversation_id: Some(change.conversation.as_str()),
        server_msg_id: Some(DisplayString(&recall.message)),
        msg_seq: Some(DisplayString(&recall.seq)),
        change_seq: Some(DisplayString(&change.seq)),
        ts: change.at.0,
        ..ServerFrame::default()
    })
}

fn receipt(receipt: &Receipt) -> String {
    let addressee = Addressee::of(&receipt.conversation, &receipt.by);
    text(&ServerFrame {
        kind: "ACK",
        ack_type: Some(match receipt.kind {
            CursorKind::Delivered => "delivered",
            CursorKind::Read => "read",
        }),
        from: Some(receipt.by.as_str()),
        to: Some(receipt.sender.as_str()),
        group_id: addressee.group(),
        conversation_id: Some(receipt.conversation.as_str()),
        server_msg_id: Some(DisplayString(&receipt.message)),
        msg_seq: Some(DisplayString(&receipt.seq)),
        ts: receipt.at.0,
        ..ServerFrame::default()
    })
}

/// The caller changed the settings of a conversation. It has no `ts`: clients do not order it against anything.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SettingsFrame<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    conversation_id: &'a str,
    #[schema(schema_with = field_schemas::receive)]
    receive: &'static str,
    pinned: bool,
    /// Out of the list until there is a message after this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    hidden_seq: Option<DisplayString<'a>>,
}

fn settings(conversation: &ConversationId, settings: &Settings) -> String {
    text(&SettingsFrame {
        kind: "CONVERSATION_SETTINGS",
        conversation_id: conversation.as_str(),
        receive: enum_values::receive(settings.receive),
        pinned: settings.pinned,
        hidden_seq: settings.hidden.as_ref().map(|hidden| DisplayString(&hidden.seq)),
    })
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserUpdatedFrame<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    user_id: &'a str,
    nickname: &'a str,
    avatar: &'a str,
    ts: u64,
}

/// `None` for replies that have no frame, or a frame of their own.
pub(crate) fn reply(reply: &Reply, echo: &Echo, now: Millis) -> Option<String> {
    match reply {
        Reply::Saved(it) => Some(saved(it)),
        Reply::Accepted(it) => Some(two_phase::accepted(it)),
        Reply::Recalled(it) => Some(recalled(it, echo)),
        Reply::Pong => Some(pong(now)),
        // Encoded elsewhere, or no frame of this dialect asks for it.
        Reply::Nothing | Reply::Authenticated(_) | Reply::Resend(_) | Reply::QueryReply(_) => None,
    }
}

/// `None` for events that close the connection: those have frames of their own.
pub fn event(event: &Event, view: View) -> Option<String> {
    match event {
        Event::Message { message: it, .. } if view.is_notice => {
            Some(group::group_notify(it, view.is_important))
        }
        Event::Message { message: it, .. } => Some(message(it, view.is_important)),
        Event::Preview { message: it, .. } => Some(two_phase::preview(it)),
        Event::AcceptedSaved { message: it } => Some(two_phase::accepted_saved(it)),
        Event::Dropped(it) => Some(two_phase::dropped(it, view.is_own)),
        Event::Change { change: it, .. } => Some(change(it)),
        Event::Receipt(it) => Some(receipt(it)),
        Event::Typing { from, to, at } => {
            let addressee = Addressee::from(to);
            Some(text(&ServerFrame {
                kind: "TYPING",
                from: Some(from.as_str()),
                to: addressee.to(),
                group_id: addressee.group(),
                ts: at.0,
                ..ServerFrame::default()
            }))
        }
        Event::JoinRequested { request, .. } => Some(group::join_request(request)),
        Event::JoinAnswered { request, accepted, by, at } => {
            Some(group::join_decision(request, *accepted, by, *at))
        }
        Event::Profile { user, nickname, avatar, at, .. } => Some(text(&UserUpdatedFrame {
            kind: "USER_UPDATED",
            user_id: user.as_str(),
            nickname,
            avatar,
            ts: at.0,
        })),
        Event::Settings { conversation, settings: chosen, .. } => {
            Some(settings(conversation, chosen))
        }
        Event::Ended { .. } | Event::Closed { .. } | Event::Online { .. } => None,
    }
}

/// The end of a page of RESEND.
pub fn resend_done(has_more: bool, now: Millis) -> String {
    text(&ServerFrame {
        kind: "RESEND_DONE",
        has_more: Some(has_more),
        ts: now.0,
        ..ServerFrame::default()
    })
}

pub fn ping(now: Millis) -> String {
    text(&ServerFrame { kind: "PING", ts: now.0, ..ServerFrame::default() })
}

pub fn pong(now: Millis) -> String {
    text(&ServerFrame { kind: "PONG", ts: now.0, ..ServerFrame::default() })
}
