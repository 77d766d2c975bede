//! How far everybody is in a conversation.
use crate::conversation::Head;
use crate::events::Receipt;
use crate::types::MessageState;

/// How far everybody is in a conversation.
#[derive(Default)]
pub(crate) struct Cursors {
    /// What was told the server, so that it is told once.
    pub(crate) acked_delivered: u64,
    pub(crate) acked_read: u64,
    /// We have read this far for certain, and may tell the server …
    pub(crate) sure_read: u64,
    /// … or probably: by an answer from another device of ours.
    assumed_read: u64,
    /// The server has told us what is read up to here.
    head_max: u64,
    /// How far the others are.
    pub(crate) peer_delivered: u64,
    pub(crate) peer_read: u64,
}

impl Cursors {
    /// How far we have read, as far as we know.
    pub(crate) fn read(&self) -> u64 {
        self.sure_read.max(self.assumed_read)
    }

    /// We have read up to here, for sure or as it seems.
    pub(crate) fn read_to(&mut self, seq: u64, is_sure: bool) {
        if is_sure {
            self.sure_read = self.sure_read.max(seq);
        } else if seq > self.head_max {
            self.assumed_read = self.assumed_read.max(seq);
        }
    }

    pub(crate) fn hear_head(&mut self, head: &Head) {
        self.sure_read = self.sure_read.max(head.read_seq);
        self.head_max = self.head_max.max(head.max_seq);
        if self.assumed_read <= head.max_seq {
            self.assumed_read = 0; // now we know
        }
        (self.acked_delivered, self.acked_read) = (head.delivered_seq, head.read_seq);
    }

    /// The others have received or read up to here; where they were before.
    pub(crate) fn hear_receipt(&mut self, kind: Receipt, seq: u64) -> u64 {
        let is_read = kind == Receipt::Read;
        let before = if is_read { self.peer_read } else { self.peer_delivered };
        if is_read {
            self.peer_read = self.peer_read.max(seq);
        }
        self.peer_delivered = self.peer_delivered.max(seq);
        before
    }

    /// How far a message of ours is.
    pub(crate) fn state_at(&self, seq: u64) -> MessageState {
        if seq <= self.peer_read {
            MessageState::Read
        } else if seq <= self.peer_delivered {
            MessageState::Delivered
        } else {
            MessageState::Saved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_is_assumed_until_the_server_knows() {
        let mut cursors = Cursors { head_max: 5, sure_read: 2, ..Cursors::default() };
        cursors.read_to(4, false);
        assert_eq!(cursors.read(), 2);
        cursors.read_to(7, false);
        assert_eq!((cursors.read(), cursors.sure_read), (7, 2));
        cursors.read_to(3, true);
        assert_eq!((cursors.read(), cursors.sure_read), (7, 3));
    }

    #[test]
    fn what_is_read_was_delivered() {
        let mut cursors = Cursors::default();
        assert_eq!(cursors.hear_receipt(Receipt::Read, 3), 0);
        assert_eq!(cursors.hear_receipt(Receipt::Delivered, 5), 3);
        assert_eq!(cursors.hear_receipt(Receipt::Read, 2), 3);
        let states = [3, 4, 6].map(|seq| cursors.state_at(seq));
        assert_eq!(states, [MessageState::Read, MessageState::Delivered, MessageState::Saved]);
    }
}
