//! Checks the messages one member receives from each sender: remembers every gap until it is filled.

use std::collections::BTreeSet;

use crate::group::fan_out::FanOutTracker;
use crate::ledger::Counters;

/// What one member received in one phase.
#[derive(Debug)]
pub(crate) struct SequenceCheck {
    senders: Vec<SenderSequence>,
    highest_seq: u64,
}

#[derive(Clone, Debug, Default)]
struct SenderSequence {
    /// The number after the highest received.
    next: u64,
    /// Below `next`, but not received.
    missing: BTreeSet<u64>,
    count: u64,
}

impl SequenceCheck {
    /// The numbers of each sender begin at `first`.
    pub(crate) fn new(senders: usize, first: u64) -> Self {
        let sequence = SenderSequence { next: first, ..SenderSequence::default() };
        Self { senders: vec![sequence; senders], highest_seq: 0 }
    }

    /// Records a push; returns whether it is the message's first.
    pub(crate) fn record_push(
        &mut self,
        sender: usize,
        number: u64,
        seq: u64,
        counters: &mut Counters,
    ) -> bool {
        let sequence = &mut self.senders[sender];
        if number >= sequence.next {
            sequence.missing.extend(sequence.next..number);
            sequence.next = number + 1;
        } else if sequence.missing.remove(&number) {
            counters.reordered_by_sender += 1;
        } else {
            counters.duplicates += 1;
            return false;
        }
        sequence.count += 1;
        counters.pushed += 1;
        counters.reordered_by_seq += u64::from(seq < self.highest_seq);
        self.highest_seq = self.highest_seq.max(seq);
        true
    }

    /// Saved messages that were not received. `own` is this member, if it is a sender.
    pub(crate) fn missing(&self, tracker: &FanOutTracker, own: Option<usize>) -> u64 {
        let others = self.senders.iter().enumerate().filter(|(sender, _)| Some(*sender) != own);
        others
            .map(|(sender, sequence)| tracker.saved_of(sender).saturating_sub(sequence.count))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pushes: &[(u64, u64)]) -> (Counters, u64) {
        let tracker = FanOutTracker::new(1, 1, 10);
        (0..4).for_each(|_| tracker.record_saved(0));
        let (mut check, mut counters) = (SequenceCheck::new(1, 10), Counters::default());
        for (number, seq) in pushes {
            check.record_push(0, *number, *seq, &mut counters);
        }
        (counters, check.missing(&tracker, None))
    }

    #[test]
    fn a_faultless_member_misses_nothing() {
        let (counters, missing) = check(&[(10, 1), (11, 2), (12, 3), (13, 4)]);
        assert!(counters.is_clean() && missing == 0 && counters.pushed == 4);
    }

    #[test]
    fn gaps_repeats_and_disorder_are_told_apart() {
        let (counters, missing) = check(&[(10, 1), (12, 3), (12, 3), (13, 4)]);
        assert_eq!((counters.duplicates, missing), (1, 1));
        let (counters, missing) = check(&[(10, 1), (12, 3), (11, 2), (13, 4)]);
        assert_eq!((counters.reordered_by_seq, counters.reordered_by_sender), (1, 1));
        assert_eq!((counters.duplicates, missing), (0, 0));
        // Stored in the wrong order, and pushed as stored.
        let (counters, _) = check(&[(11, 1), (10, 2)]);
        assert_eq!((counters.reordered_by_seq, counters.reordered_by_sender), (0, 1));
    }
}
