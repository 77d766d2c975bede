//! Checks the payload numbers of each sender: finds lost payloads and refuses repeated ones.

use nexo_redis_link::NodeId;

use std::collections::HashMap;

/// The last number from each sender. One small entry per start of a node, never removed: an old
/// payload of a node long gone must not be accepted.
#[derive(Default)]
pub(crate) struct SequenceCheck {
    senders: HashMap<NodeId, SenderPosition>,
}

#[derive(Default)]
struct SenderPosition {
    last: u64,
    /// The listener knows already that payloads were lost: the next gap is no news.
    ignores_next_gap: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SequenceOutcome {
    Next,
    /// One or more payloads before it were lost.
    Gap,
    /// It was received before, or comes too late.
    Repeated,
}

impl SequenceCheck {
    /// Checks and records a payload's number. An empty payload is a gap notice: it is never
    /// ignored.
    pub(crate) fn check(&mut self, from: NodeId, number: u64, is_empty: bool) -> SequenceOutcome {
        let sender = self.senders.entry(from).or_default();
        if number <= sender.last {
            return SequenceOutcome::Repeated;
        }
        let is_next = number == sender.last + 1 || (sender.ignores_next_gap && !is_empty);
        *sender = SenderPosition { last: number, ignores_next_gap: false };
        if is_next { SequenceOutcome::Next } else { SequenceOutcome::Gap }
    }

    /// The subscription was down, and the listener will be told of the loss: the next gap of each
    /// sender needs no report of its own.
    pub(crate) fn ignore_next_gaps(&mut self) {
        self.senders.values_mut().for_each(|sender| sender.ignores_next_gap = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_and_repetitions_are_noticed_per_sender() {
        let (a, b) = (NodeId([1; 16]), NodeId([2; 16]));
        let mut sequences = SequenceCheck::default();
        let mut check = |from, number, expect| {
            assert_eq!(sequences.check(from, number, false), expect, "{from} {number}");
        };
        check(a, 1, SequenceOutcome::Next);
        check(b, 1, SequenceOutcome::Next);
        check(a, 1, SequenceOutcome::Repeated);
        check(a, 2, SequenceOutcome::Next);
        check(a, 5, SequenceOutcome::Gap);
        check(a, 4, SequenceOutcome::Repeated);
        check(a, 6, SequenceOutcome::Next);
        check(b, 2, SequenceOutcome::Next);
        check(NodeId([3; 16]), 2, SequenceOutcome::Gap);
    }

    #[test]
    fn what_was_missed_while_away_is_excused_once_but_a_word_that_more_is_missing_is_not() {
        let a = NodeId([1; 16]);
        let mut sequences = SequenceCheck::default();
        sequences.check(a, 1, false);
        sequences.ignore_next_gaps();
        assert_eq!(sequences.check(a, 4, false), SequenceOutcome::Next);
        assert_eq!(sequences.check(a, 6, false), SequenceOutcome::Gap);
        sequences.ignore_next_gaps();
        assert_eq!(sequences.check(a, 6, false), SequenceOutcome::Repeated);
        assert_eq!(sequences.check(a, 8, true), SequenceOutcome::Gap);
    }
}
