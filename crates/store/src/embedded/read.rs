//! Reading messages and standings.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use nexo_chat::ids::{ConversationId, MessageId, Seq, UserId};
use nexo_chat::model::{Cursors, Message, Standing, Window};
use nexo_chat::store::{Limit, Order};

use super::core::Core;
use super::cursors::Place;
use super::groups;
use super::keys::{self, Space};
use super::poison::Fault;
use super::recent::Known;
use super::record::{self, IdRecord, MessageRecord};

/// The message with this id and what its content stood for.
pub(crate) fn known(core: &Core, id: MessageId) -> Result<Option<Known>, Fault> {
    if let Some(known) = core.recent.get(id) {
        return Ok(Some(known));
    }
    let Some(bytes) = core.engine.get(Space::Ids, &id.0)? else { return Ok(None) };
    let place: IdRecord<'_> = record::decode(Space::Ids, &id.0, &bytes)?;
    let conversation = ConversationId::stored(place.conversation);
    let key = keys::message(&conversation, Seq(place.seq));
    let message = match core.engine.get(Space::Messages, &key)? {
        Some(bytes) => decode(&conversation, &key, &bytes)?,
        None => return Err(record::impossible(Space::Ids, "its message is missing")),
    };
    if message.id != id {
        return Err(record::impossible(Space::Ids, "its message is another one"));
    }
    Ok(Some((Arc::new(message), place.fingerprint())))
}

/// A range of a conversation. Everything up to the head must be there, else it is damage: a hole
/// is never served as if it were the history.
pub(crate) fn messages(
    core: &Core,
    conversation: &ConversationId,
    range: &RangeInclusive<Seq>,
    limit: Limit,
    order: Order,
) -> Result<Vec<Arc<Message>>, Fault> {
    let head = core.heads.get(&core.engine, conversation)?.seq;
    let (from, to) = (Seq(1).max(*range.start()), head.min(*range.end()));
    if from > to || limit.count == 0 {
        return Ok(Vec::new());
    }
    let count = usize::try_from(to.0 - from.0 + 1).unwrap_or(usize::MAX).min(limit.count);
    let keys = keys::messages(conversation, from, to);
    let found = core.engine.scan(Space::Messages, keys, count, order, limit.bytes)?;
    let mut messages: Vec<Arc<Message>> = Vec::with_capacity(found.len());
    let mut left = limit.bytes;
    for (key, value) in found {
        let message = decode(conversation, &key, &value)?;
        if message.weight() > left && !messages.is_empty() {
            return Ok(messages);
        }
        left = left.saturating_sub(message.weight());
        let place = messages.len() as u64;
        let expect = match order {
            Order::Ascending => from.0 + place,
            Order::Descending => to.0 - place,
        };
        if message.seq.0 != expect {
            return Err(hole(conversation, expect));
        }
        messages.push(Arc::new(message));
    }
    // A message weighs more than its record, so a scan that stopped at the bytes has used them up.
    if messages.len() < count && left > 0 {
        return Err(hole(conversation, messages.len() as u64));
    }
    Ok(messages)
}

fn hole(conversation: &ConversationId, near: u64) -> Fault {
    record::impossible(Space::Messages, &format!("a hole in {conversation} near {near}"))
}

fn decode(conversation: &ConversationId, key: &[u8], bytes: &[u8]) -> Result<Message, Fault> {
    let seq = keys::seq_of(key).ok_or_else(|| record::impossible(Space::Messages, "no seq"))?;
    record::decode::<MessageRecord<'_>>(Space::Messages, key, bytes)?.message(conversation, seq)
}

/// Where a member stands.
pub(crate) fn standing(core: &Core, place: &Place) -> Result<Option<Standing>, Fault> {
    loop {
        let Some(standing) = look(core, place)? else { return Ok(None) };
        // A window that ended while the head was read may not be shown with the newer head, also
        // if another one was opened since.
        let again = core.members.get(&core.engine, place)?;
        if again.is_some_and(|member| member.window == standing.1) {
            return Ok(Some(standing.0));
        }
    }
}

/// A standing, and the member's own window when it was put together.
fn look(core: &Core, place: &Place) -> Result<Option<(Standing, Window)>, Fault> {
    // The cursors first: the head may only grow meanwhile, so no cursor shows beyond it.
    let Some(member) = core.members.get(&core.engine, place)? else { return Ok(None) };
    let group = match place.1.group() {
        Some(group) => groups::get(core, &group)?,
        None => None,
    };
    let ended = group.and_then(|group| group.ended);
    let head = core.heads.get(&core.engine, &place.1)?;
    // Whoever was just read from the disk may be ahead of the head in memory: where a cursor is,
    // there is a message.
    let Cursors { delivered, read } = member.progress.cursors;
    let mut standing = Standing {
        conversation: place.1.clone(),
        window: member.window.until(ended.map(|ended| ended.edge)),
        cursors: member.progress.cursors,
        own_unread: 0,
        settings: member.settings,
        max_seq: head.seq.max(delivered).max(read),
        change_seq: head.change_seq,
        newest_at: head.sent_at,
        has_ended: ended.is_some(),
    };
    if member.progress.quiet > standing.read_from() {
        let above = standing.read_from().next()..=standing.visible_max();
        standing.own_unread = quiet(core, place, &above)?;
    }
    Ok(Some((standing, member.window)))
}

/// How many messages of a range a member sent without marking anything read: the difference of two
/// counts, however many they are.
pub(crate) fn quiet(core: &Core, place: &Place, range: &RangeInclusive<Seq>) -> Result<u64, Fault> {
    let up_to = quiet_up_to(core, place, *range.end())?;
    Ok(up_to.saturating_sub(quiet_up_to(core, place, range.start().previous())?))
}

/// How many there are up to a place.
pub(crate) fn quiet_up_to(core: &Core, place: &Place, seq: Seq) -> Result<u64, Fault> {
    let range = keys::marked_range(place.0.as_str(), &place.1, &(Seq::ZERO..=seq));
    match core.engine.last(Space::Quiet, range)? {
        Some((key, bytes)) => record::decode(Space::Quiet, &key, &bytes),
        None => Ok(0),
    }
}

/// Places of messages that speak to somebody.
pub(crate) fn mentions(
    core: &Core,
    place: &Place,
    range: &RangeInclusive<Seq>,
    limit: usize,
) -> Result<Vec<Seq>, Fault> {
    let (user, conversation) = place;
    let mut found = BTreeSet::new();
    for who in [user.as_str(), keys::EVERYBODY] {
        let mut from = *range.start();
        let mut left = limit;
        // Own words to everybody are passed over, so it may take several looks.
        while left > 0 && from <= *range.end() {
            let keys = keys::marked_range(who, conversation, &(from..=*range.end()));
            let page =
                core.engine.scan(Space::Mentions, keys, limit, Order::Ascending, usize::MAX)?;
            let is_last = page.len() < limit;
            for (key, bytes) in page {
                let sender: &str = record::decode(Space::Mentions, &key, &bytes)?;
                let seq = keys::seq_of(&key)
                    .ok_or_else(|| record::impossible(Space::Mentions, "no seq"))?;
                from = seq.next();
                if sender != user.as_str() && left > 0 {
                    found.insert(seq);
                    left -= 1;
                }
            }
            if is_last {
                break;
            }
        }
    }
    Ok(found.into_iter().take(limit).collect())
}

/// A page of a user's conversations.
pub(crate) fn standings(
    core: &Core,
    user: &UserId,
    after: Option<&ConversationId>,
    limit: usize,
) -> Result<Vec<Standing>, Fault> {
    let range = keys::members_of(user, after);
    let found = core.engine.scan(Space::Members, range, limit, Order::Ascending, usize::MAX)?;
    let mut standings = Vec::with_capacity(found.len());
    for (key, _) in found {
        let conversation = keys::conversation_of(&key, user)
            .ok_or_else(|| record::impossible(Space::Members, "no conversation"))?;
        standings.extend(standing(core, &(user.clone(), conversation))?);
    }
    Ok(standings)
}
