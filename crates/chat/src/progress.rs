//! How a member's cursors move. Pure and shared by all store engines.

use crate::ids::Seq;
use crate::model::{CursorKind, Cursors};

/// A member's cursors, and their own messages that the delivered cursor has not reached.
///
/// Sending marks everything before it as read, so `read` moves to the new message at once. `delivered` must
/// not: earlier messages of others may still be on their way, and the next resend starts there. Own
/// messages need no acknowledgement, so `delivered` passes them as soon as everything before them was
/// delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub cursors: Cursors,
    /// The newest contiguous run of own messages, first and last.
    pub own: Option<(Seq, Seq)>,
    /// The newest own message that was sent without marking anything as read.
    pub quiet: Seq,
}

impl Progress {
    /// The progress of a new member: earlier messages do not count as unread.
    pub fn joined(head: Seq) -> Self {
        let cursors = Cursors { delivered: head, read: head };
        Self { cursors, own: None, quiet: Seq::ZERO }
    }

    /// The member's own message became durable at `seq`.
    pub fn sent(&mut self, seq: Seq, marks_read: bool) {
        if marks_read {
            self.cursors.read = self.cursors.read.max(seq);
        } else {
            self.quiet = self.quiet.max(seq);
        }
        self.own = Some(match self.own {
            Some((first, last)) if last.next() == seq => (first, seq),
            Some(run @ (_, last)) if seq <= last => run, // replayed after a restart
            _ => (seq, seq),
        });
        self.advance_delivered();
    }

    /// The member received or read everything up to `to`, which must be visible to them.
    pub fn acknowledged(&mut self, kind: CursorKind, to: Seq) {
        self.cursors.delivered = self.cursors.delivered.max(to);
        if kind == CursorKind::Read {
            self.cursors.read = self.cursors.read.max(to);
        }
        self.advance_delivered();
    }

    fn advance_delivered(&mut self) {
        if let Some((first, last)) = self.own
            && self.cursors.delivered.next() >= first
        {
            self.cursors.delivered = self.cursors.delivered.max(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CursorKind::{Delivered, Read};

    fn check(act: impl FnOnce(&mut Progress), delivered: u64, read: u64) {
        let mut progress = Progress::default();
        act(&mut progress);
        let Cursors { delivered: d, read: r } = progress.cursors;
        assert_eq!((d.0, r.0), (delivered, read));
    }

    #[test]
    fn who_speaks_alone_has_everything() {
        check(|p| (1..=5).for_each(|seq| p.sent(Seq(seq), true)), 5, 5);
    }

    #[test]
    fn an_answer_reads_what_came_before_but_does_not_deliver_it() {
        check(|p| p.sent(Seq(4), true), 0, 4);
    }

    #[test]
    fn own_messages_need_no_acknowledgement() {
        let answered_early = |p: &mut Progress| {
            p.sent(Seq(4), true);
            p.sent(Seq(5), true);
            p.acknowledged(Delivered, Seq(3));
        };
        check(answered_early, 5, 5);
    }

    #[test]
    fn a_quiet_message_reads_nothing_but_needs_no_acknowledgement() {
        check(|p| p.sent(Seq(1), false), 1, 0);
    }

    #[test]
    fn cursors_never_go_back() {
        let backwards = |p: &mut Progress| {
            p.acknowledged(Read, Seq(7));
            p.acknowledged(Delivered, Seq(3));
            p.acknowledged(Read, Seq(1));
        };
        check(backwards, 7, 7);
    }
}
