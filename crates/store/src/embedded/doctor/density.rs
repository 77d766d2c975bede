//! Which seqs of messages and changes are missing: they are dense, so every hole is a loss.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use nexo_chat::ids::{ConversationId, Seq};
use nexo_chat::progress::Progress;

use super::snapshot::Snapshot;
use crate::embedded::keys::{self, Keyspace};
use crate::embedded::record::{self, ChangeRecord, CursorRecord, IdRecord};
use crate::embedded::{lost_ranges, messages};

pub(crate) type LostRanges = BTreeMap<ConversationId, Vec<RangeInclusive<Seq>>>;

/// The greatest seq of each conversation that any record speaks of: its message was stored, whether or not
/// it can be read now. A cursor is only believed if messages may be lost; else it is the cursor that is wrong.
pub(crate) fn known_heads(snapshot: &Snapshot) -> HashMap<ConversationId, Seq> {
    let mut heads: HashMap<ConversationId, Seq> = HashMap::new();
    let mut raise = |conversation: ConversationId, seq: Seq| {
        let head = heads.entry(conversation).or_default();
        *head = seq.max(*head);
    };
    snapshot.for_each(Keyspace::MessageIds, &mut |key, value| {
        if let Ok(at) = record::decode::<IdRecord<'_>>(Keyspace::MessageIds, key, value) {
            raise(ConversationId::stored(at.conversation), Seq(at.seq));
        }
    });
    let may_be_lost = snapshot.is_log_short || !snapshot.gaps(Keyspace::Messages).is_empty();
    snapshot.for_each(Keyspace::Cursors, &mut |key, value| {
        if !may_be_lost {
            return;
        }
        let cursors = record::decode::<CursorRecord>(Keyspace::Cursors, key, value);
        let conversation = keys::split(key).and_then(|(_, rest)| std::str::from_utf8(rest).ok());
        if let (Ok(cursors), Some(conversation)) = (cursors, conversation) {
            let cursors = Progress::from(cursors).cursors;
            raise(ConversationId::stored(conversation), cursors.read.max(cursors.delivered));
        }
    });
    for keyspace in [Keyspace::Mentions, Keyspace::SentWithoutRead] {
        snapshot.for_each(keyspace, &mut |key, _| {
            let place = keys::split(key).and_then(|(_, rest)| place_of(rest));
            if let Some((conversation, seq)) = place {
                raise(conversation, seq);
            }
        });
    }
    heads
}

/// Returns the seqs that cannot be read, up to the known heads and without those that were lost before.
pub(crate) fn lost(
    snapshot: &Snapshot,
    keyspace: Keyspace,
    heads: &HashMap<ConversationId, Seq>,
) -> LostRanges {
    let mut ends: BTreeMap<ConversationId, Seq> = BTreeMap::new();
    let mut lost = LostRanges::new();
    snapshot.for_each(keyspace, &mut |key, value| {
        let Some((conversation, seq)) = place_of(key) else { return };
        if !is_readable(keyspace, &conversation, key, value) {
            return;
        }
        let before = ends.insert(conversation.clone(), seq).unwrap_or_default();
        if seq > before.next() {
            lost.entry(conversation).or_default().push(before.next()..=seq.previous());
        }
    });
    for (conversation, head) in heads {
        let end = ends.get(conversation).copied().unwrap_or_default();
        if *head > end {
            lost.entry(conversation.clone()).or_default().push(end.next()..=*head);
        }
    }
    for (conversation, ranges) in &mut lost {
        let known = lost_ranges::of(&snapshot.core.engine, keyspace, conversation);
        let known = known.unwrap_or_default();
        ranges.retain(|range| !known.contains(range));
    }
    lost.retain(|_, ranges| !ranges.is_empty());
    lost
}

fn is_readable(
    keyspace: Keyspace,
    conversation: &ConversationId,
    key: &[u8],
    value: &[u8],
) -> bool {
    if keyspace == Keyspace::Messages {
        return messages::decode(conversation, key, value).is_ok();
    }
    let record = record::decode::<ChangeRecord<'_>>(keyspace, key, value);
    record.is_ok_and(|record| record.change(conversation, Seq(1)).is_ok())
}

/// Splits a key into a conversation and a seq.
pub(crate) fn place_of(key: &[u8]) -> Option<(ConversationId, Seq)> {
    let (conversation, seq) = keys::split(key)?;
    let seq = Seq(u64::from_be_bytes(seq.try_into().ok()?));
    Some((ConversationId::stored(conversation), seq))
}
