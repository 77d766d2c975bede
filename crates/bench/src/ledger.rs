//! Tracks every message of one pair until it is saved, pushed and delivered.
//!
//! Only messages in flight are kept: a push for a message that is done is a duplicate, so memory
//! stays within the window however long the run is.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use serde::Serialize;

/// Counts over the whole run, warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    pub sent: u64,
    /// Messages with an ACK(saved).
    pub saved: u64,
    /// Messages with an ACK(accepted).
    pub accepted: u64,
    /// Messages pushed as a preview, before they were durable.
    pub shown: u64,
    /// Messages pushed to the receiver, each counted once.
    pub pushed: u64,
    /// Messages with a delivered receipt at the sender; one receipt may cover several.
    pub delivered: u64,
    /// Receipt frames.
    pub receipts: u64,
    pub refused: u64,
    /// Saved, but never pushed.
    pub lost: u64,
    /// Neither saved nor refused when the run gave up waiting.
    pub unanswered: u64,
    /// Saved and pushed, but without a delivered receipt.
    pub undelivered: u64,
    /// Pushed more than once.
    pub duplicates: u64,
    /// Pushed after a message with a higher seq.
    pub reordered_by_seq: u64,
    /// Pushed after a message that its sender sent later.
    pub reordered_by_sender: u64,
    /// Acknowledgements without a message: saved twice, or never sent.
    pub unexpected: u64,
    /// Pushed with the id of another message, or with another id than before.
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

    /// Counts a refusal or another error.
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

/// The step that a sample times, from the moment the message was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
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

/// The time of one step of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) step: Step,
    /// When the message was due.
    pub(crate) due: u64,
    /// When the step was completed.
    pub(crate) at: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum AckState {
    #[default]
    Awaited,
    Saved,
    Refused,
}

/// A message in flight.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a step it may have come to")]
struct MessageRecord {
    due: u64,
    /// Known from ACK(saved) or the push, whichever comes first.
    seq: Option<u64>,
    ack: AckState,
    accepted: bool,
    /// Pushed as a preview, without its seq.
    shown: bool,
    pushed: bool,
    delivered: bool,
}

impl MessageRecord {
    fn is_done(&self) -> bool {
        match self.ack {
            AckState::Awaited => false,
            AckState::Saved => self.pushed && self.delivered,
            AckState::Refused => true,
        }
    }
}

/// The messages of one pair in one phase.
#[derive(Debug)]
pub(crate) struct Ledger {
    has_receipts: bool,
    in_flight: VecDeque<MessageRecord>,
    /// Numbers of the messages in flight.
    numbers: Range<u64>,
    highest_index: Option<u64>,
    highest_seq: Option<u64>,
    counters: Counters,
    samples: Vec<Sample>,
}

impl Ledger {
    /// `first` is the number of the first message; `has_receipts` says whether delivered receipts will come.
    pub(crate) fn from(first: u64, has_receipts: bool) -> Self {
        Self {
            has_receipts,
            in_flight: VecDeque::new(),
            numbers: first..first,
            highest_index: None,
            highest_seq: None,
            counters: Counters::default(),
            samples: Vec::new(),
        }
    }

    /// The number of the next message.
    pub(crate) fn next(&self) -> u64 {
        self.numbers.end
    }

    /// Records that the next message was sent, which was due at `due`.
    pub(crate) fn sent(&mut self, due: u64) {
        self.numbers.end += 1;
        let delivered = !self.has_receipts;
        self.in_flight.push_back(MessageRecord { due, delivered, ..MessageRecord::default() });
        self.counters.sent += 1;
    }

    /// Messages without ACK(saved).
    pub(crate) fn unanswered(&self) -> u64 {
        self.counters.sent.saturating_sub(self.counters.saved + self.counters.refused)
    }

    /// Messages not yet pushed.
    pub(crate) fn unpushed(&self) -> u64 {
        self.counters.sent.saturating_sub(self.counters.pushed + self.counters.refused)
    }

    /// Whether no message is in flight.
    pub(crate) fn is_settled(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Records an ACK(saved).
    pub(crate) fn saved(&mut self, index: u64, seq: u64, at: u64) {
        let Some(record) = self.find(index).filter(|it| it.ack == AckState::Awaited) else {
            self.counters.unexpected += 1;
            return;
        };
        record.ack = AckState::Saved;
        record.seq = Some(seq);
        let due = record.due;
        self.counters.saved += 1;
        self.record_step(Step::Saved, due, at);
    }

    /// Records an ACK(accepted).
    pub(crate) fn accepted(&mut self, index: u64, at: u64) {
        let Some(record) = self.find(index).filter(|it| !it.accepted) else {
            self.counters.unexpected += 1;
            return;
        };
        record.accepted = true;
        let due = record.due;
        self.counters.accepted += 1;
        self.record_step(Step::Accepted, due, at);
    }

    /// Records a preview, the first time the receiver sees the message.
    pub(crate) fn shown(&mut self, index: u64, at: u64) {
        // A preview after the push changes nothing.
        let Some(record) = self.find(index).filter(|it| !it.shown && !it.pushed) else { return };
        record.shown = true;
        let due = record.due;
        self.counters.shown += 1;
        self.record_step(Step::Pushed, due, at);
    }

    /// Records a push, or the seq of a previewed message. Further ones for the same message are duplicates.
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
        self.record_step(Step::Pushed, due, at);
    }

    /// Records a delivered receipt, which covers all pushed messages up to its seq.
    pub(crate) fn delivered(&mut self, up_to: u64, at: u64) {
        self.counters.receipts += 1;
        for record in &mut self.in_flight {
            match record.seq {
                Some(seq) if seq > up_to => break,
                Some(_) if record.pushed && !record.delivered => {
                    record.delivered = true;
                    self.counters.delivered += 1;
                    self.samples.push(Sample { step: Step::Delivered, due: record.due, at });
                }
                _ => {}
            }
        }
        self.forget_done();
    }

    /// Records a refusal, of a message if the answer names one.
    pub(crate) fn refused(&mut self, index: Option<u64>, reason: &str) {
        self.error(reason);
        let awaited = index.and_then(|index| self.find(index));
        if let Some(record) = awaited.filter(|it| it.ack == AckState::Awaited) {
            record.ack = AckState::Refused;
            self.counters.refused += 1;
            self.forget_done();
        }
    }

    pub(crate) fn error(&mut self, reason: &str) {
        self.counters.error(reason);
    }

    /// The samples, for the caller to take.
    pub(crate) fn samples(&mut self) -> &mut Vec<Sample> {
        &mut self.samples
    }

    /// Ends the phase: counts what is still missing.
    pub(crate) fn close(mut self) -> Counters {
        for record in &self.in_flight {
            match record.ack {
                AckState::Awaited => self.counters.unanswered += 1,
                AckState::Saved if !record.pushed => self.counters.lost += 1,
                AckState::Saved if !record.delivered => self.counters.undelivered += 1,
                AckState::Saved | AckState::Refused => {}
            }
        }
        self.counters
    }

    fn find(&mut self, index: u64) -> Option<&mut MessageRecord> {
        let offset = index.checked_sub(self.numbers.start)?;
        self.in_flight.get_mut(usize::try_from(offset).ok()?)
    }

    fn record_step(&mut self, way: Step, due: u64, at: u64) {
        self.samples.push(Sample { step: way, due, at });
        self.forget_done();
    }

    fn forget_done(&mut self) {
        while self.in_flight.front().is_some_and(MessageRecord::is_done) {
            self.in_flight.pop_front();
            self.numbers.start += 1;
        }
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
