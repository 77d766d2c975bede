//! Frames about messages that are not saved yet.

use nexo_chat::command::{Accepted, Dropped};
use nexo_chat::model::Message;

use super::encode::{saved_frame, spoken};
use super::frame::{Frame, Place, Shown, text};
use crate::codes;

/// A message was taken in and will be saved. It has its name, and no place yet.
pub(super) fn accepted(accepted: &Accepted) -> String {
    let place = Place::of(&accepted.conversation, &accepted.sender);
    let cleaned = accepted.cleaned.as_ref().map(|content| String::from_utf8_lossy(&content.body));
    text(&Frame {
        kind: "ACK",
        ack_type: Some("accepted"),
        from: Some(accepted.sender.as_str()),
        to: place.to(),
        group_id: place.group(),
        conversation_id: Some(accepted.conversation.as_str()),
        client_msg_id: Some(accepted.client_id.as_str()),
        server_msg_id: Some(Shown(&accepted.id)),
        body: cleaned.as_deref(),
        ts: accepted.at.0,
        ..Frame::default()
    })
}

/// A message before it is saved: as it will be, without its place.
pub(super) fn preview(message: &Message) -> String {
    spoken(message, |frame| text(&Frame { msg_seq: None, preview: Some(true), ..frame }))
}

/// A message that somebody knows without its place is saved.
pub(super) fn settled(message: &Message) -> String {
    saved_frame(message, None)
}

/// A message that somebody knows was not saved. Its sender is refused what they asked for; others
/// forget what they were shown.
pub(super) fn dropped(dropped: &Dropped, is_own: bool) -> String {
    let reason = Some(codes::row(dropped.reason).typed);
    let place = Place::of(&dropped.conversation, &dropped.sender);
    let frame = Frame {
        reason,
        client_msg_id: Some(dropped.client_id.as_str()),
        server_msg_id: Some(Shown(&dropped.id)),
        ts: dropped.at.0,
        ..Frame::default()
    };
    text(&if is_own {
        Frame { kind: "ERROR", message: Some(Shown(&dropped.reason)), ..frame }
    } else {
        Frame {
            kind: "ACK",
            ack_type: Some("dropped"),
            from: Some(dropped.sender.as_str()),
            to: place.to(),
            conversation_id: Some(dropped.conversation.as_str()),
            ..frame
        }
    })
}
