//! What one member has heard of whom: every gap is remembered until it is filled.

use std::collections::BTreeSet;

use crate::group::board::Board;
use crate::ledger::Counters;

/// One member's hearing in one phase.
#[derive(Debug)]
pub(crate) struct Check {
    senders: Vec<Heard>,
    highest_seq: u64,
}

#[derive(Clone, Debug, Default)]
struct Heard {
    /// The number after the highest heard.
    next: u64,
    /// Below `next`, but not heard.
    missing: BTreeSet<u64>,
    count: u64,
}

impl Check {
    /// So many senders, whose numbers begin here.
    pub(crate) fn new(senders: usize, first: u64) -> Self {
        let heard = Heard { next: first, ..Heard::default() };
        Self { senders: vec![heard; senders], highest_seq: 0 }
    }

    /// Somebody's message came; whether for the first time.
    pub(crate) fn heard(
        &mut self,
        sender: usize,
        number: u64,
        seq: u64,
        counters: &mut Counters,
    ) -> bool {
        let heard = &mut self.senders[sender];
        if number >= heard.next {
            heard.missing.extend(heard.next..number);
            heard.next = number + 1;
        } else if heard.missing.remove(&number) {
            counters.reordered_by_sender += 1;
        } else {
            counters.duplicates += 1;
            return false;
        }
        heard.count += 1;
        counters.pushed += 1;
        counters.reordered_by_seq += u64::from(seq < self.highest_seq);
        self.highest_seq = self.highest_seq.max(seq);
        true
    }

    /// Messages that are saved and did not come. `own` is the sender that this member is.
    pub(crate) fn missing(&self, board: &Board, own: Option<usize>) -> u64 {
        let others = self.senders.iter().enumerate().filter(|(sender, _)| Some(*sender) != own);
        others.map(|(sender, heard)| board.saved_of(sender).saturating_sub(heard.count)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(heard: &[(u64, u64)]) -> (Counters, u64) {
        let board = Board::new(1, 1, 10);
        (0..4).for_each(|_| board.saved(0));
        let (mut check, mut counters) = (Check::new(1, 10), Counters::default());
        for (number, seq) in heard {
            check.heard(0, *number, *seq, &mut counters);
        }
        (counters, check.missing(&board, None))
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
