//! The trail of acknowledgements and resends, for whoever has to find out later what became of a
//! message: one line wherever a cursor moves or something is sent again. Never text.

use std::sync::Arc;

use tracing::Level;

use crate::chat::Chat;
use crate::ids::{ConversationId, MessageId, Millis, Seq, UserId};
use crate::meters::Move;
use crate::model::{Caller, CursorKind, Cursors, Draft, Message};
use crate::reason::{Error, Reason};
use crate::store::Moved;

/// What was acknowledged, as far as it is known.
pub(crate) struct Acked<'a> {
    pub(crate) kind: CursorKind,
    pub(crate) message: Option<MessageId>,
    pub(crate) conversation: Option<&'a ConversationId>,
    pub(crate) sender: Option<&'a UserId>,
}

impl<'a> Acked<'a> {
    /// An acknowledgement of this message.
    pub(crate) fn of(kind: CursorKind, id: MessageId, message: Option<&'a Message>) -> Self {
        Self {
            kind,
            message: Some(id),
            conversation: message.map(|message| &message.conversation),
            sender: message.map(|message| &message.sender),
        }
    }
}

/// The message a cursor moved to.
#[derive(Clone, Copy)]
pub(crate) struct Reached<'a> {
    pub(crate) message: MessageId,
    pub(crate) seq: Seq,
    pub(crate) sender: &'a UserId,
    pub(crate) saved_at: Millis,
}

impl<'a> From<&'a Message> for Reached<'a> {
    fn from(it: &'a Message) -> Self {
        Self { message: it.id, seq: it.seq, sender: &it.sender, saved_at: it.sent_at }
    }
}

/// Whether a cursor is further than it was.
pub(crate) fn has_moved(kind: CursorKind, moved: Moved) -> bool {
    cursor(kind, moved.after) > cursor(kind, moved.before)
}

fn cursor(kind: CursorKind, cursors: Cursors) -> Seq {
    match kind {
        CursorKind::Delivered => cursors.delivered,
        CursorKind::Read => cursors.read,
    }
}

/// Counts, times and logs a cursor that was asked to move to a message.
pub(crate) fn advanced(
    chat: &Chat,
    caller: &Caller,
    kind: CursorKind,
    conversation: &ConversationId,
    reached: Option<Reached<'_>>,
    moved: Moved,
) {
    if has_moved(kind, moved) {
        let seq = cursor(kind, moved.after);
        let saved_at = reached.filter(|it| it.seq == seq).map(|it| it.saved_at);
        let it = Move { kind, user: &caller.user, conversation, seq, saved_at };
        chat.meters.moved(&it, chat.clock.now(), chat.clock.ticks());
    } else {
        chat.meters.repeated(kind);
    }
    let acked = Acked {
        kind,
        message: reached.map(|it| it.message),
        conversation: Some(conversation),
        sender: reached.map(|it| it.sender),
    };
    log(&chat.instance, caller, &acked, Some(moved), None);
}

/// A send that will move its sender's own cursor.
pub(crate) struct Sending {
    caller: Caller,
    instance: Arc<str>,
    before: Seq,
}

/// Notes where the sender is, if somebody wants to know.
pub(crate) async fn sending(
    chat: &Chat,
    caller: &Caller,
    draft: &Draft,
) -> Result<Option<Box<Sending>>, Error> {
    if !draft.marks_read || !tracing::enabled!(target: "nexo::ack", Level::DEBUG) {
        return Ok(None);
    }
    let standing = chat.store.standing(&caller.user, &draft.conversation).await?;
    let before = standing.map_or(Seq::ZERO, |standing| standing.cursors.read);
    let (caller, instance) = (caller.clone(), Arc::clone(&chat.instance));
    Ok(Some(Box::new(Sending { caller, instance, before })))
}

impl Sending {
    /// The message is durable: whoever sent it has read it.
    pub(crate) fn saved(&self, message: &Message) {
        let at = |seq| Cursors { delivered: seq, read: seq };
        let moved = Moved { before: at(self.before), after: at(message.seq) };
        let acked = Acked::of(CursorKind::Read, message.id, Some(message));
        log(&self.instance, &self.caller, &acked, Some(moved), None);
    }
}

/// Counts and logs an acknowledgement that was refused.
pub(crate) fn refused(chat: &Chat, caller: &Caller, acked: &Acked<'_>, reason: Reason) {
    chat.meters.refused(acked.kind);
    log(&chat.instance, caller, acked, None, Some(reason));
}

fn log(
    instance: &str,
    caller: &Caller,
    acked: &Acked<'_>,
    moved: Option<Moved>,
    refused: Option<Reason>,
) {
    let cursor = |cursors: Cursors| cursor(acked.kind, cursors).0;
    tracing::debug!(
        target: "nexo::ack",
        serverMsgId = acked.message.map(tracing::field::display),
        chatType = acked.conversation.map(chat_type),
        chatId = acked.conversation.map(ConversationId::as_str),
        fromUserId = acked.sender.map(UserId::as_str),
        ackUserId = %caller.user,
        ackType = ?acked.kind,
        deviceId = %caller.login,
        connId = caller.connection.map(|connection| connection.0),
        instanceId = instance,
        prevCursor = moved.map(|moved| cursor(moved.before)),
        newCursor = moved.map(|moved| cursor(moved.after)),
        result = refused.map_or_else(|| "ok".to_owned(), |reason| reason.to_string()),
        "acknowledged",
    );
}

/// What is sent again of one conversation: from after which place up to which message.
pub(crate) fn resent(chat: &Chat, caller: &Caller, after: Seq, messages: &[&Message]) {
    let Some(last) = messages.last() else { return };
    tracing::debug!(
        target: "nexo::resend",
        serverMsgId = %last.id,
        chatType = chat_type(&last.conversation),
        chatId = last.conversation.as_str(),
        fromUserId = last.sender.as_str(),
        userId = %caller.user,
        deviceId = %caller.login,
        connId = caller.connection.map(|connection| connection.0),
        instanceId = &*chat.instance,
        prevCursor = after.0,
        newCursor = last.seq.0,
        sent = messages.len(),
        "sent again",
    );
}

fn chat_type(conversation: &ConversationId) -> &'static str {
    if conversation.group().is_some() { "GROUP" } else { "SINGLE" }
}
