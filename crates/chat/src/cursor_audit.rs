//! The audit log of acknowledgements and resends, for finding out later what became of a message: one line
//! wherever a cursor moves or messages are resent. Never message text.

use std::sync::Arc;

use tracing::Level;

use crate::chat::Chat;
use crate::ids::{ConnectionId, ConversationId, LoginId, MessageId, Millis, Seq, UserId};
use crate::meters::TimedMove;
use crate::model::{Caller, CursorKind, Cursors, Draft, Message};
use crate::progress::Progress;
use crate::reason::{Error, Reason};
use crate::store::CursorMove;

/// The message of an acknowledgement, as far as it is known.
pub(crate) struct AckTarget<'a> {
    pub(crate) kind: CursorKind,
    pub(crate) message: Option<MessageId>,
    pub(crate) conversation: Option<&'a ConversationId>,
    pub(crate) sender: Option<&'a UserId>,
}

impl<'a> AckTarget<'a> {
    pub(crate) fn of(kind: CursorKind, id: MessageId, message: Option<&'a Message>) -> Self {
        Self {
            kind,
            message: Some(id),
            conversation: message.map(|message| &message.conversation),
            sender: message.map(|message| &message.sender),
        }
    }
}

/// The message that a cursor moved to.
#[derive(Clone, Copy)]
pub(crate) struct ReachedMessage<'a> {
    pub(crate) message: MessageId,
    pub(crate) seq: Seq,
    pub(crate) sender: &'a UserId,
    pub(crate) saved_at: Millis,
}

impl<'a> From<&'a Message> for ReachedMessage<'a> {
    fn from(it: &'a Message) -> Self {
        Self { message: it.id, seq: it.seq, sender: &it.sender, saved_at: it.sent_at }
    }
}

/// Whether the move advanced the cursor.
pub(crate) fn has_moved(kind: CursorKind, moved: CursorMove) -> bool {
    cursor(kind, moved.after) > cursor(kind, moved.before)
}

fn cursor(kind: CursorKind, cursors: Cursors) -> Seq {
    match kind {
        CursorKind::Delivered => cursors.delivered,
        CursorKind::Read => cursors.read,
    }
}

/// Counts, times and logs an acknowledgement, whether or not it moved the cursor.
pub(crate) fn record_move(
    chat: &Chat,
    caller: &Caller,
    kind: CursorKind,
    conversation: &ConversationId,
    reached: Option<ReachedMessage<'_>>,
    moved: CursorMove,
) {
    if has_moved(kind, moved) {
        let seq = cursor(kind, moved.after);
        let saved_at = reached.filter(|it| it.seq == seq).map(|it| it.saved_at);
        let it = TimedMove { kind, user: &caller.user, conversation, seq, saved_at };
        chat.meters.record_move(&it, chat.clock.now(), chat.clock.ticks());
    } else {
        chat.meters.count_repeated(kind);
    }
    let target = AckTarget {
        kind,
        message: reached.map(|it| it.message),
        conversation: Some(conversation),
        sender: reached.map(|it| it.sender),
    };
    log(&chat.instance, LogUser::from(caller), &target, Some(moved), None);
}

/// Whether the audit log is enabled.
pub fn is_enabled() -> bool {
    tracing::enabled!(target: "nexo::ack", Level::DEBUG)
}

/// The audit of a send that will move its sender's own cursor.
pub(crate) struct SendAudit {
    caller: Caller,
    instance: Arc<str>,
    before: Cursors,
}

/// Reads the sender's cursor before a send, if the audit log is enabled.
pub(crate) async fn begin_send(
    chat: &Chat,
    caller: &Caller,
    draft: &Draft,
) -> Result<Option<Box<SendAudit>>, Error> {
    if !draft.marks_read || !is_enabled() {
        return Ok(None);
    }
    let standing = chat.store.standing(&caller.user, &draft.conversation).await?;
    let before = standing.map_or_else(Cursors::default, |standing| standing.cursors);
    let (caller, instance) = (caller.clone(), Arc::clone(&chat.instance));
    Ok(Some(Box::new(SendAudit { caller, instance, before })))
}

impl SendAudit {
    /// Logs the cursor move once the message is durable: sending it marked everything before it as read.
    pub(crate) fn log_saved(&self, message: &Message) {
        let target = AckTarget::of(CursorKind::Read, message.id, Some(message));
        let moved = own_send_move(self.before, message.seq);
        log(&self.instance, LogUser::from(&self.caller), &target, Some(moved), None);
    }
}

/// How a member's own message that marks everything before it as read moves their cursors.
fn own_send_move(before: Cursors, seq: Seq) -> CursorMove {
    let mut progress = Progress { cursors: before, ..Progress::default() };
    progress.sent(seq, true);
    CursorMove { before, after: progress.cursors }
}

/// Logs that an accepted message was saved and moved its sender's own cursor. Which device sent it is
/// not known any more. Returns the cursors after the move, unless those before it are unknown.
pub fn log_accepted_saved(
    instance: &str,
    message: &Message,
    before: Option<Cursors>,
) -> Option<Cursors> {
    let target = AckTarget::of(CursorKind::Read, message.id, Some(message));
    let by = LogUser { user: &message.sender, login: None, connection: None };
    let moved = before.map(|before| own_send_move(before, message.seq));
    log(instance, by, &target, moved, None);
    moved.map(|moved| moved.after)
}

/// The user of a log line, and the device as far as it is known.
#[derive(Clone, Copy)]
struct LogUser<'a> {
    user: &'a UserId,
    login: Option<LoginId>,
    connection: Option<ConnectionId>,
}

impl<'a> From<&'a Caller> for LogUser<'a> {
    fn from(caller: &'a Caller) -> Self {
        Self { user: &caller.user, login: Some(caller.login), connection: caller.connection }
    }
}

/// Counts and logs an acknowledgement that was refused.
pub(crate) fn record_refusal(chat: &Chat, caller: &Caller, target: &AckTarget<'_>, reason: Reason) {
    chat.meters.count_refused(target.kind);
    log(&chat.instance, LogUser::from(caller), target, None, Some(reason));
}

fn log(
    instance: &str,
    by: LogUser<'_>,
    target: &AckTarget<'_>,
    moved: Option<CursorMove>,
    refused: Option<Reason>,
) {
    let cursor = |cursors: Cursors| cursor(target.kind, cursors).0;
    tracing::debug!(
        target: "nexo::ack",
        serverMsgId = target.message.map(tracing::field::display),
        chatType = target.conversation.map(chat_type),
        chatId = target.conversation.map(ConversationId::as_str),
        fromUserId = target.sender.map(UserId::as_str),
        ackUserId = %by.user,
        ackType = ?target.kind,
        deviceId = by.login.map(tracing::field::display),
        connId = by.connection.map(|connection| connection.0),
        instanceId = instance,
        prevCursor = moved.map(|moved| cursor(moved.before)),
        newCursor = moved.map(|moved| cursor(moved.after)),
        // Reading moves this cursor too.
        prevDelivered = moved.map(|moved| moved.before.delivered.0),
        newDelivered = moved.map(|moved| moved.after.delivered.0),
        result = refused.map_or_else(|| "ok".to_owned(), |reason| reason.to_string()),
        "acknowledged",
    );
}

/// Logs a resend of one conversation: after which seq, up to which message.
pub(crate) fn log_resend(chat: &Chat, caller: &Caller, after: Seq, messages: &[&Message]) {
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

/// The `chatType` of log lines.
pub fn chat_type(conversation: &ConversationId) -> &'static str {
    if conversation.group().is_some() { "GROUP" } else { "SINGLE" }
}
