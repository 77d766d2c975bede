//! The delivered and read cursors of a conversation.
use crate::conversation::Head;
use crate::events::Receipt;
use crate::types::MessageState;

/// The delivered and read cursors of a conversation.
#[derive(Default)]
pub(crate) struct Cursors {
    /// Cursors the server has, so that each ACK is sent once.
    pub(crate) acked_delivered: u64,
    pub(crate) acked_read: u64,
    /// Our confirmed read cursor, which is sent to the server.
    pub(crate) confirmed_read: u64,
    /// Our assumed read cursor: another device of ours sent a message.
    assumed_read: u64,
    /// The read cursor is known for messages up to this seq.
    head_max: u64,
    /// The cursors of the peer.
    pub(crate) peer_delivered: u64,
    pub(crate) peer_read: u64,
}

impl Cursors {
    /// Our read cursor, confirmed or assumed.
    pub(crate) fn read(&self) -> u64 {
        self.confirmed_read.max(self.assumed_read)
    }

    /// Moves our read cursor, confirmed or assumed.
    pub(crate) fn read_to(&mut self, seq: u64, is_confirmed: bool) {
        if is_confirmed {
            self.confirmed_read = self.confirmed_read.max(seq);
        } else if seq > self.head_max {
            self.assumed_read = self.assumed_read.max(seq);
        }
    }

    pub(crate) fn apply_head(&mut self, head: &Head) {
        self.confirmed_read = self.confirmed_read.max(head.read_seq);
        self.head_max = self.head_max.max(head.max_seq);
        if self.assumed_read <= head.max_seq {
            self.assumed_read = 0; // the server has confirmed it
        }
        (self.acked_delivered, self.acked_read) = (head.delivered_seq, head.read_seq);
    }

    /// Applies a receipt of the peer; returns the previous cursor.
    pub(crate) fn apply_receipt(&mut self, kind: Receipt, seq: u64) -> u64 {
        let is_read = kind == Receipt::Read;
        let before = if is_read { self.peer_read } else { self.peer_delivered };
        if is_read {
            self.peer_read = self.peer_read.max(seq);
        }
        self.peer_delivered = self.peer_delivered.max(seq);
        before
    }

    /// The state of our message at this seq.
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
        let mut cursors = Cursors { head_max: 5, confirmed_read: 2, ..Cursors::default() };
        cursors.read_to(4, false);
        assert_eq!(cursors.read(), 2);
        cursors.read_to(7, false);
        assert_eq!((cursors.read(), cursors.confirmed_read), (7, 2));
        cursors.read_to(3, true);
        assert_eq!((cursors.read(), cursors.confirmed_read), (7, 3));
    }

    #[test]
    fn what_is_read_was_delivered() {
        let mut cursors = Cursors::default();
        assert_eq!(cursors.apply_receipt(Receipt::Read, 3), 0);
        assert_eq!(cursors.apply_receipt(Receipt::Delivered, 5), 3);
        assert_eq!(cursors.apply_receipt(Receipt::Read, 2), 3);
        let states = [3, 4, 6].map(|seq| cursors.state_at(seq));
        assert_eq!(states, [MessageState::Read, MessageState::Delivered, MessageState::Saved]);
    }
}
