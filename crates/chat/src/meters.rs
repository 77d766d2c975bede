//! What is counted and timed about acknowledgements, however they come: over a socket of any dialect
//! or over HTTP. Handles are made once; an acknowledgement only adds.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics::{Counter, Histogram, counter, histogram};

use crate::ids::{ConversationId, Millis, Seq, UserId};
use crate::model::CursorKind;

/// The domain's metrics.
pub(crate) struct Meters {
    delivered: Kind,
    read: Kind,
    revoked: Counter,
    saved_to_delivered: Histogram,
    delivered_to_read: Histogram,
    deliveries: Deliveries,
}

struct Kind {
    ok: Counter,
    repeated: Counter,
    refused: Counter,
}

impl Kind {
    fn new(kind: &'static str) -> Self {
        let of =
            |result: &'static str| counter!("nexo_acks_total", "type" => kind, "result" => result);
        Self { ok: of("ok"), repeated: of("repeated"), refused: of("refused") }
    }
}

impl Default for Meters {
    fn default() -> Self {
        Self {
            delivered: Kind::new("delivered"),
            read: Kind::new("read"),
            revoked: counter!("nexo_acks_total", "type" => "revoked", "result" => "ok"),
            saved_to_delivered: histogram!("nexo_saved_to_delivered_seconds"),
            delivered_to_read: histogram!("nexo_delivered_to_read_seconds"),
            deliveries: Deliveries::default(),
        }
    }
}

/// A cursor that moved, with what its times are taken from.
pub(crate) struct Move<'a> {
    pub(crate) kind: CursorKind,
    pub(crate) user: &'a UserId,
    pub(crate) conversation: &'a ConversationId,
    pub(crate) seq: Seq,
    /// When the message there was saved, if that is known without asking.
    pub(crate) saved_at: Option<Millis>,
}

impl Meters {
    fn kind(&self, kind: CursorKind) -> &Kind {
        match kind {
            CursorKind::Delivered => &self.delivered,
            CursorKind::Read => &self.read,
        }
    }

    /// Somebody acknowledged what they had acknowledged before.
    pub(crate) fn repeated(&self, kind: CursorKind) {
        self.kind(kind).repeated.increment(1);
    }

    /// An acknowledgement was refused.
    pub(crate) fn refused(&self, kind: CursorKind) {
        self.kind(kind).refused.increment(1);
    }

    /// A message was taken back.
    pub(crate) fn revoked(&self) {
        self.revoked.increment(1);
    }

    /// A cursor moved. Between two people it is also timed, by the newest message it reached.
    pub(crate) fn moved(&self, it: &Move<'_>, now: Millis, ticks: Millis) {
        self.kind(it.kind).ok.increment(1);
        if it.conversation.group().is_some() {
            return;
        }
        match it.kind {
            CursorKind::Delivered => {
                if let Some(saved_at) = it.saved_at {
                    let took = Duration::from_millis(now.since(saved_at));
                    self.saved_to_delivered.record(took);
                }
                self.deliveries.note(it.user, it.conversation, it.seq, ticks);
            }
            CursorKind::Read => {
                if let Some(at) = self.deliveries.take(it.user, it.conversation, it.seq) {
                    let took = Duration::from_millis(ticks.since(at));
                    self.delivered_to_read.record(took);
                }
            }
        }
    }
}

/// As many conversations are remembered at least; at most twice as many.
const REMEMBERED: usize = 32_768;

/// When the newest message of a private conversation was delivered here, until it is read. Two
/// generations: when the younger is full, the older is forgotten.
#[derive(Default)]
struct Deliveries {
    keys: RandomState,
    generations: Mutex<Generations>,
}

#[derive(Default)]
struct Generations {
    younger: HashMap<u64, (Seq, Millis)>,
    older: HashMap<u64, (Seq, Millis)>,
}

impl Deliveries {
    fn note(&self, user: &UserId, conversation: &ConversationId, seq: Seq, at: Millis) {
        let key = self.keys.hash_one((user, conversation));
        let mut it = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if it.younger.len() >= REMEMBERED {
            it.older = std::mem::take(&mut it.younger);
        }
        it.younger.insert(key, (seq, at));
    }

    /// When just this message was delivered.
    fn take(&self, user: &UserId, conversation: &ConversationId, seq: Seq) -> Option<Millis> {
        let key = self.keys.hash_one((user, conversation));
        let mut it = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        let younger = it.younger.remove(&key);
        let older = it.older.remove(&key);
        younger.or(older).filter(|(delivered, _)| *delivered == seq).map(|(_, at)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_remembered_until_it_is_read_and_no_longer_than_there_is_room() {
        let deliveries = Deliveries::default();
        let user = |number: usize| UserId::parse(&format!("u{number}")).unwrap();
        let conversation = ConversationId::stored("si_a_b");
        deliveries.note(&user(0), &conversation, Seq(4), Millis(10));
        deliveries.note(&user(0), &conversation, Seq(5), Millis(20));
        assert_eq!(deliveries.take(&user(0), &conversation, Seq(5)), Some(Millis(20)));
        assert_eq!(deliveries.take(&user(0), &conversation, Seq(5)), None, "once");
        for number in 0..3 * REMEMBERED {
            deliveries.note(&user(number), &conversation, Seq(1), Millis(1));
        }
        let it = deliveries.generations.lock().unwrap();
        assert!(it.younger.len() + it.older.len() <= 2 * REMEMBERED);
        drop(it);
        assert_eq!(deliveries.take(&user(0), &conversation, Seq(1)), None, "forgotten");
        assert!(deliveries.take(&user(3 * REMEMBERED - 1), &conversation, Seq(1)).is_some());
    }
}
