//! What all members of a group need to know of each message: when it was due, and how many have
//! heard it. Only messages under way are kept; nobody waits for anybody here.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Messages one sender may have under way.
pub(crate) const UNDER_WAY_MAX: u64 = 4096;

/// The board of one phase. A message is known by its `index`: its number among its sender's
/// messages, times the senders, plus the sender.
#[derive(Debug)]
pub(crate) struct Board {
    senders: Box<[Desk]>,
    /// How many hear a message.
    audience: u64,
    /// The number of each sender's first message in this phase.
    first: u64,
    /// Hashes of the server's ids. Two messages with one hash by chance: once in 10⁸ runs.
    ids: Mutex<HashSet<u64>>,
    hasher: RandomState,
}

/// One sender's messages.
#[derive(Debug)]
struct Desk {
    under_way: Box<[Slot]>,
    sent: AtomicU64,
    /// Messages that everybody has heard.
    complete: AtomicU64,
    saved: AtomicU64,
    /// Whether the sender waits for no answer any more.
    settled: AtomicU64,
}

#[derive(Debug, Default)]
struct Slot {
    number: AtomicU64,
    due: AtomicU64,
    id: AtomicU64,
    heard: AtomicU64,
}

/// What is known of a message somebody heard.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// When it was due; unknown if it is long done.
    pub(crate) due: Option<u64>,
    /// Whether this was the last member to hear it.
    pub(crate) is_last: bool,
    /// Whether it has the id it had before, and no other message has it.
    pub(crate) is_id_right: bool,
}

impl Board {
    /// A phase of so many senders, each heard by so many, from this number on.
    pub(crate) fn new(senders: usize, audience: usize, first: u64) -> Self {
        let slot = || Slot { number: AtomicU64::new(u64::MAX), ..Slot::default() };
        let desk = || Desk {
            under_way: (0..UNDER_WAY_MAX).map(|_| slot()).collect(),
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

    /// A message's sender and its number there; none if there is no such sender.
    pub(crate) fn place(&self, index: u64) -> (usize, u64) {
        let senders = self.senders.len() as u64;
        (usize::try_from(index % senders).unwrap_or_default(), index / senders)
    }

    /// The number of the first message in this phase.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Where the next phase may begin.
    pub(crate) fn next(&self) -> u64 {
        let sent = self.senders.iter().map(|desk| desk.sent.load(Ordering::Relaxed)).max();
        self.first + sent.unwrap_or_default()
    }

    /// Senders.
    pub(crate) fn senders(&self) -> usize {
        self.senders.len()
    }

    /// The sender says its next message; the index is what names it.
    pub(crate) fn send(&self, sender: usize, due: u64) -> u64 {
        let desk = &self.senders[sender];
        let number = self.first + desk.sent.load(Ordering::Relaxed);
        let slot = &desk.under_way[usize::try_from(number % UNDER_WAY_MAX).unwrap_or_default()];
        slot.due.store(due, Ordering::Relaxed);
        slot.id.store(0, Ordering::Relaxed);
        slot.heard.store(0, Ordering::Relaxed);
        slot.number.store(number, Ordering::Release);
        desk.sent.fetch_add(1, Ordering::Release);
        number * self.senders.len() as u64 + sender as u64
    }

    /// Messages a sender has sent in this phase.
    pub(crate) fn sent(&self, sender: usize) -> u64 {
        self.senders[sender].sent.load(Ordering::Acquire)
    }

    /// Messages of a sender that not everybody has heard.
    pub(crate) fn unheard(&self, sender: usize) -> u64 {
        self.sent(sender) - self.senders[sender].complete.load(Ordering::Relaxed)
    }

    /// When a message was due, if it is under way.
    pub(crate) fn due(&self, index: u64) -> Option<u64> {
        self.slot(index).map(|slot| slot.due.load(Ordering::Relaxed))
    }

    /// A sender was told that one more is saved.
    pub(crate) fn saved(&self, sender: usize) {
        self.senders[sender].saved.fetch_add(1, Ordering::Relaxed);
    }

    /// Messages of a sender that are saved.
    pub(crate) fn saved_of(&self, sender: usize) -> u64 {
        self.senders[sender].saved.load(Ordering::Relaxed)
    }

    /// A sender has sent all, and waits for no answer.
    pub(crate) fn settle(&self, sender: usize) {
        self.senders[sender].settled.store(1, Ordering::Release);
    }

    /// Whether all senders are done.
    pub(crate) fn all_settled(&self) -> bool {
        self.senders.iter().all(|desk| desk.settled.load(Ordering::Acquire) == 1)
    }

    /// Somebody who reads as they should heard a message for the first time.
    pub(crate) fn heard(&self, index: u64, id: &str) -> Known {
        let Some(slot) = self.slot(index) else {
            return Known { due: None, is_last: false, is_id_right: true };
        };
        let hash = self.hasher.hash_one(id) | 1;
        let known = slot.id.compare_exchange(0, hash, Ordering::AcqRel, Ordering::Acquire);
        let is_id_right = match known {
            Ok(_) => self.ids.lock().unwrap_or_else(PoisonError::into_inner).insert(hash),
            Err(known) => known == hash,
        };
        let is_last = slot.heard.fetch_add(1, Ordering::AcqRel) + 1 == self.audience;
        if is_last {
            let (sender, _) = self.place(index);
            self.senders[sender].complete.fetch_add(1, Ordering::Relaxed);
        }
        Known { due: Some(slot.due.load(Ordering::Relaxed)), is_last, is_id_right }
    }

    fn slot(&self, index: u64) -> Option<&Slot> {
        let (sender, number) = self.place(index);
        let place = usize::try_from(number % UNDER_WAY_MAX).unwrap_or_default();
        let slot = &self.senders[sender].under_way[place];
        (slot.number.load(Ordering::Acquire) == number).then_some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_complete_once_everybody_heard_it() {
        let board = Board::new(2, 2, 5);
        let index = board.send(1, 70);
        assert_eq!((index, board.place(index)), (11, (1, 5)));
        assert_eq!(board.unheard(1), 1);
        let first = board.heard(index, "id");
        assert_eq!(first, Known { due: Some(70), is_last: false, is_id_right: true });
        assert!(board.heard(index, "id").is_last);
        assert_eq!((board.unheard(1), board.next()), (0, 6));
        assert_eq!(board.heard(13, "other").due, None, "never sent");
    }

    #[test]
    fn an_id_belongs_to_one_message() {
        let board = Board::new(1, 2, 0);
        let (one, two) = (board.send(0, 0), board.send(0, 0));
        assert!(board.heard(one, "a").is_id_right);
        assert!(!board.heard(one, "b").is_id_right, "another id than before");
        assert!(!board.heard(two, "a").is_id_right, "the id of another message");
    }
}
