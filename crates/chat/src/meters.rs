//! Metrics of acknowledgements over sockets and HTTP. The handles are created once, so that an acknowledgement
//! only increments.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics::{Counter, Histogram, counter, histogram};

use crate::ids::{ConversationId, Millis, Seq, UserId};
use crate::model::CursorKind;

pub(crate) struct Meters {
    delivered: AckCounters,
    read: AckCounters,
    recalled: Counter,
    private: AckTimes,
    group: AckTimes,
    deliveries: DeliveryTimes,
}

struct AckCounters {
    ok: Counter,
    repeated: Counter,
    refused: Counter,
}

impl AckCounters {
    fn new(kind: &'static str) -> Self {
        let of =
            |result: &'static str| counter!("nexo_acks_total", "type" => kind, "result" => result);
        Self { ok: of("ok"), repeated: of("repeated"), refused: of("refused") }
    }
}

/// How long messages wait for people, in one type of conversation.
struct AckTimes {
    saved_to_delivered: Histogram,
    delivered_to_read: Histogram,
}

impl AckTimes {
    fn new(chat_type: &'static str) -> Self {
        Self {
            saved_to_delivered: histogram!("nexo_saved_to_delivered_seconds", "chat_type" => chat_type),
            delivered_to_read: histogram!("nexo_delivered_to_read_seconds", "chat_type" => chat_type),
        }
    }
}

impl Default for Meters {
    fn default() -> Self {
        Self {
            delivered: AckCounters::new("delivered"),
            read: AckCounters::new("read"),
            recalled: counter!("nexo_acks_total", "type" => "revoked", "result" => "ok"),
            private: AckTimes::new("single"),
            group: AckTimes::new("group"),
            deliveries: DeliveryTimes::default(),
        }
    }
}

/// A cursor move with what its duration is computed from.
pub(crate) struct TimedMove<'a> {
    pub(crate) kind: CursorKind,
    pub(crate) user: &'a UserId,
    pub(crate) conversation: &'a ConversationId,
    pub(crate) seq: Seq,
    /// When that message was saved, if known without a lookup.
    pub(crate) saved_at: Option<Millis>,
}

impl Meters {
    fn counters(&self, kind: CursorKind) -> &AckCounters {
        match kind {
            CursorKind::Delivered => &self.delivered,
            CursorKind::Read => &self.read,
        }
    }

    /// Counts an acknowledgement that moved nothing.
    pub(crate) fn count_repeated(&self, kind: CursorKind) {
        self.counters(kind).repeated.increment(1);
    }

    pub(crate) fn count_refused(&self, kind: CursorKind) {
        self.counters(kind).refused.increment(1);
    }

    pub(crate) fn count_recall(&self) {
        self.recalled.increment(1);
    }

    /// Counts a cursor move and times it, by the newest message it reached.
    pub(crate) fn record_move(&self, it: &TimedMove<'_>, now: Millis, ticks: Millis) {
        self.counters(it.kind).ok.increment(1);
        let times = if it.conversation.group().is_some() { &self.group } else { &self.private };
        match it.kind {
            CursorKind::Delivered => {
                if let Some(saved_at) = it.saved_at {
                    let took = Duration::from_millis(now.since(saved_at));
                    times.saved_to_delivered.record(took);
                }
                self.deliveries.record(it.user, it.conversation, it.seq, ticks);
            }
            CursorKind::Read => {
                if let Some(at) = self.deliveries.take(it.user, it.conversation, it.seq) {
                    let took = Duration::from_millis(ticks.since(at));
                    times.delivered_to_read.record(took);
                }
            }
        }
    }
}

/// Conversations per generation: between this many and twice as many are remembered.
const GENERATION_MAX: usize = 32_768;

/// When the newest message of a conversation was delivered to a member on this node, until it is read. A
/// bounded cache of two generations: when the younger is full, it replaces the older.
#[derive(Default)]
struct DeliveryTimes {
    hasher: RandomState,
    generations: Mutex<Generations>,
}

#[derive(Default)]
struct Generations {
    younger: HashMap<u64, (Seq, Millis)>,
    older: HashMap<u64, (Seq, Millis)>,
}

impl DeliveryTimes {
    fn record(&self, user: &UserId, conversation: &ConversationId, seq: Seq, at: Millis) {
        let key = self.hasher.hash_one((user, conversation));
        let mut it = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if it.younger.len() >= GENERATION_MAX {
            it.older = std::mem::take(&mut it.younger);
        }
        it.younger.insert(key, (seq, at));
    }

    /// When this message was delivered; `None` if another one was delivered last.
    fn take(&self, user: &UserId, conversation: &ConversationId, seq: Seq) -> Option<Millis> {
        let key = self.hasher.hash_one((user, conversation));
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
        let deliveries = DeliveryTimes::default();
        let user = |number: usize| UserId::parse(&format!("u{number}")).unwrap();
        let conversation = ConversationId::stored("si_a_b");
        deliveries.record(&user(0), &conversation, Seq(4), Millis(10));
        deliveries.record(&user(0), &conversation, Seq(5), Millis(20));
        assert_eq!(deliveries.take(&user(0), &conversation, Seq(5)), Some(Millis(20)));
        assert_eq!(deliveries.take(&user(0), &conversation, Seq(5)), None, "once");
        for number in 0..3 * GENERATION_MAX {
            deliveries.record(&user(number), &conversation, Seq(1), Millis(1));
        }
        let it = deliveries.generations.lock().unwrap();
        assert!(it.younger.len() + it.older.len() <= 2 * GENERATION_MAX);
        drop(it);
        assert_eq!(deliveries.take(&user(0), &conversation, Seq(1)), None, "forgotten");
        assert!(deliveries.take(&user(3 * GENERATION_MAX - 1), &conversation, Seq(1)).is_some());
    }
}
