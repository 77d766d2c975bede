//! Acknowledging and reading: cursors, receipts, history.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::chat::Chat;
use crate::command::{Acknowledge, Event, Receipt, ReceiptTo};
use crate::group;
use crate::ids::{ConversationId, GroupId, MessageId, Seq, UserId};
use crate::invariants::visible;
use crate::model::{Caller, CursorKind, Cursors, Message, Standing};
use crate::policy::read::may_acknowledge;
use crate::reason::{Error, Reason};
use crate::store::{Limit, Moved, Order};
use crate::trail::{self, Acked, Reached, has_moved};

/// Moves the caller's cursor up to a message and tells its sender.
pub async fn acknowledge(chat: &Chat, caller: &Caller, ack: &Acknowledge) -> Result<Moved, Error> {
    let message = chat.store.message_or_before(ack.message).await?;
    let standing = match &message {
        Some(message) => chat.store.standing(&caller.user, &message.conversation).await?,
        None => None,
    };
    may_acknowledge(&caller.user, ack, message.as_deref(), standing.as_ref()).inspect_err(
        |reason| {
            let acked = Acked::of(ack.kind, ack.message, message.as_deref());
            trail::refused(chat, caller, &acked, *reason);
        },
    )?;
    let Some(message) = message else { return Err(Reason::MessageNotFound.into()) };
    let moved = chat
        .store
        .advance(&caller.user, &message.conversation, ack.kind, message.seq)
        .await?
        .ok_or(Reason::MessageNotFound)?;
    let reached = Some(Reached::from(&*message));
    trail::advanced(chat, caller, ack.kind, &message.conversation, reached, moved);
    if has_moved(ack.kind, moved) {
        tell(chat, caller, ack.kind, &message).await?;
    }
    Ok(moved)
}

/// Tells of a cursor that moved to a message: between two people the other one, in a group of a
/// reading everybody if it is small. What nobody else hears, the reader's own devices do.
async fn tell(
    chat: &Chat,
    caller: &Caller,
    kind: CursorKind,
    message: &Message,
) -> Result<(), Error> {
    let peer = message.conversation.peer_of(&caller.user);
    let sender = peer.unwrap_or_else(|| message.sender.clone());
    let to = match message.conversation.group() {
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

/// Marks everything up to a place as read, at most to the end, and tells whom it concerns.
pub async fn mark_read(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    seq: Seq,
) -> Result<Moved, Error> {
    let kind = CursorKind::Read;
    let Some(moved) = chat.store.advance(&caller.user, conversation, kind, seq).await? else {
        let acked = Acked { kind, message: None, conversation: Some(conversation), sender: None };
        trail::refused(chat, caller, &acked, Reason::ConversationNotFound);
        return Err(Reason::ConversationNotFound.into());
    };
    let message = if has_moved(CursorKind::Read, moved) {
        message_at(chat, conversation, moved.after.read).await?
    } else {
        None
    };
    let reached = message.as_deref().map(Reached::from);
    trail::advanced(chat, caller, CursorKind::Read, conversation, reached, moved);
    if let Some(message) = message {
        tell(chat, caller, CursorKind::Read, &message).await?;
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
    Ok(found.into_iter().next())
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

/// Everything the caller has not read, over the conversations of their list.
pub async fn unread_total(chat: &Chat, caller: &Caller) -> Result<u64, Error> {
    let standings = chat.store.standings(&caller.user, None, usize::MAX).await?;
    Ok(standings.iter().filter(|it| it.is_listed()).map(Standing::unread).sum())
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

/// Places from one on whose messages speak to the caller in particular, as far as they may see.
pub async fn mentions(
    chat: &Chat,
    caller: &Caller,
    conversation: &ConversationId,
    from: Seq,
    limit: usize,
) -> Result<Listed<Seq>, Error> {
    let standing = standing(chat, caller, conversation).await?;
    let range = standing.window.min.max(from)..=standing.visible_max();
    let found = chat.store.mentions(&caller.user, conversation, range, limit + 1).await?;
    Ok(Listed::cut(found, limit))
}

/// How many messages would be unread if the caller had read up to a place.
pub async fn unread_from(
    chat: &Chat,
    caller: &Caller,
    mut standing: Standing,
    read: Seq,
) -> Result<u64, Error> {
    standing.cursors.read = standing.cursors.read.max(read);
    let range = standing.read_from().next()..=standing.visible_max();
    standing.own_unread = chat.store.quiet(&caller.user, &standing.conversation, range).await?;
    Ok(standing.unread())
}

/// Whether the caller may see a message; to whoever may not there is none.
pub(crate) async fn visible_to(
    chat: &Chat,
    caller: &Caller,
    message: &Message,
) -> Result<(), Error> {
    let standing = chat.store.standing(&caller.user, &message.conversation).await?;
    let standing = standing.filter(|standing| visible(standing.window, message.seq));
    standing.ok_or(Reason::MessageNotFound)?;
    Ok(())
}

/// How far somebody in a group has come, as far as the asker may know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberCursors {
    /// Who.
    pub user: UserId,
    /// The first message they were there for. Their cursors begin behind what was said before,
    /// which they have not read.
    pub from: Seq,
    /// How far they have received and read.
    pub cursors: Cursors,
}

/// How far everybody in a group has come, by their ids, for members; `None` if the group is so
/// large that nobody is told of receipts either. What is outside of what the asker may see is
/// not told: a cursor before it is at its beginning.
pub async fn group_cursors(
    chat: &Chat,
    caller: &Caller,
    id: &GroupId,
) -> Result<Option<Vec<MemberCursors>>, Error> {
    let group = group::for_members(chat, caller, id).await?;
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

/// Somebody who could read a message, and whether they did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Who.
    pub user: UserId,
    /// Whether they did.
    pub has_read: bool,
}

/// Who of a page of the people in a message's conversation has read it, by their ids. The sender is
/// left out, and so is whoever cannot see it.
pub async fn readers(
    chat: &Chat,
    caller: &Caller,
    id: MessageId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<(Listed<Reader>, Option<UserId>), Error> {
    let message = chat.store.message(id).await?.ok_or(Reason::MessageNotFound)?;
    let conversation = &message.conversation;
    visible_to(chat, caller, &message).await?;
    let people: Vec<(UserId, Seq)> = if let Some(group) = conversation.group() {
        group::must_be_in(chat, &group, &caller.user).await?;
        let members = chat.store.group_members(&group, after, limit + 1).await?;
        members.into_iter().map(|member| (member.user, member.came_after)).collect()
    } else {
        let pair = conversation.pair().map_or([None, None], |(a, b)| [Some(a), Some(b)]);
        let rest = pair.into_iter().flatten();
        let rest = rest.filter(|user| after.is_none_or(|after| user > after));
        rest.map(|user| (user, Seq::ZERO)).collect()
    };
    let page = Listed::cut(people, limit);
    let last = page.items.last().map(|(user, _)| user.clone()).filter(|_| page.has_more);
    let mut items = Vec::with_capacity(page.items.len());
    // Whoever came later has not read it, even if they may see it.
    let was_there = |(_, after): &(UserId, Seq)| message.seq > *after;
    for (user, _) in page.items.into_iter().filter(was_there) {
        if user == message.sender {
            continue;
        }
        let standing = chat.store.standing(&user, conversation).await?;
        if let Some(standing) = standing.filter(|it| visible(it.window, message.seq)) {
            items.push(Reader { user, has_read: standing.cursors.read >= message.seq });
        }
    }
    Ok((Listed { items, has_more: page.has_more }, last))
}
