//! Messages and changes: appended and recalled through the committer, read from the trees.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::ids::{ConversationId, MessageId, Seq, UserId};
use nexo_chat::model::{Change, Draft, Message};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{
    Actor, Appended, Limit, MayRecall, MessagePage, MessageStore, Order, PageRequest, StoreFuture,
};

use super::core::Core;
use super::keys::Keyspace;
use super::poison::EngineFault;
use super::recent_messages::FingerprintedMessage;
use super::record::{ChangeRecord, IdRecord, MessageRecord};
use super::{CHANGE_BYTES, Embedded, append, keys, lost_ranges, message_page, recall, record};
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
            for prepared in &run {
                append::check_readable(pending, prepared)?;
            }
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
    ) -> StoreFuture<'_, MessagePage> {
        let conversation = conversation.clone();
        self.read_blocking(move |core| {
            message_page::read(core, &conversation, &range, limit, order)
        })
    }

    fn message_pages(&self, requests: Vec<PageRequest>) -> StoreFuture<'_, Vec<MessagePage>> {
        self.read_blocking(move |core| {
            let read = |it: PageRequest| {
                message_page::read(core, &it.conversation, &it.range, it.limit, Order::Ascending)
            };
            requests.into_iter().map(read).collect()
        })
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

pub(crate) fn decode(
    conversation: &ConversationId,
    key: &[u8],
    bytes: &[u8],
) -> Result<Message, EngineFault> {
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

/// Reads a page of a conversation's changes. Dense, like its messages: a hole is damage, and the page
/// ends before it.
fn read_changes(
    core: &Core,
    conversation: &ConversationId,
    after: Seq,
    limit: usize,
) -> Result<Vec<Arc<Change>>, EngineFault> {
    let lost = lost_ranges::of(&core.engine, Keyspace::Changes, conversation)?;
    // What is known to be lost is passed: a reader that waited for it would never go on.
    let after = lost.iter().find(|lost| lost.contains(&after.next())).map_or(after, |it| *it.end());
    let range = keys::changes_after(conversation, after);
    let scanned = core.engine.scan(Keyspace::Changes, range, limit, Order::Ascending, usize::MAX);
    let scanned = scanned.and_then(|found| {
        let pairs = found.into_iter().zip(after.0.saturating_add(1)..);
        let read =
            pairs.map(|((key, value), expect)| decode_change(conversation, &key, &value, expect));
        read.collect()
    });
    match scanned {
        Err(fault) if fault.is_damage() => {
            let changes = read_changes_before_damage(core, conversation, after, limit)?;
            if changes.is_empty() { Err(fault) } else { Ok(changes) }
        }
        scanned => scanned,
    }
}

/// Reads changes one by one, up to the first that cannot be read.
fn read_changes_before_damage(
    core: &Core,
    conversation: &ConversationId,
    after: Seq,
    limit: usize,
) -> Result<Vec<Arc<Change>>, EngineFault> {
    let mut changes = Vec::new();
    let last = core.heads.get_readable(core, conversation)?.head.change_seq;
    for seq in (after.0.saturating_add(1)..=last.0).take(limit) {
        let key = keys::message(conversation, Seq(seq));
        let change = match core.engine.get(Keyspace::Changes, &key) {
            Ok(Some(value)) => decode_change(conversation, &key, &value, seq),
            Ok(None) => Err(record::impossible(Keyspace::Changes, "a hole in the changes")),
            Err(fault) => Err(fault),
        };
        match change {
            Ok(change) => changes.push(change),
            Err(fault) => {
                core.pass_damage(fault)?;
                break;
            }
        }
    }
    Ok(changes)
}

fn decode_change(
    conversation: &ConversationId,
    key: &[u8],
    value: &[u8],
    expect: u64,
) -> Result<Arc<Change>, EngineFault> {
    let seq = keys::seq_of(key).filter(|seq| seq.0 == expect);
    let seq = seq.ok_or_else(|| record::impossible(Keyspace::Changes, "a hole in the changes"))?;
    let record: ChangeRecord<'_> = record::decode(Keyspace::Changes, key, value)?;
    Ok(Arc::new(record.change(conversation, seq)?))
}
