//! What became of every message of one pair.
//!
//! Only messages under way are kept: what comes again for a message already done with is a
//! duplicate, so memory stays within the window however long the run is.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use serde::Serialize;

/// What happened, counted over the whole run, warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Messages sent.
    pub sent: u64,
    /// Messages that the server said are durable.
    pub saved: u64,
    /// Messages that the server said will be durable.
    pub accepted: u64,
    /// Messages that the receiver was shown before they were durable.
    pub shown: u64,
    /// Messages that the receiver was given, each counted once.
    pub pushed: u64,
    /// Messages that the sender knows to be delivered; one receipt may cover several.
    pub delivered: u64,
    /// Receipt frames.
    pub receipts: u64,
    /// Messages refused.
    pub refused: u64,
    /// Saved, but never pushed.
    pub lost: u64,
    /// Neither saved nor refused when the run gave up waiting.
    pub unanswered: u64,
    /// Saved and pushed, but the sender heard of no delivery.
    pub undelivered: u64,
    /// Pushed again.
    pub duplicates: u64,
    /// Pushed after a message with a higher place in the conversation.
    pub reordered_by_seq: u64,
    /// Pushed after a message that its sender sent later.
    pub reordered_by_sender: u64,
    /// Answers to nothing: saved twice, or never sent.
    pub unexpected: u64,
    /// A message came with an id that another one had, or with another id than before.
    pub wrong_ids: u64,
    /// Refusals and broken connections, by reason.
    pub errors: BTreeMap<String, u64>,
}

impl Counters {
    /// Whether every message was saved, pushed once, in order, and its delivery reported.
    pub fn is_clean(&self) -> bool {
        let faults = self.lost
            + self.unanswered
            + self.undelivered
            + self.duplicates
            + self.reordered_by_seq
            + self.reordered_by_sender
            + self.unexpected
            + self.wrong_ids;
        faults == 0 && self.errors.is_empty()
    }

    /// Counts a refusal or whatever else went wrong.
    pub(crate) fn error(&mut self, reason: &str) {
        match self.errors.get_mut(reason) {
            Some(count) => *count += 1,
            None => {
                self.errors.insert(reason.to_owned(), 1);
            }
        }
    }

    /// Adds another pair's counters.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.saved += other.saved;
        self.accepted += other.accepted;
        self.shown += other.shown;
        self.pushed += other.pushed;
        self.delivered += other.delivered;
        self.receipts += other.receipts;
        self.refused += other.refused;
        self.lost += other.lost;
        self.unanswered += other.unanswered;
        self.undelivered += other.undelivered;
        self.duplicates += other.duplicates;
        self.reordered_by_seq += other.reordered_by_seq;
        self.reordered_by_sender += other.reordered_by_sender;
        self.unexpected += other.unexpected;
        self.wrong_ids += other.wrong_ids;
        for (reason, count) in &other.errors {
            *self.errors.entry(reason.clone()).or_default() += count;
        }
    }
}

/// Which way a sample measures, from the moment the message was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// To ACK(saved) at the sender.
    Saved,
    /// To the push at the receiver.
    Pushed,
    /// To the delivered receipt at the sender.
    Delivered,
    /// To the push at the last member of a group.
    All,
    /// To ACK(accepted) at the sender.
    Accepted,
}

/// One step of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) way: Way,
    /// When it was due.
    pub(crate) due: u64,
    /// When it came.
    pub(crate) at: u64,
}

/// What the server said to a message.
#[derive(Debug, Default, PartialEq, Eq)]
enum Answer {
    #[default]
    Awaited,
    Saved,
    Refused,
}

/// A message under way.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a step it may have come to")]
struct Record {
    due: u64,
    /// Known from the first of ACK(saved) and push.
    seq: Option<u64>,
    answer: Answer,
    accepted: bool,
    /// Known to the receiver without its place.
    shown: bool,
    pushed: bool,
    delivered: bool,
}

impl Record {
    fn done(&self) -> bool {
        match self.answer {
            Answer::Awaited => false,
            Answer::Saved => self.pushed && self.delivered,
            Answer::Refused => true,
        }
    }
}

/// The messages of one pair in one phase.
#[derive(Debug)]
pub(crate) struct Ledger {
    has_receipts: bool,
    under_way: VecDeque<Record>,
    /// Numbers of the messages under way.
    numbers: Range<u64>,
    highest_index: Option<u64>,
    highest_seq: Option<u64>,
    counters: Counters,
    samples: Vec<Sample>,
}

impl Ledger {
    /// Begins at the number of the first message to be sent; whether receipts of delivery will come.
    pub(crate) fn from(first: u64, has_receipts: bool) -> Self {
        Self {
            has_receipts,
            under_way: VecDeque::new(),
            numbers: first..first,
            highest_index: None,
            highest_seq: None,
            counters: Counters::default(),
            samples: Vec::new(),
        }
    }

    /// The number that the next message gets.
    pub(crate) fn next(&self) -> u64 {
        self.numbers.end
    }

    /// The next message was sent; it was due at `due`.
    pub(crate) fn sent(&mut self, due: u64) {
        self.numbers.end += 1;
        let delivered = !self.has_receipts;
        self.under_way.push_back(Record { due, delivered, ..Record::default() });
        self.counters.sent += 1;
    }

    /// Messages that wait for ACK(saved).
    pub(crate) fn unanswered(&self) -> u64 {
        self.counters.sent.saturating_sub(self.counters.saved + self.counters.refused)
    }

    /// Messages not yet pushed.
    pub(crate) fn unpushed(&self) -> u64 {
        self.counters.sent.saturating_sub(self.counters.pushed + self.counters.refused)
    }

    /// Whether nothing is awaited any more.
    pub(crate) fn settled(&self) -> bool {
        self.under_way.is_empty()
    }

    /// ACK(saved).
    pub(crate) fn saved(&mut self, index: u64, seq: u64, at: u64) {
        let Some(record) = self.find(index).filter(|it| it.answer == Answer::Awaited) else {
            self.counters.unexpected += 1;
            return;
        };
        record.answer = Answer::Saved;
        record.seq = Some(seq);
        let due = record.due;
        self.counters.saved += 1;
        self.step(Way::Saved, due, at);
    }

    /// ACK(accepted): the first word about a message.
    pub(crate) fn accepted(&mut self, index: u64, at: u64) {
        let Some(record) = self.find(index).filter(|it| !it.accepted) else {
            self.counters.unexpected += 1;
            return;
        };
        record.accepted = true;
        let due = record.due;
        self.counters.accepted += 1;
        self.step(Way::Accepted, due, at);
    }

    /// A message is shown that is not durable yet: this is when its receiver first sees it.
    pub(crate) fn shown(&mut self, index: u64, at: u64) {
        // One that comes after the message itself says nothing new.
        let Some(record) = self.find(index).filter(|it| !it.shown && !it.pushed) else { return };
        record.shown = true;
        let due = record.due;
        self.counters.shown += 1;
        self.step(Way::Pushed, due, at);
    }

    /// A push, or the place of what was shown. The first one of a message counts for order, the others are duplicates.
    pub(crate) fn pushed(&mut self, index: u64, seq: u64, at: u64) {
        if index >= self.numbers.end {
            self.counters.unexpected += 1;
            return;
        }
        let Some(record) = self.find(index).filter(|it| !it.pushed) else {
            self.counters.duplicates += 1;
            return;
        };
        record.pushed = true;
        record.seq = Some(seq);
        let (due, was_shown) = (record.due, record.shown);
        self.counters.pushed += 1;
        self.counters.reordered_by_seq += u64::from(self.highest_seq > Some(seq));
        self.counters.reordered_by_sender += u64::from(self.highest_index > Some(index));
        self.highest_seq = self.highest_seq.max(Some(seq));
        self.highest_index = self.highest_index.max(Some(index));
        if was_shown {
            return self.forget_done();
        }
        self.step(Way::Pushed, due, at);
    }

    /// A delivered receipt: it covers what was pushed up to its place.
    pub(crate) fn delivered(&mut self, up_to: u64, at: u64) {
        self.counters.receipts += 1;
        for record in &mut self.under_way {
            match record.seq {
                Some(seq) if seq > up_to => break,
                Some(_) if record.pushed && !record.delivered => {
                    record.delivered = true;
                    self.counters.delivered += 1;
                    self.samples.push(Sample { way: Way::Delivered, due: record.due, at });
                }
                _ => {}
            }
        }
        self.forget_done();
    }

    /// A refusal, of a message if the answer named one.
    pub(crate) fn refused(&mut self, index: Option<u64>, reason: &str) {
        self.error(reason);
        let awaited = index.and_then(|index| self.find(index));
        if let Some(record) = awaited.filter(|it| it.answer == Answer::Awaited) {
            record.answer = Answer::Refused;
            self.counters.refused += 1;
            self.forget_done();
        }
    }

    /// Anything else that went wrong.
    pub(crate) fn error(&mut self, reason: &str) {
        self.counters.error(reason);
    }

    /// What was timed since the last call.
    pub(crate) fn samples(&mut self) -> &mut Vec<Sample> {
        &mut self.samples
    }

    /// Nothing is waited for any more: what is missing now is missing.
    pub(crate) fn close(mut self) -> Counters {
        for record in &self.under_way {
            match record.answer {
                Answer::Awaited => self.counters.unanswered += 1,
                Answer::Saved if !record.pushed => self.counters.lost += 1,
                Answer::Saved if !record.delivered => self.counters.undelivered += 1,
                Answer::Saved | Answer::Refused => {}
            }
        }
        self.counters
    }

    fn find(&mut self, index: u64) -> Option<&mut Record> {
        let place = index.checked_sub(self.numbers.start)?;
        self.under_way.get_mut(usize::try_from(place).ok()?)
    }

    fn step(&mut self, way: Way, due: u64, at: u64) {
        self.samples.push(Sample { way, due, at });
        self.forget_done();
    }

    fn forget_done(&mut self) {
        while self.under_way.front().is_some_and(Record::done) {
            self.under_way.pop_front();
            self.numbers.start += 1;
        }
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
