//! The domain's words become text frames.

use std::collections::BTreeMap;
use std::fmt::Display;

use nexo_chat::Reason;
use nexo_chat::command::{Event, Receipt, Saved};
use nexo_chat::ids::{Millis, UserId};
use nexo_chat::model::{Caller, Change, ChangeKind, CursorKind, Message};
use serde::{Serialize, Serializer};

use super::decode::{Echo, kind_name};
use crate::codes;

/// Every field of every frame the server sends; what is absent is left out. Ids and seqs go out as
/// strings, so that no client loses digits.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Frame<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ack_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_msg_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_msg_id: Option<Shown<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    msg_seq: Option<Shown<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    msg_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change_seq: Option<Shown<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Shown<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    has_more: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_expires_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<&'a Limits>,
    ts: u64,
}

/// Something written as the text it shows itself as.
struct Shown<'a>(&'a dyn Display);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

fn text(frame: &Frame<'_>) -> String {
    serde_json::to_string(frame).expect("strings and numbers always serialize")
}

/// What a client must keep to, told in `AUTH_OK`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
    /// The connection ends when nothing is heard for this long: send a PING well before.
    pub idle_timeout_ms: u64,
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
    let message = &saved.message;
    let to = message.conversation.peer_of(&message.sender);
    text(&Frame {
        kind: "ACK",
        ack_type: Some("saved"),
        from: Some(message.sender.as_str()),
        to: to.as_ref().map(UserId::as_str),
        conversation_id: Some(message.conversation.as_str()),
        client_msg_id: Some(message.client_id.as_str()),
        server_msg_id: Some(Shown(&message.id)),
        msg_seq: Some(Shown(&message.seq)),
        body: saved.cleaned.then_some(&*String::from_utf8_lossy(&message.content.body)),
        ts: message.sent_at.0,
        ..Frame::default()
    })
}

/// A message for whoever may see it; the same bytes for all of them.
pub fn message(message: &Message) -> String {
    let to = message.conversation.peer_of(&message.sender);
    let extra = &message.content.extra;
    text(&Frame {
        kind: "SINGLE_CHAT",
        from: Some(message.sender.as_str()),
        to: to.as_ref().map(UserId::as_str),
        conversation_id: Some(message.conversation.as_str()),
        client_msg_id: Some(message.client_id.as_str()),
        server_msg_id: Some(Shown(&message.id)),
        msg_seq: Some(Shown(&message.seq)),
        msg_type: Some(kind_name(message.content.kind)),
        body: Some(&String::from_utf8_lossy(&message.content.body)),
        extra: (!extra.is_empty()).then_some(extra),
        revoked: message.recalled.as_ref().map(|_| true),
        ts: message.sent_at.0,
        ..Frame::default()
    })
}

/// A message is taken back, now or before: the answer to whoever asked.
pub fn revoked(message: &Message, echo: &Echo) -> String {
    let at = message.recalled.as_ref().map_or(message.sent_at, |recall| recall.at);
    text(&Frame {
        kind: "ACK",
        ack_type: Some("revoked"),
        conversation_id: Some(message.conversation.as_str()),
        client_msg_id: echo.client_msg_id.as_deref(),
        server_msg_id: Some(Shown(&message.id)),
        msg_seq: Some(Shown(&message.seq)),
        ts: at.0,
        ..Frame::default()
    })
}

fn change(change: &Change) -> String {
    match &change.kind {
        ChangeKind::Recalled { message, seq, sender } => {
            let to = change.conversation.peer_of(sender);
            text(&Frame {
                kind: "MESSAGE_REVOKED",
                from: Some(change.by.as_str()),
                to: to.as_ref().map(UserId::as_str),
                conversation_id: Some(change.conversation.as_str()),
                server_msg_id: Some(Shown(message)),
                msg_seq: Some(Shown(seq)),
                change_seq: Some(Shown(&change.seq)),
                ts: change.at.0,
                ..Frame::default()
            })
        }
    }
}

fn receipt(receipt: &Receipt) -> String {
    text(&Frame {
        kind: "ACK",
        ack_type: Some(match receipt.kind {
            CursorKind::Delivered => "delivered",
            CursorKind::Read => "read",
        }),
        from: Some(receipt.by.as_str()),
        to: Some(receipt.sender.as_str()),
        conversation_id: Some(receipt.conversation.as_str()),
        server_msg_id: Some(Shown(&receipt.message)),
        msg_seq: Some(Shown(&receipt.seq)),
        ts: receipt.at.0,
        ..Frame::default()
    })
}

/// An event as those hear it who keep their connection; ends have their own frames.
pub fn event(event: &Event) -> Option<String> {
    match event {
        Event::Message { message: it, .. } => Some(message(it)),
        Event::Change { change: it, .. } => Some(change(it)),
        Event::Receipt(it) => Some(receipt(it)),
        Event::Typing { from, to, at } => Some(text(&Frame {
            kind: "TYPING",
            from: Some(from.as_str()),
            to: Some(to.as_str()),
            ts: at.0,
            ..Frame::default()
        })),
        Event::Ended { .. } | Event::Closed { .. } => None,
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
