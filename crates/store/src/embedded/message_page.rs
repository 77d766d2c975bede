//! Reads a page of messages, around what is damaged.

use std::ops::RangeInclusive;
use std::sync::Arc;

use nexo_chat::ids::{ConversationId, Seq};
use nexo_chat::model::Message;
use nexo_chat::store::{Limit, MessagePage, Order};

use super::core::Core;
use super::heads::ReadableHead;
use super::keys::{self, Keyspace};
use super::lost_ranges;
use super::messages;
use super::poison::EngineFault;
use super::record;

/// Reads a range of a conversation. Everything up to the head must be there, otherwise it is damage: a
/// hole is never served as if it were the history.
pub(crate) fn read(
    core: &Core,
    conversation: &ConversationId,
    range: &RangeInclusive<Seq>,
    limit: Limit,
    order: Order,
) -> Result<MessagePage, EngineFault> {
    let ReadableHead { head, is_damaged } = core.heads.get_readable(core, conversation)?;
    let (from, to) = (Seq(1).max(*range.start()), head.seq.min(*range.end()));
    let mut page = MessagePage::default();
    if limit.count == 0 || from > *range.end() {
        return Ok(page);
    }
    let lost = (is_damaged && *range.end() > head.seq).then(|| lost_tail(from, head.seq, range));
    if let (Some(lost), Order::Descending) = (&lost, order) {
        page.damaged.push(lost.clone());
    }
    if from <= to {
        let count = usize::try_from(to.0 - from.0 + 1).unwrap_or(usize::MAX).min(limit.count);
        match scan(core, conversation, from..=to, Limit { count, ..limit }, order) {
            Ok(found) => page.messages = found,
            Err(fault) => {
                let lost = lost_ranges::of(&core.engine, Keyspace::Messages, conversation)?;
                if lost.is_empty() || !fault.is_damage() {
                    core.pass_damage(fault)?;
                }
                let reader = OneByOne { core, conversation, lost, order };
                reader.read(from..=to, Limit { count, ..limit }, &mut page)?;
            }
        }
    }
    if let (Some(lost), Order::Ascending) = (lost, order)
        && page.end(order).is_none_or(|end| end.next() >= *lost.start())
    {
        page.damaged.push(lost);
    }
    Ok(page)
}

/// The seqs behind the last readable one of a conversation whose end is damaged: as far as was asked, or at
/// least one.
fn lost_tail(from: Seq, head: Seq, range: &RangeInclusive<Seq>) -> RangeInclusive<Seq> {
    let first = head.next().max(from);
    let last = if *range.end() == Seq(u64::MAX) { first } else { *range.end() };
    first..=last
}

/// Reads messages in one scan; any damage is a fault.
fn scan(
    core: &Core,
    conversation: &ConversationId,
    range: RangeInclusive<Seq>,
    limit: Limit,
    order: Order,
) -> Result<Vec<Arc<Message>>, EngineFault> {
    let (from, to) = (*range.start(), *range.end());
    let keys = keys::messages(conversation, from, to);
    let found = core.engine.scan(Keyspace::Messages, keys, limit.count, order, limit.bytes)?;
    let mut messages: Vec<Arc<Message>> = Vec::with_capacity(found.len());
    let mut left = limit.bytes;
    for (key, value) in found {
        let message = messages::decode(conversation, &key, &value)?;
        if message.weight() > left && !messages.is_empty() {
            return Ok(messages);
        }
        left = left.saturating_sub(message.weight());
        let offset = messages.len() as u64;
        let expect = match order {
            Order::Ascending => from.0 + offset,
            Order::Descending => to.0 - offset,
        };
        if message.seq.0 != expect {
            return Err(hole(conversation, expect));
        }
        messages.push(Arc::new(message));
    }
    // A message weighs more than its record, so a scan that stopped at the byte limit leaves none.
    if messages.len() < limit.count && left > 0 {
        return Err(hole(conversation, messages.len() as u64));
    }
    Ok(messages)
}

/// Reads messages key by key, and lists the seqs that cannot be read. A scan cannot go on behind a damaged
/// block, and keys are known because seqs are dense.
struct OneByOne<'a> {
    core: &'a Core,
    conversation: &'a ConversationId,
    /// Seqs that are known to be missing.
    lost: Vec<RangeInclusive<Seq>>,
    order: Order,
}

impl OneByOne<'_> {
    fn read(
        &self,
        range: RangeInclusive<Seq>,
        limit: Limit,
        page: &mut MessagePage,
    ) -> Result<(), EngineFault> {
        let mut left = limit.bytes;
        for offset in 0..limit.count as u64 {
            let seq = match self.order {
                Order::Ascending => Seq(range.start().0 + offset),
                Order::Descending => Seq(range.end().0 - offset),
            };
            match self.message(seq)? {
                Some(message) if message.weight() > left && !page.messages.is_empty() => break,
                Some(message) => {
                    left = left.saturating_sub(message.weight());
                    page.messages.push(Arc::new(message));
                }
                None => add_damaged(&mut page.damaged, seq, self.order),
            }
        }
        Ok(())
    }

    /// Returns the message, or `None` if it cannot be read.
    fn message(&self, seq: Seq) -> Result<Option<Message>, EngineFault> {
        let key = keys::message(self.conversation, seq);
        let read = match self.core.engine.get(Keyspace::Messages, &key) {
            Ok(Some(value)) => messages::decode(self.conversation, &key, &value),
            Ok(None) if self.lost.iter().any(|lost| lost.contains(&seq)) => return Ok(None),
            Ok(None) => Err(hole(self.conversation, seq.0)),
            Err(fault) => Err(fault),
        };
        match read {
            Ok(message) => Ok(Some(message)),
            Err(fault) => self.core.pass_damage(fault).map(|()| None),
        }
    }
}

/// Adds a seq to the last range if it is next to it, else as a new range.
fn add_damaged(damaged: &mut Vec<RangeInclusive<Seq>>, seq: Seq, order: Order) {
    match (damaged.last_mut(), order) {
        (Some(last), Order::Ascending) if last.end().next() == seq => *last = *last.start()..=seq,
        (Some(last), Order::Descending) if seq.next() == *last.start() => *last = seq..=*last.end(),
        _ => damaged.push(seq..=seq),
    }
}

fn hole(conversation: &ConversationId, near: u64) -> EngineFault {
    record::impossible(Keyspace::Messages, &format!("a hole in {conversation} near {near}"))
}
