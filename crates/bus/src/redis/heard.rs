//! What was heard from each node, so that a payload that is missing or comes again is noticed.

use std::collections::HashMap;

use super::names::NodeId;

/// Where each sender is. One small entry per start of a node, kept for ever: an old payload of a
/// node long gone must not count as news.
#[derive(Default)]
pub(crate) struct Heard {
    senders: HashMap<NodeId, Sender>,
}

#[derive(Default)]
struct Sender {
    last: u64,
    /// Whether what was missed since is known already.
    is_excused: bool,
}

/// What a number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is the next one.
    Next,
    /// One or more before it never came.
    Gap,
    /// It was heard before, or is too late.
    Repeated,
}

impl Heard {
    /// Takes note of a payload. An empty one is only sent to say that something is missing.
    pub(crate) fn note(&mut self, from: NodeId, number: u64, is_empty: bool) -> Turn {
        let sender = self.senders.entry(from).or_default();
        if number <= sender.last {
            return Turn::Repeated;
        }
        let is_next = number == sender.last + 1 || (sender.is_excused && !is_empty);
        *sender = Sender { last: number, is_excused: false };
        if is_next { Turn::Next } else { Turn::Gap }
    }

    /// Nothing could be heard for a while, and everybody here is told so: no need to say it again
    /// for each sender.
    pub(crate) fn excuse_gaps(&mut self) {
        self.senders.values_mut().for_each(|sender| sender.is_excused = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_and_repetitions_are_noticed_per_sender() {
        let (a, b) = (NodeId([1; 16]), NodeId([2; 16]));
        let mut heard = Heard::default();
        let mut check = |from, number, expect| {
            assert_eq!(heard.note(from, number, false), expect, "{from} {number}");
        };
        check(a, 1, Turn::Next);
        check(b, 1, Turn::Next);
        check(a, 1, Turn::Repeated);
        check(a, 2, Turn::Next);
        check(a, 5, Turn::Gap);
        check(a, 4, Turn::Repeated);
        check(a, 6, Turn::Next);
        check(b, 2, Turn::Next);
        check(NodeId([3; 16]), 2, Turn::Gap);
    }

    #[test]
    fn what_was_missed_while_away_is_excused_once_but_a_word_that_more_is_missing_is_not() {
        let a = NodeId([1; 16]);
        let mut heard = Heard::default();
        heard.note(a, 1, false);
        heard.excuse_gaps();
        assert_eq!(heard.note(a, 4, false), Turn::Next);
        assert_eq!(heard.note(a, 6, false), Turn::Gap);
        heard.excuse_gaps();
        assert_eq!(heard.note(a, 6, false), Turn::Repeated);
        assert_eq!(heard.note(a, 8, true), Turn::Gap);
    }
}
