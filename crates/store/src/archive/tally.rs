//! The tally of a store: how many items of each kind, and their checksums.
//!
//! A conversation has a checksum over its messages and one over its changes, in their order. The
//! other items come in an order that depends on the engine, so their checksums are added up. The
//! input is what the embedded engine would write: it contains everything, and is the same for every
//! engine.

use std::collections::HashMap;

use nexo_chat::ids::{ConversationId, Seq};

use super::{ArchiveError, Item, ItemKind};
use crate::embedded::encode_item;

/// Half of a BLAKE3 hash.
type Checksum = u128;

/// Differences that are listed one by one; there may be millions.
const DIFFERENCES_MAX: usize = 10;

/// Counts and checksums of a store.
#[derive(Default)]
pub struct Tally {
    counts: HashMap<ItemKind, u64>,
    sums: HashMap<ItemKind, Checksum>,
    messages: Sequences,
    changes: Sequences,
    bytes: Vec<u8>,
}

/// Checksums of items that have a seq.
#[derive(Default)]
struct Sequences {
    done: HashMap<ConversationId, (Seq, Checksum)>,
    open: Option<(ConversationId, Seq, blake3::Hasher)>,
}

impl Tally {
    /// Adds items. A gap in the seqs of a conversation is an error.
    pub(super) fn add(&mut self, items: &[Item]) -> Result<(), ArchiveError> {
        for item in items {
            *self.counts.entry(item.kind()).or_default() += 1;
            self.bytes.clear();
            let encoded = encode_item(item, &mut self.bytes);
            encoded.map_err(|fault| ArchiveError::Damaged(fault.to_string()))?;
            match item {
                Item::Message { message, .. } => {
                    self.messages.add(&message.conversation, message.seq, &self.bytes)?;
                }
                Item::Change(change) => {
                    self.changes.add(&change.conversation, change.seq, &self.bytes)?;
                }
                _ => {
                    let sum = self.sums.entry(item.kind()).or_default();
                    *sum = sum.wrapping_add(checksum(&blake3::hash(&self.bytes)));
                }
            }
        }
        Ok(())
    }

    /// Completes the checksums: no more items come.
    pub(super) fn finish(&mut self) {
        self.messages.close();
        self.changes.close();
    }

    pub fn count(&self, kind: ItemKind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or_default()
    }

    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// How many conversations have messages.
    pub fn conversations(&self) -> usize {
        self.messages.done.len()
    }

    /// Describes in words how another store differs from this one; empty if it does not.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for kind in ItemKind::ALL {
            let (here, there) = (self.count(kind), other.count(kind));
            if here != there {
                found.push(format!("{here} {} were given, {there} are there", kind.name()));
            } else if self.sums.get(&kind) != other.sums.get(&kind) {
                found.push(format!("the {} are not the same", kind.name()));
            }
        }
        let messages = self.messages.differences(&other.messages, "messages");
        let changes = self.changes.differences(&other.changes, "changes");
        let mut listed: Vec<String> = messages.chain(changes).take(DIFFERENCES_MAX + 1).collect();
        if listed.len() > DIFFERENCES_MAX {
            listed[DIFFERENCES_MAX] = "and more conversations".into();
        }
        found.extend(listed);
        found
    }
}

impl Sequences {
    fn add(
        &mut self,
        conversation: &ConversationId,
        seq: Seq,
        bytes: &[u8],
    ) -> Result<(), ArchiveError> {
        if self.open.as_ref().is_none_or(|(open, ..)| open != conversation) {
            self.close();
            if self.done.contains_key(conversation) {
                return Err(ArchiveError::Damaged(format!("{conversation} is there twice")));
            }
            self.open = Some((conversation.clone(), Seq::ZERO, blake3::Hasher::new()));
        }
        let Some((_, last, hasher)) = &mut self.open else { return Ok(()) };
        if seq != last.next() {
            let hole = format!("{conversation} has {seq} after {last}, where there is no hole");
            return Err(ArchiveError::Damaged(hole));
        }
        *last = seq;
        hasher.update(bytes);
        Ok(())
    }

    fn close(&mut self) {
        if let Some((conversation, last, hasher)) = self.open.take() {
            self.done.insert(conversation, (last, checksum(&hasher.finalize())));
        }
    }

    fn differences<'a>(
        &'a self,
        other: &'a Self,
        what: &'a str,
    ) -> impl Iterator<Item = String> + 'a {
        let here = self.done.iter().filter(|(id, sum)| other.done.get(*id) != Some(*sum));
        let there = other.done.keys().filter(|id| !self.done.contains_key(*id));
        let all = here.map(|(id, _)| id).chain(there);
        all.map(move |id| format!("the {what} of {id} are not the same"))
    }
}

fn checksum(hash: &blake3::Hash) -> Checksum {
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_bytes()[..16]);
    u128::from_be_bytes(half)
}

#[cfg(test)]
mod tests {
    use nexo_chat::ids::{ClientMsgId, MessageId, Millis, UserId};
    use nexo_chat::model::{Content, Message};

    use super::*;

    fn seen(user: &str, at: u64) -> Item {
        Item::LastSeen { user: UserId::parse(user).unwrap(), at: Millis(at) }
    }

    fn said(seq: u64, text: &str) -> Item {
        let sender = UserId::parse("a").unwrap();
        let conversation = ConversationId::stored("si_a_b");
        let client_id = ClientMsgId::parse(&seq.to_string()).unwrap();
        let content = Content::text(text.to_owned());
        let fingerprint = content.fingerprint(&conversation);
        let id = MessageId::of(&sender, &client_id);
        let (seq, sent_at, recalled) = (Seq(seq), Millis(1), None);
        let message =
            Message { id, conversation, seq, sender, client_id, sent_at, content, recalled };
        Item::Message { message: Box::new(message), fingerprint }
    }

    fn tally(items: &[Item]) -> Tally {
        let mut tally = Tally::default();
        tally.add(items).unwrap();
        tally.finish();
        tally
    }

    #[test]
    fn the_same_in_another_order_is_the_same() {
        let one = tally(&[seen("a", 1), seen("b", 2), said(1, "x"), said(2, "y")]);
        let other = tally(&[said(1, "x"), said(2, "y"), seen("b", 2), seen("a", 1)]);
        assert_eq!(one.differences(&other), Vec::<String>::new());
        assert_eq!((one.total(), one.conversations()), (4, 1));
    }

    #[test]
    fn every_difference_is_told() {
        let one = tally(&[seen("a", 1), seen("b", 2), said(1, "x"), said(2, "y")]);
        let check = |other: &[Item], expect: &str| {
            let listed = one.differences(&tally(other));
            assert!(listed.iter().any(|listed| listed.contains(expect)), "{listed:?}");
        };
        check(&[seen("a", 2), seen("b", 1), said(1, "x"), said(2, "y")], "last-seen times");
        check(&[seen("a", 1), said(1, "x"), said(2, "y")], "2 last-seen times were given");
        check(&[seen("a", 1), seen("b", 2), said(1, "x"), said(2, "z")], "of si_a_b are");
        check(&[seen("a", 1), seen("b", 2), said(1, "x")], "2 messages were given, 1 are");
    }

    #[test]
    fn a_hole_is_damage() {
        for bad in [vec![said(2, "x")], vec![said(1, "x"), said(3, "y")]] {
            assert!(matches!(Tally::default().add(&bad), Err(ArchiveError::Damaged(_))));
        }
    }
}
