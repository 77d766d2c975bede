//! Frames of two-phase acknowledgement: messages that are accepted and not saved yet.

use nexo_chat::command::Accepted;
use nexo_chat::event::Dropped;
use nexo_chat::model::Message;

use super::encode::{saved_frame, with_message_frame};
use super::frame::{Addressee, DisplayString, ServerFrame, text};
use crate::codes;

/// The message is accepted and will be saved. It has its id, and no seq yet.
pub(super) fn accepted(accepted: &Accepted) -> String {
    let addressee = Addressee::of(&accepted.conversation, &accepted.sender);
    let cleaned = accepted.cleaned.as_ref().map(|content| String::from_utf8_lossy(&content.body));
    text(&ServerFrame {
        kind: "ACK",
        ack_type: Some("accepted"),
        from: Some(accepted.sender.as_str()),
        to: addressee.to(),
        group_id: addressee.group(),
        conversation_id: Some(accepted.conversation.as_str()),
        client_msg_id: Some(accepted.client_id.as_str()),
        server_msg_id: Some(DisplayString(&accepted.id)),
        body: cleaned.as_deref(),
        ts: accepted.at.0,
        ..ServerFrame::default()
    })
}

/// The message before it is saved: without its seq.
pub(super) fn preview(message: &Message) -> String {
    with_message_frame(message, |frame| {
        text(&ServerFrame { msg_seq: None, preview: Some(true), ..frame })
    })
}

/// Gives the seq to a client that has the preview or the accepted ack.
pub(super) fn accepted_saved(message: &Message) -> String {
    saved_frame(message, None)
}

/// The message was not saved: an error for its sender; receivers of the preview drop it.
pub(super) fn dropped(dropped: &Dropped, is_own: bool) -> String {
    let reason = Some(codes::row(dropped.reason).typed);
    let addressee = Addressee::of(&dropped.conversation, &dropped.sender);
    let frame = ServerFrame {
        reason,
        client_msg_id: Some(dropped.client_id.as_str()),
        server_msg_id: Some(DisplayString(&dropped.id)),
        ts: dropped.at.0,
        ..ServerFrame::default()
    };
    text(&if is_own {
        ServerFrame { kind: "ERROR", message: Some(DisplayString(&dropped.reason)), ..frame }
    } else {
        ServerFrame {
            kind: "ACK",
            ack_type: Some("dropped"),
            from: Some(dropped.sender.as_str()),
            to: addressee.to(),
            conversation_id: Some(dropped.conversation.as_str()),
            ..frame
        }
    })
}
