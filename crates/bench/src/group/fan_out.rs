//! What all members of a group share about each message: when it was due, and how many members have
//! received it. Only messages in flight are kept; all counters are atomic, so members do not block each other.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Messages one sender may have in flight.
pub(crate) const IN_FLIGHT_MAX: u64 = 4096;

/// The tracker of one phase. A message is identified by its `index`: its number among its sender's
/// messages, times the senders, plus the sender.
#[derive(Debug)]
pub(crate) struct FanOutTracker {
    senders: Box<[SenderProgress]>,
    /// How many members receive a message.
    audience: u64,
    /// The number of each sender's first message in this phase.
    first: u64,
    /// Hashes of the server's ids. Two messages have the same hash by chance once in 10⁸ runs.
    ids: Mutex<HashSet<u64>>,
    hasher: RandomState,
}

/// One sender's messages.
#[derive(Debug)]
struct SenderProgress {
    in_flight: Box<[Slot]>,
    sent: AtomicU64,
    /// Messages that all members have received.
    complete: AtomicU64,
    saved: AtomicU64,
    /// 1 once the sender waits for no answer any more.
    settled: AtomicU64,
}

#[derive(Debug, Default)]
struct Slot {
    number: AtomicU64,
    due: AtomicU64,
    id: AtomicU64,
    receivers: AtomicU64,
}

/// What recording a push returned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RecordedPush {
    /// When the message was due; `None` if it is no longer tracked.
    pub(crate) due: Option<u64>,
    /// Whether this was the last member to receive it.
    pub(crate) is_last: bool,
    /// Whether every push of the message had this id, and no other message has it.
    pub(crate) is_id_right: bool,
}

impl FanOutTracker {
    /// `audience` members receive each message; numbers begin at `first`.
    pub(crate) fn new(senders: usize, audience: usize, first: u64) -> Self {
        let slot = || Slot { number: AtomicU64::new(u64::MAX), ..Slot::default() };
        let desk = || SenderProgress {
            in_flight: (0..IN_FLIGHT_MAX).map(|_| slot()).collect(),
            sent: AtomicU64::new(0),
            complete: AtomicU64::new(0),
            saved: AtomicU64::new(0),
            settled: AtomicU64::new(0),
        };
        Self {
            senders: (0..senders).map(|_| desk()).collect(),
            audience: audience as u64,
            first,
            ids: Mutex::default(),
            hasher: RandomState::new(),
        }
    }

    /// A message's sender and its number among that sender's messages.
    pub(crate) fn sender_and_number(&self, index: u64) -> (usize, u64) {
        let senders = self.senders.len() as u64;
        (usize::try_from(index % senders).unwrap_or_default(), index / senders)
    }

    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The first number of the next phase.
    pub(crate) fn next(&self) -> u64 {
        let sent = self.senders.iter().map(|desk| desk.sent.load(Ordering::Relaxed)).max();
        self.first + sent.unwrap_or_default()
    }

    pub(crate) fn senders(&self) -> usize {
        self.senders.len()
    }

    /// Records that the sender sends its next message; returns the message's index.
    pub(crate) fn send(&self, sender: usize, due: u64) -> u64 {
        let desk = &self.senders[sender];
        let number = self.first + desk.sent.load(Ordering::Relaxed);
        let slot = &desk.in_flight[usize::try_from(number % IN_FLIGHT_MAX).unwrap_or_default()];
        slot.due.store(due, Ordering::Relaxed);
        slot.id.store(0, Ordering::Relaxed);
        slot.receivers.store(0, Ordering::Relaxed);
        slot.number.store(number, Ordering::Release);
        desk.sent.fetch_add(1, Ordering::Release);
        number * self.senders.len() as u64 + sender as u64
    }

    /// Messages a sender has sent in this phase.
    pub(crate) fn sent(&self, sender: usize) -> u64 {
        self.senders[sender].sent.load(Ordering::Acquire)
    }

    /// Messages of a sender that not all members have received.
    pub(crate) fn incomplete(&self, sender: usize) -> u64 {
        self.sent(sender) - self.senders[sender].complete.load(Ordering::Relaxed)
    }

    /// When a message was due, if it is in flight.
    pub(crate) fn due(&self, index: u64) -> Option<u64> {
        self.slot(index).map(|slot| slot.due.load(Ordering::Relaxed))
    }

    /// Records an ACK(saved).
    pub(crate) fn record_saved(&self, sender: usize) {
        self.senders[sender].saved.fetch_add(1, Ordering::Relaxed);
    }

    /// Messages of a sender that are saved.
    pub(crate) fn saved_of(&self, sender: usize) -> u64 {
        self.senders[sender].saved.load(Ordering::Relaxed)
    }

    /// Records that a sender has sent everything, and waits for no answer.
    pub(crate) fn settle(&self, sender: usize) {
        self.senders[sender].settled.store(1, Ordering::Release);
    }

    /// Whether all senders are done.
    pub(crate) fn all_settled(&self) -> bool {
        self.senders.iter().all(|desk| desk.settled.load(Ordering::Acquire) == 1)
    }

    /// Records that a member received a message for the first time. Faulty readers are not counted.
    pub(crate) fn record_push(&self, index: u64, id: &str) -> RecordedPush {
        let Some(slot) = self.slot(index) else {
            return RecordedPush { due: None, is_last: false, is_id_right: true };
        };
        let hash = self.hasher.hash_one(id) | 1;
        let push = slot.id.compare_exchange(0, hash, Ordering::AcqRel, Ordering::Acquire);
        let is_id_right = match push {
            Ok(_) => self.ids.lock().unwrap_or_else(PoisonError::into_inner).insert(hash),
            Err(push) => push == hash,
        };
        let is_last = slot.receivers.fetch_add(1, Ordering::AcqRel) + 1 == self.audience;
        if is_last {
            let (sender, _) = self.sender_and_number(index);
            self.senders[sender].complete.fetch_add(1, Ordering::Relaxed);
        }
        RecordedPush { due: Some(slot.due.load(Ordering::Relaxed)), is_last, is_id_right }
    }

    fn slot(&self, index: u64) -> Option<&Slot> {
        let (sender, number) = self.sender_and_number(index);
        let endpoint = usize::try_from(number % IN_FLIGHT_MAX).unwrap_or_default();
        let slot = &self.senders[sender].in_flight[endpoint];
        (slot.number.load(Ordering::Acquire) == number).then_some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_complete_once_everybody_heard_it() {
        let tracker = FanOutTracker::new(2, 2, 5);
        let index = tracker.send(1, 70);
        assert_eq!((index, tracker.sender_and_number(index)), (11, (1, 5)));
        assert_eq!(tracker.incomplete(1), 1);
        let first = tracker.record_push(index, "id");
        assert_eq!(first, RecordedPush { due: Some(70), is_last: false, is_id_right: true });
        assert!(tracker.record_push(index, "id").is_last);
        assert_eq!((tracker.incomplete(1), tracker.next()), (0, 6));
        assert_eq!(tracker.record_push(13, "other").due, None, "never sent");
    }

    #[test]
    fn an_id_belongs_to_one_message() {
        let tracker = FanOutTracker::new(1, 2, 0);
        let (one, two) = (tracker.send(0, 0), tracker.send(0, 0));
        assert!(tracker.record_push(one, "a").is_id_right);
        assert!(!tracker.record_push(one, "b").is_id_right, "another id than before");
        assert!(!tracker.record_push(two, "a").is_id_right, "the id of another message");
    }
}
