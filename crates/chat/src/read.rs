//! Acknowledging and reading: cursors, receipts, history.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::chat::Chat;
use crate::command::{Acknowledge, Event, Receipt};
use crate::ids::{ConversationId, Millis, Seq, UserId};
use crate::model::{Caller, CursorKind, Message, Standing};
use crate::policy::read::may_acknowledge;
use crate::reason::{Error, Reason};
use crate::store::{Limit, Moved, Order};

/// Moves the caller's cursor up to a message and tells its sender.
pub async fn acknowledge(chat: &Chat, caller: &Caller, ack: &Acknowledge) -> Result<Moved, Error> {
    let message = chat.store.message(ack.message).await?;
    let standing = match &message {
        Some(message) => chat.store.standing(&caller.user, &message.conversation).await?,
        None => None,
    };
    may_acknowledge(&caller.user, ack, message.as_deref(), standing.as_ref())
        .inspect_err(|reason| log_ack(caller, ack, message.as_deref(), None, Some(*reason)))?;
    let Some(message) = message else { return Err(Reason::MessageNotFound.into()) };
    let moved = chat
        .store
        .advance(&caller.user, &message.conversation, ack.kind, message.seq)
        .await?
        .ok_or(Reason::MessageNotFound)?;
    log_ack(caller, ack, Some(&message), Some(moved), None);
    if has_moved(ack.kind, moved) && message.sender != caller.user {
        chat.bus.publish(Event::Receipt(Receipt {
            kind: ack.kind,
            conversation: message.conversation.clone(),
            by: caller.user.clone(),
            sender: message.sender.clone(),
            message: message.id,
            seq: message.seq,
            at: chat.clock.now(),
            origin: caller.connection,
        }));
    }
    Ok(moved)
}

/// Marks everything up to a place as read, at most to the end, and tells the other person.
pub async fn mark_read(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    seq: Seq,
) -> Result<Moved, Error> {
    let moved = chat
        .store
        .advance(&caller.user, conversation, CursorKind::Read, seq)
        .await?
        .ok_or(Reason::ConversationNotFound)?;
    let read = moved.after.read;
    let peer = conversation.peer_of(&caller.user);
    if let (true, Some(peer)) = (has_moved(CursorKind::Read, moved), peer)
        && let Some(message) = message_at(chat, conversation, read).await?
    {
        chat.bus.publish(Event::Receipt(Receipt {
            kind: CursorKind::Read,
            conversation: conversation.clone(),
            by: caller.user.clone(),
            sender: peer,
            message: message.id,
            seq: read,
            at: chat.clock.now(),
            origin: caller.connection,
        }));
    }
    Ok(moved)
}

async fn message_at(
    chat: &Chat,
    conversation: &ConversationId,
    seq: Seq,
) -> Result<Option<Arc<Message>>, Error> {
    let one = Limit { count: 1, bytes: 0 };
    let found = chat.store.messages(conversation, seq..=seq, one, Order::Ascending).await?;
    Ok(found.into_iter().next())
}

fn has_moved(kind: CursorKind, moved: Moved) -> bool {
    match kind {
        CursorKind::Delivered => moved.after.delivered > moved.before.delivered,
        CursorKind::Read => moved.after.read > moved.before.read,
    }
}

/// The trail of an acknowledgement, in the fields of document 000 §2.4.
fn log_ack(
    caller: &Caller,
    ack: &Acknowledge,
    message: Option<&Message>,
    moved: Option<Moved>,
    refused: Option<Reason>,
) {
    let cursor = |cursors: crate::model::Cursors| match ack.kind {
        CursorKind::Delivered => cursors.delivered.0,
        CursorKind::Read => cursors.read.0,
    };
    tracing::debug!(
        target: "nexo::ack",
        serverMsgId = %ack.message,
        chatType = "SINGLE",
        chatId = message.map(|message| message.conversation.as_str()),
        fromUserId = message.map(|message| message.sender.as_str()),
        ackUserId = %caller.user,
        ackType = ?ack.kind,
        deviceId = %caller.login,
        connId = caller.connection.map(|connection| connection.0),
        prevCursor = moved.map(|moved| cursor(moved.before)),
        newCursor = moved.map(|moved| cursor(moved.after)),
        result = refused.map_or_else(|| "ok".to_owned(), |reason| reason.to_string()),
        "acknowledged",
    );
}

/// A list and whether there is more of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<T> {
    /// The items.
    pub items: Vec<T>,
    /// Whether more follow. Exact at the moment of reading.
    pub has_more: bool,
}

impl<T> Listed<T> {
    /// Cuts a list that was read one longer than wanted.
    pub fn cut(mut items: Vec<T>, limit: usize) -> Self {
        let has_more = items.len() > limit;
        items.truncate(limit);
        Self { items, has_more }
    }
}

/// Messages before a place, newest first, as far as the caller may see.
pub async fn history(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    before: Option<Seq>,
    limit: usize,
) -> Result<Listed<Arc<Message>>, Error> {
    read(chat, caller, conversation, limit, Order::Descending, |standing| {
        let newest = before.map_or(standing.visible_max(), Seq::previous);
        (standing.window.min, newest.min(standing.visible_max()))
    })
    .await
}

/// Messages between two places, both included, oldest first, as far as the caller may see; and the
/// newest place they may see. Whoever was never there finds no conversation.
pub async fn range(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    range: RangeInclusive<Seq>,
    limit: usize,
) -> Result<(Listed<Arc<Message>>, Seq), Error> {
    let max_seq = standing(chat, caller, conversation).await?.visible_max();
    let found = read(chat, caller, conversation, limit, Order::Ascending, |standing| {
        let first = standing.window.min.max(*range.start());
        (first, standing.visible_max().min(*range.end()))
    });
    let found = found.await?;
    // Something may have come between the two looks.
    let max_seq = found.items.last().map_or(max_seq, |message| max_seq.max(message.seq));
    Ok((found, max_seq))
}

/// Where the caller stands in a conversation they are or were in.
pub async fn standing(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
) -> Result<Standing, Error> {
    let standing = chat.store.standing(&caller.user, conversation).await?;
    Ok(standing.ok_or(Reason::ConversationNotFound)?)
}

/// Everything the caller has not read, over all conversations.
pub async fn unread_total(chat: &Chat, caller: &Caller) -> Result<u64, Error> {
    let standings = chat.store.standings(&caller.user, None, usize::MAX).await?;
    Ok(standings.iter().map(Standing::unread).sum())
}

/// Messages after a place, oldest first, as far as the caller may see.
pub async fn since(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    after: Seq,
    limit: usize,
) -> Result<Listed<Arc<Message>>, Error> {
    read(chat, caller, conversation, limit, Order::Ascending, |standing| {
        (standing.window.min.max(after.next()), standing.visible_max())
    })
    .await
}

async fn read(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    limit: usize,
    order: Order,
    range: impl Fn(&Standing) -> (Seq, Seq),
) -> Result<Listed<Arc<Message>>, Error> {
    let Some(standing) = chat.store.standing(&caller.user, conversation).await? else {
        return Ok(Listed { items: Vec::new(), has_more: false });
    };
    let (first, last) = range(&standing);
    let limit = Limit { count: limit, bytes: chat.rules.page_bytes_max };
    let items = chat.store.messages(conversation, first..=last, limit, order).await?;
    // Seqs are dense, so the last one read tells whether the range is done.
    let has_more = items.last().is_some_and(|message| match order {
        Order::Ascending => message.seq < last,
        Order::Descending => message.seq > first,
    });
    Ok(Listed { items, has_more })
}

/// A line of the conversation list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where the caller stands.
    pub standing: Standing,
    /// The other person.
    pub peer: UserId,
    /// How far the other person has read.
    pub peer_read: Seq,
    /// The newest message the caller may see.
    pub last_message: Option<Arc<Message>>,
}

/// The caller's private conversations, the latest first; `before` is the last line of the page
/// before this one.
pub async fn conversations(
    chat: &Chat,
    caller: &Caller,
    before: Option<(Millis, ConversationId)>,
    limit: usize,
) -> Result<Listed<Line>, Error> {
    let mut standings = chat.store.standings(&caller.user, None, usize::MAX).await?;
    standings.sort_by(|a, b| (b.updated_at, &b.conversation).cmp(&(a.updated_at, &a.conversation)));
    if let Some(before) = before {
        standings.retain(|line| (line.updated_at, &line.conversation) < (before.0, &before.1));
    }
    let page = Listed::cut(standings, limit);
    let mut lines = Vec::with_capacity(page.items.len());
    for standing in page.items {
        lines.extend(line(chat, caller, standing).await?);
    }
    Ok(Listed { items: lines, has_more: page.has_more })
}

/// A conversation as a line of the list; `None` if it is not a private one.
pub async fn line(chat: &Chat, caller: &Caller, standing: Standing) -> Result<Option<Line>, Error> {
    let Some(peer) = standing.conversation.peer_of(&caller.user) else { return Ok(None) };
    let last_message = message_at(chat, &standing.conversation, standing.visible_max()).await?;
    let peer_standing = chat.store.standing(&peer, &standing.conversation).await?;
    let peer_read = peer_standing.map_or(Seq::ZERO, |standing| standing.cursors.read);
    Ok(Some(Line { standing, peer, peer_read, last_message }))
}
