//! The domain's words become text frames.

use nexo_chat::Reason;
use nexo_chat::command::{Event, Receipt, Reply, Saved};
use nexo_chat::ids::{ConversationId, Millis};
use nexo_chat::model::{self, Caller, Change, ChangeKind, CursorKind, Message};
use serde::Serialize;
use utoipa::ToSchema;

use super::decode::kind_name;
use super::frame::{Frame, Place, Shown, text};
use super::{early, group};
use crate::dialect::{Echo, View};
use crate::{codes, mentions, shapes, words};

/// What a client must keep to, told in `AUTH_OK`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
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

/// The token was good.
pub fn auth_ok(caller: &Caller, limits: &Limits, now: Millis) -> String {
    text(&Frame {
        kind: "AUTH_OK",
        from: Some(caller.user.as_str()),
        token_expires_at: Some(caller.expires_at.0),
        limits: Some(limits),
        ts: now.0,
        ..Frame::default()
    })
}

/// The token was not good; the connection ends.
pub fn auth_fail(reason: Reason, now: Millis) -> String {
    refused("AUTH_FAIL", reason, &Echo::default(), now)
}

/// A request was refused.
pub fn refusal(reason: Reason, echo: &Echo, now: Millis) -> String {
    refused("ERROR", reason, echo, now)
}

fn refused(kind: &'static str, reason: Reason, echo: &Echo, now: Millis) -> String {
    text(&Frame {
        kind,
        reason: Some(codes::row(reason).typed),
        message: Some(Shown(&reason)),
        client_msg_id: echo.client_msg_id.as_deref(),
        server_msg_id: echo.server_msg_id.as_ref().map(|id| Shown(id)),
        ts: now.0,
        ..Frame::default()
    })
}

/// A message is durable. The same for every retry: all of it comes from the stored message.
pub fn saved(saved: &Saved) -> String {
    let body = String::from_utf8_lossy(&saved.message.content.body);
    saved_frame(&saved.message, saved.cleaned.then_some(&*body))
}

/// A message is durable; `body` where words of it were replaced.
pub(super) fn saved_frame(message: &Message, body: Option<&str>) -> String {
    let place = Place::of(&message.conversation, &message.sender);
    text(&Frame {
        kind: "ACK",
        ack_type: Some("saved"),
        from: Some(message.sender.as_str()),
        to: place.to(),
        group_id: place.group(),
        conversation_id: Some(message.conversation.as_str()),
        client_msg_id: Some(message.client_id.as_str()),
        server_msg_id: Some(Shown(&message.id)),
        msg_seq: Some(Shown(&message.seq)),
        body,
        ts: message.sent_at.0,
        ..Frame::default()
    })
}

/// A message for whoever may see it; the same bytes for all whom it concerns alike. It is important
/// to those it speaks to in particular.
pub fn message(message: &Message, important: bool) -> String {
    spoken(message, |frame| text(&Frame { important: important.then_some(true), ..frame }))
}

/// The frame of something that was said.
pub(super) fn spoken(message: &Message, then: impl FnOnce(Frame<'_>) -> String) -> String {
    let place = Place::of(&message.conversation, &message.sender);
    let content = &message.content;
    then(Frame {
        kind: if place.group().is_some() { "GROUP_CHAT" } else { "SINGLE_CHAT" },
        from: Some(message.sender.as_str()),
        to: place.to(),
        group_id: place.group(),
        conversation_id: Some(message.conversation.as_str()),
        client_msg_id: Some(message.client_id.as_str()),
        server_msg_id: Some(Shown(&message.id)),
        msg_seq: Some(Shown(&message.seq)),
        msg_type: Some(kind_name(content.kind)),
        body: Some(&String::from_utf8_lossy(&content.body)),
        extra: (!content.extra.is_empty()).then_some(&content.extra),
        mentions: mentions::names(content),
        reply_to_server_msg_id: content.reply_to.as_ref().map(|reply| Shown(&reply.message)),
        revoked: message.recalled.as_ref().map(|_| true),
        ts: message.sent_at.0,
        ..Frame::default()
    })
}

/// A message is taken back, now or before: the answer to whoever asked.
pub fn revoked(message: &Message, echo: &Echo) -> String {
    let at = message.recalled.as_ref().map_or(message.sent_at, |recall| recall.at);
    let place = Place::of(&message.conversation, &message.sender);
    text(&Frame {
        kind: "ACK",
        ack_type: Some("revoked"),
        group_id: place.group(),
        conversation_id: Some(message.conversation.as_str()),
        client_msg_id: echo.client_msg_id.as_deref(),
        server_msg_id: Some(Shown(&message.id)),
        msg_seq: Some(Shown(&message.seq)),
        ts: at.0,
        ..Frame::default()
    })
}

fn change(change: &Change) -> String {
    let ChangeKind::Recalled { message, seq, sender } = &change.kind else {
        return group::changed(change);
    };
    let place = Place::of(&change.conversation, sender);
    text(&Frame {
        kind: "MESSAGE_REVOKED",
        from: Some(change.by.as_str()),
        to: place.to(),
        group_id: place.group(),
        conversation_id: Some(change.conversation.as_str()),
        server_msg_id: Some(Shown(message)),
        msg_seq: Some(Shown(seq)),
        change_seq: Some(Shown(&change.seq)),
        ts: change.at.0,
        ..Frame::default()
    })
}

fn receipt(receipt: &Receipt) -> String {
    let place = Place::of(&receipt.conversation, &receipt.by);
    text(&Frame {
        kind: "ACK",
        ack_type: Some(match receipt.kind {
            CursorKind::Delivered => "delivered",
            CursorKind::Read => "read",
        }),
        from: Some(receipt.by.as_str()),
        to: Some(receipt.sender.as_str()),
        group_id: place.group(),
        conversation_id: Some(receipt.conversation.as_str()),
        server_msg_id: Some(Shown(&receipt.message)),
        msg_seq: Some(Shown(&receipt.seq)),
        ts: receipt.at.0,
        ..Frame::default()
    })
}

/// Somebody chose something for a conversation. It happens at no time worth telling: what counts is
/// what the conversation list says.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Settings<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    conversation_id: &'a str,
    #[schema(schema_with = shapes::receive)]
    receive: &'static str,
    pinned: bool,
    /// Out of the list until there is a message after this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    hidden_seq: Option<Shown<'a>>,
}

fn settings(conversation: &ConversationId, settings: &model::Settings) -> String {
    text(&Settings {
        kind: "CONVERSATION_SETTINGS",
        conversation_id: conversation.as_str(),
        receive: words::receive(settings.receive),
        pinned: settings.pinned,
        hidden_seq: settings.hidden.as_ref().map(|hidden| Shown(&hidden.seq)),
    })
}

/// Somebody has a new name or picture.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserUpdated<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    user_id: &'a str,
    nickname: &'a str,
    avatar: &'a str,
    ts: u64,
}

/// The answer to a command, if there is anything to say.
pub(crate) fn reply(reply: &Reply, echo: &Echo, now: Millis) -> Option<String> {
    match reply {
        Reply::Saved(it) => Some(saved(it)),
        Reply::Accepted(it) => Some(early::accepted(it)),
        Reply::Recalled(it) => Some(revoked(it, echo)),
        Reply::Pong => Some(pong(now)),
        // Said otherwise, or asked for by no frame of this dialect.
        Reply::Quiet | Reply::Authenticated(_) | Reply::Resend(_) | Reply::Found(_) => None,
    }
}

/// An event as those hear it who keep their connection; ends have their own frames.
pub fn event(event: &Event, view: View) -> Option<String> {
    match event {
        Event::Message { message: it, .. } if view.is_notice => {
            Some(group::group_notify(it, view.is_important))
        }
        Event::Message { message: it, .. } => Some(message(it, view.is_important)),
        Event::Preview { message: it, .. } => Some(early::preview(it)),
        Event::Settled { message: it } => Some(early::settled(it)),
        Event::Dropped(it) => Some(early::dropped(it, view.is_own)),
        Event::Change { change: it, .. } => Some(change(it)),
        Event::Receipt(it) => Some(receipt(it)),
        Event::Typing { from, to, at } => {
            let place = Place::from(to);
            Some(text(&Frame {
                kind: "TYPING",
                from: Some(from.as_str()),
                to: place.to(),
                group_id: place.group(),
                ts: at.0,
                ..Frame::default()
            }))
        }
        Event::JoinRequested { request, .. } => Some(group::join_request(request)),
        Event::JoinAnswered { request, accepted, by, at } => {
            Some(group::join_decision(request, *accepted, by, *at))
        }
        Event::Profile { user, nickname, avatar, at, .. } => Some(text(&UserUpdated {
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

/// A page of the resend is complete.
pub fn resend_done(has_more: bool, now: Millis) -> String {
    text(&Frame { kind: "RESEND_DONE", has_more: Some(has_more), ts: now.0, ..Frame::default() })
}

/// Are you there?
pub fn ping(now: Millis) -> String {
    text(&Frame { kind: "PING", ts: now.0, ..Frame::default() })
}

/// I am here.
pub fn pong(now: Millis) -> String {
    text(&Frame { kind: "PONG", ts: now.0, ..Frame::default() })
}
