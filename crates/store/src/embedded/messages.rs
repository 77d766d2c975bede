//! Messages and changes: appended and recalled through the committer, read from the trees.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, MessageId, Seq, UserId};
use nexo_chat::model::{Change, Draft, Message};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{Actor, Appended, Limit, MayRecall, MessageStore, Order, StoreFuture};

use super::core::Core;
use super::keys::Keyspace;
use super::poison::EngineFault;
use super::recent_messages::FingerprintedMessage;
use super::record::{ChangeRecord, IdRecord, MessageRecord};
use super::{CHANGE_BYTES, Embedded, append, keys, recall, record};
use crate::member_key::MemberKey;
use crate::prepared::Prepared;

impl MessageStore for Embedded {
    fn append(&self, _permit: Permit, draft: Draft) -> StoreFuture<'static, Appended> {
        let prepared = Prepared::new(draft);
        self.submit(prepared.bytes(), |pending| append::append(pending, prepared))
    }

    fn append_run(
        &self,
        _permit: Permit,
        drafts: Vec<Draft>,
    ) -> StoreFuture<'static, Vec<Appended>> {
        let run: Vec<Prepared> = drafts.into_iter().map(Prepared::new).collect();
        let bytes = run.iter().map(Prepared::bytes).sum();
        self.submit(bytes, |pending| {
            run.into_iter().map(|it| append::append(pending, it)).collect()
        })
    }

    fn message(&self, id: MessageId) -> StoreFuture<'_, Option<Arc<Message>>> {
        self.read_now(|core| Ok(find_message(core, id)?.map(|(message, _)| message)))
    }

    fn messages(
        &self,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
        limit: Limit,
        order: Order,
    ) -> StoreFuture<'_, Vec<Arc<Message>>> {
        let conversation = conversation.clone();
        self.read_blocking(move |core| read_messages(core, &conversation, &range, limit, order))
    }

    fn recall(
        &self,
        id: MessageId,
        asker: Actor,
        may: MayRecall,
    ) -> StoreFuture<'_, Result<Arc<Message>, Reason>> {
        self.submit(CHANGE_BYTES, move |pending| recall::recall(pending, id, &asker, &may))
    }

    fn mentions(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Seq>> {
        let member_key = (user.clone(), conversation.clone());
        self.read_blocking(move |core| read_mentions(core, &member_key, &range, limit))
    }

    fn changes(
        &self,
        conversation: &ConversationId,
        after: Seq,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Arc<Change>>> {
        let conversation = conversation.clone();
        self.read_blocking(move |core| read_changes(core, &conversation, after, limit))
    }
}

/// Returns the message with this id, and the fingerprint of the content it was sent with.
pub(crate) fn find_message(
    core: &Core,
    id: MessageId,
) -> Result<Option<FingerprintedMessage>, EngineFault> {
    if let Some(known) = core.recent_messages.get(id) {
        return Ok(Some(known));
    }
    let Some(bytes) = core.engine.get(Keyspace::MessageIds, &id.0)? else { return Ok(None) };
    let location: IdRecord<'_> = record::decode(Keyspace::MessageIds, &id.0, &bytes)?;
    let conversation = ConversationId::stored(location.conversation);
    let key = keys::message(&conversation, Seq(location.seq));
    let message = match core.engine.get(Keyspace::Messages, &key)? {
        Some(bytes) => decode(&conversation, &key, &bytes)?,
        None => return Err(record::impossible(Keyspace::MessageIds, "its message is missing")),
    };
    if message.id != id {
        return Err(record::impossible(Keyspace::MessageIds, "its message is another one"));
    }
    Ok(Some((Arc::new(message), location.fingerprint())))
}

/// Reads a range of a conversation. Everything up to the head must be there, otherwise it is
/// damage: a hole is never served as if it were the history.
fn read_messages(
    core: &Core,
    conversation: &ConversationId,
    range: &RangeInclusive<Seq>,
    limit: Limit,
    order: Order,
) -> Result<Vec<Arc<Message>>, EngineFault> {
    let head = core.heads.get(&core.engine, conversation)?.seq;
    let (from, to) = (Seq(1).max(*range.start()), head.min(*range.end()));
    if from > to || limit.count == 0 {
        return Ok(Vec::new());
    }
    let count = usize::try_from(to.0 - from.0 + 1).unwrap_or(usize::MAX).min(limit.count);
    let keys = keys::messages(conversation, from, to);
    let found = core.engine.scan(Keyspace::Messages, keys, count, order, limit.bytes)?;
    let mut messages: Vec<Arc<Message>> = Vec::with_capacity(found.len());
    let mut left = limit.bytes;
    for (key, value) in found {
        let message = decode(conversation, &key, &value)?;
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
    if messages.len() < count && left > 0 {
        return Err(hole(conversation, messages.len() as u64));
    }
    Ok(messages)
}

fn hole(conversation: &ConversationId, near: u64) -> EngineFault {
    record::impossible(Keyspace::Messages, &format!("a hole in {conversation} near {near}"))
}

fn decode(conversation: &ConversationId, key: &[u8], bytes: &[u8]) -> Result<Message, EngineFault> {
    let seq = keys::seq_of(key).ok_or_else(|| record::impossible(Keyspace::Messages, "no seq"))?;
    record::decode::<MessageRecord<'_>>(Keyspace::Messages, key, bytes)?.message(conversation, seq)
}

/// Reads the seqs of messages by others that mention a member.
fn read_mentions(
    core: &Core,
    member_key: &MemberKey,
    range: &RangeInclusive<Seq>,
    limit: usize,
) -> Result<Vec<Seq>, EngineFault> {
    let (user, conversation) = member_key;
    let mut found = BTreeSet::new();
    for who in [user.as_str(), keys::MENTION_ALL] {
        let mut from = *range.start();
        let mut left = limit;
        // A member's own `@all` messages are skipped, so it may take several scans.
        while left > 0 && from <= *range.end() {
            let keys = keys::message_marks(who, conversation, &(from..=*range.end()));
            let page =
                core.engine.scan(Keyspace::Mentions, keys, limit, Order::Ascending, usize::MAX)?;
            let is_last = page.len() < limit;
            for (key, bytes) in page {
                let sender: &str = record::decode(Keyspace::Mentions, &key, &bytes)?;
                let seq = keys::seq_of(&key)
                    .ok_or_else(|| record::impossible(Keyspace::Mentions, "no seq"))?;
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

/// Reads a page of a conversation's changes. Dense, like its messages: a hole is damage.
fn read_changes(
    core: &Core,
    conversation: &ConversationId,
    after: Seq,
    limit: usize,
) -> Result<Vec<Arc<Change>>, EngineFault> {
    let range = keys::changes_after(conversation, after);
    let found = core.engine.scan(Keyspace::Changes, range, limit, Order::Ascending, usize::MAX)?;
    let mut changes = Vec::with_capacity(found.len());
    for ((key, value), expect) in found.into_iter().zip(after.0.saturating_add(1)..) {
        let seq = keys::seq_of(&key).filter(|seq| seq.0 == expect);
        let seq =
            seq.ok_or_else(|| record::impossible(Keyspace::Changes, "a hole in the changes"))?;
        let record: ChangeRecord<'_> = record::decode(Keyspace::Changes, &key, &value)?;
        changes.push(Arc::new(record.change(conversation, seq)?));
    }
    Ok(changes)
}
