//! Acknowledgements, receipts and reading history.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::blocks;
use crate::chat::Chat;
use crate::command::Acknowledge;
use crate::cursor_audit::{self, AckTarget, ReachedMessage, has_moved};
use crate::event::{Event, Receipt, ReceiptTo};
use crate::group;
use crate::ids::{ConversationId, GroupId, MessageId, Seq, UserId};
use crate::invariants::is_visible;
use crate::model::{Caller, CursorKind, Cursors, Message, Standing, Window};
use crate::policy::read::may_acknowledge;
use crate::reason::{Error, Reason};
use crate::store::{CursorMove, Limit, Order};

/// Moves the caller's cursor up to a message and publishes a receipt.
pub async fn acknowledge(
    chat: &Chat,
    caller: &Caller,
    ack: &Acknowledge,
) -> Result<CursorMove, Error> {
    let message = chat.store.message_location(ack.message).await?;
    let window = match &message {
        // Both users of a private conversation see all of it.
        Some(message) if message.conversation.peer_of(&caller.user).is_some() => Some(Window::ALL),
        Some(message) => {
            let standing = chat.store.standing(&caller.user, &message.conversation).await?;
            standing.map(|standing| standing.window)
        }
        None => None,
    };
    may_acknowledge(&caller.user, ack, message.as_deref(), window).inspect_err(|reason| {
        let target = AckTarget::of(ack.kind, ack.message, message.as_deref());
        cursor_audit::record_refusal(chat, caller, &target, *reason);
    })?;
    let Some(message) = message else { return Err(Reason::MessageNotFound.into()) };
    let moved = chat
        .store
        .advance_cursor(&caller.user, &message.conversation, ack.kind, message.seq)
        .await?
        .ok_or(Reason::MessageNotFound)?;
    let reached = Some(ReachedMessage::from(&*message));
    cursor_audit::record_move(chat, caller, ack.kind, &message.conversation, reached, moved);
    if has_moved(ack.kind, moved) {
        publish_receipt(chat, caller, ack.kind, &message).await?;
    }
    Ok(moved)
}

/// Publishes that a cursor moved to a message: in a private conversation to the other user; in a small
/// group read receipts go to all members, in a large one only to the reader's own devices. Groups have no
/// delivery receipts.
async fn publish_receipt(
    chat: &Chat,
    caller: &Caller,
    kind: CursorKind,
    message: &Message,
) -> Result<(), Error> {
    let peer = message.conversation.peer_of(&caller.user);
    let sender = peer.unwrap_or_else(|| message.sender.clone());
    let to = match message.conversation.group() {
        // Somebody who is blocked does not learn what was read. Without a read, nothing was shown.
        None if kind == CursorKind::Read
            && blocks::has_blocked(chat, &caller.user, &sender).await? =>
        {
            ReceiptTo::Nobody
        }
        None => ReceiptTo::Sender,
        Some(_) if kind == CursorKind::Delivered => return Ok(()),
        Some(id) => {
            let most = chat.rules.groups.receipts_members_max;
            let group = chat.store.group(&id).await?;
            let is_small = group.is_some_and(|group| group.members <= most);
            let is_member = chat.store.group_member(&id, &caller.user).await?.is_some();
            if is_small && is_member { ReceiptTo::Group } else { ReceiptTo::Nobody }
        }
    };
    chat.bus.publish(Event::Receipt(Receipt {
        kind,
        conversation: message.conversation.clone(),
        by: caller.user.clone(),
        sender,
        message: message.id,
        seq: message.seq,
        at: chat.clock.now(),
        origin: caller.connection,
        to,
    }));
    Ok(())
}

/// Marks everything up to a seq as read, capped at the newest message, and publishes a receipt.
pub async fn mark_read(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    seq: Seq,
) -> Result<CursorMove, Error> {
    let kind = CursorKind::Read;
    let mut moved = chat.store.advance_cursor(&caller.user, conversation, kind, seq).await?;
    // Cursors at zero in private: there may be no message yet, only settings.
    if moved.is_some_and(|it| it.after == Cursors::default()) && conversation.group().is_none() {
        let standing = chat.store.standing(&caller.user, conversation).await?;
        moved = moved.filter(|_| standing.is_some_and(|standing| standing.has_begun()));
    }
    let Some(moved) = moved else {
        let target =
            AckTarget { kind, message: None, conversation: Some(conversation), sender: None };
        cursor_audit::record_refusal(chat, caller, &target, Reason::ConversationNotFound);
        return Err(Reason::ConversationNotFound.into());
    };
    let message = if has_moved(CursorKind::Read, moved) {
        message_at(chat, conversation, moved.after.read).await?
    } else {
        None
    };
    let reached = message.as_deref().map(ReachedMessage::from);
    cursor_audit::record_move(chat, caller, CursorKind::Read, conversation, reached, moved);
    if let Some(message) = message {
        publish_receipt(chat, caller, CursorKind::Read, &message).await?;
    }
    Ok(moved)
}

pub(crate) async fn message_at(
    chat: &Chat,
    conversation: &ConversationId,
    seq: Seq,
) -> Result<Option<Arc<Message>>, Error> {
    let one = Limit { count: 1, bytes: 0 };
    let found = chat.store.messages(conversation, seq..=seq, one, Order::Ascending).await?;
    Ok(found.messages.into_iter().next())
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Whether more follow. Exact at the moment of reading.
    pub has_more: bool,
    /// Of a page of messages: the seqs it covers whose messages cannot be read any more, in its order. The
    /// next page starts behind the last item and the last of these. Almost always empty.
    pub damaged: Vec<RangeInclusive<Seq>>,
}

impl<T> Page<T> {
    pub fn new(items: Vec<T>, has_more: bool) -> Self {
        Self { items, has_more, damaged: Vec::new() }
    }

    /// Builds a page from a list that was read with `limit + 1`.
    pub fn cut(mut items: Vec<T>, limit: usize) -> Self {
        let has_more = items.len() > limit;
        items.truncate(limit);
        Self::new(items, has_more)
    }
}

/// The messages before a seq that the caller may see, newest first.
pub async fn history(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    before: Option<Seq>,
    limit: usize,
) -> Result<Page<Arc<Message>>, Error> {
    read_page(chat, caller, conversation, limit, Order::Descending, |standing| {
        let newest = before.map_or(standing.visible_max(), Seq::previous);
        (standing.window.min, newest.min(standing.visible_max()))
    })
    .await
}

/// The messages in a range that the caller may see, oldest first, and the newest seq they may see. For
/// a caller who never was a member the conversation does not exist.
pub async fn range(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    range: RangeInclusive<Seq>,
    limit: usize,
) -> Result<(Page<Arc<Message>>, Seq), Error> {
    let max_seq = standing(chat, caller, conversation).await?.visible_max();
    let found = read_page(chat, caller, conversation, limit, Order::Ascending, |standing| {
        let first = standing.window.min.max(*range.start());
        (first, standing.visible_max().min(*range.end()))
    });
    let found = found.await?;
    // A message may have arrived between the two reads.
    let max_seq = found.items.last().map_or(max_seq, |message| max_seq.max(message.seq));
    Ok((found, max_seq))
}

/// The caller's standing in a conversation that they are or were a member of. A private conversation without
/// messages is not found, even if the caller has chosen settings for it.
pub async fn standing(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
) -> Result<Standing, Error> {
    let standing = chat.store.standing(&caller.user, conversation).await?;
    Ok(standing.filter(Standing::has_begun).ok_or(Reason::ConversationNotFound)?)
}

/// The sum of unread counts over the caller's listed conversations.
pub async fn unread_total(chat: &Chat, caller: &Caller) -> Result<u64, Error> {
    let standings = chat.store.standings(&caller.user, None, usize::MAX).await?;
    Ok(standings.iter().filter(|it| it.is_listed()).map(Standing::unread).sum())
}

/// The messages after a seq that the caller may see, oldest first.
pub async fn since(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    after: Seq,
    limit: usize,
) -> Result<Page<Arc<Message>>, Error> {
    read_page(chat, caller, conversation, limit, Order::Ascending, |standing| {
        (standing.window.min.max(after.next()), standing.visible_max())
    })
    .await
}

async fn read_page(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    limit: usize,
    order: Order,
    range: impl Fn(&Standing) -> (Seq, Seq),
) -> Result<Page<Arc<Message>>, Error> {
    let Some(standing) = chat.store.standing(&caller.user, conversation).await? else {
        return Ok(Page::new(Vec::new(), false));
    };
    let (first, last) = range(&standing);
    let limit = Limit { count: limit, bytes: chat.rules.page_bytes_max };
    let found = chat.store.messages(conversation, first..=last, limit, order).await?;
    // Seqs are dense, so the end of the page shows whether the range is complete.
    let has_more = found.end(order).is_some_and(|end| match order {
        Order::Ascending => end < last,
        Order::Descending => end > first,
    });
    if found.messages.is_empty() && !found.damaged.is_empty() && !has_more {
        // An empty page would look as if there were nothing.
        return Err(Reason::Damaged.into());
    }
    Ok(Page { items: found.messages, has_more, damaged: found.damaged })
}

/// The visible messages from a seq on that mention the caller or reply to them.
pub async fn mentions(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    from: Seq,
    limit: usize,
) -> Result<Page<Seq>, Error> {
    let standing = standing(chat, caller, conversation).await?;
    let range = standing.window.min.max(from)..=standing.visible_max();
    let found = chat.store.mentions(&caller.user, conversation, range, limit + 1).await?;
    Ok(Page::cut(found, limit))
}

/// The unread count if the caller had read up to a seq.
pub async fn unread_after(
    chat: &Chat,
    caller: &Caller,
    mut standing: Standing,
    read: Seq,
) -> Result<u64, Error> {
    standing.cursors.read = standing.cursors.read.max(read);
    let range = standing.read_up_to().next()..=standing.visible_max();
    standing.own_unread =
        chat.store.sent_without_read(&caller.user, &standing.conversation, range).await?;
    Ok(standing.unread())
}

/// Fails as if the message did not exist, unless the caller may see it.
pub(crate) async fn require_visible(
    chat: &Chat,
    caller: &Caller,
    message: &Message,
) -> Result<(), Error> {
    let standing = chat.store.standing(&caller.user, &message.conversation).await?;
    let standing = standing.filter(|standing| is_visible(standing.window, message.seq));
    standing.ok_or(Reason::MessageNotFound)?;
    Ok(())
}

/// A group member's cursors, limited to what the caller may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberCursors {
    pub user: UserId,
    /// The first message after they joined. Their cursors start there, although they never read what
    /// came before.
    pub from: Seq,
    pub cursors: Cursors,
}

/// The cursors of all members, ordered by user id, for members; `None` if the group is too large for
/// receipts. Cursors are clamped to the caller's window, so that they reveal nothing outside of it.
pub async fn group_cursors(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
) -> Result<Option<Vec<MemberCursors>>, Error> {
    let group = group::group_for_member(chat, caller, id).await?;
    if group.members > chat.rules.groups.receipts_members_max {
        return Ok(None);
    }
    let mine = standing(chat, caller, &id.conversation()).await?;
    let (first, last) = (mine.window.min.previous(), mine.visible_max());
    let within = |seq: Seq| seq.min(last).max(first);
    let most = chat.rules.groups.receipts_members_max as usize;
    let found = chat.store.group_cursors(id, None, most).await?;
    let shown = found.into_iter().map(|(member, Cursors { delivered, read })| MemberCursors {
        user: member.user,
        from: within(member.came_after).next(),
        cursors: Cursors { delivered: within(delivered), read: within(read) },
    });
    Ok(Some(shown.collect()))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageReader {
    pub user: UserId,
    pub has_read: bool,
}

/// One page of a conversation's members, ordered by id, and whether each has read a message. The sender
/// and members who cannot see the message are left out.
pub async fn readers(
    chat: &Chat,
    caller: &Caller,
    id: MessageId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<(Page<MessageReader>, Option<UserId>), Error> {
    let message = chat.store.message(id).await?.ok_or(Reason::MessageNotFound)?;
    let conversation = &message.conversation;
    require_visible(chat, caller, &message).await?;
    let people: Vec<(UserId, Seq)> = if let Some(group) = conversation.group() {
        group::require_member(chat, &group, &caller.user).await?;
        let members = chat.store.group_members(&group, after, limit + 1).await?;
        members.into_iter().map(|member| (member.user, member.came_after)).collect()
    } else {
        let pair = conversation.pair().map_or([None, None], |(a, b)| [Some(a), Some(b)]);
        let rest = pair.into_iter().flatten();
        let rest = rest.filter(|user| after.is_none_or(|after| user > after));
        rest.map(|user| (user, Seq::ZERO)).collect()
    };
    let page = Page::cut(people, limit);
    let last = page.items.last().map(|(user, _)| user.clone()).filter(|_| page.has_more);
    let mut items = Vec::with_capacity(page.items.len());
    // Members who joined later have not read it, even if they may see it.
    let was_there = |(_, after): &(UserId, Seq)| message.seq > *after;
    for (user, _) in page.items.into_iter().filter(was_there) {
        if user == message.sender {
            continue;
        }
        let standing = chat.store.standing(&user, conversation).await?;
        if let Some(standing) = standing.filter(|it| is_visible(it.window, message.seq)) {
            items.push(MessageReader { user, has_read: standing.cursors.read >= message.seq });
        }
    }
    Ok((Page::new(items, page.has_more), last))
}
