//! The bare relay's frames: as long as the typed ones, but there is nothing in them to understand.
//!
//! A frame is a letter, the eight digits of the connection to relay to, the sixteen digits of the
//! message's number, and filling. `M` is a message: the relay passes it on and answers `S`, which
//! stands for ACK(saved). `A` is the receiver's acknowledgement: it is passed on and stands for the
//! delivered receipt. What the real server adds to a frame, the relay adds as filling.

use crate::dialect::{Dialect, Incoming};

/// Letter and destination.
pub(crate) const ADDRESS_BYTES: usize = 9;
/// Letter, destination and number.
pub(crate) const HEAD_BYTES: usize = ADDRESS_BYTES + 16;

/// A typed message without its text: names of fields, number, receiver.
const MESSAGE_OVERHEAD: usize = 74;
/// A typed delivered ACK.
const DELIVERED_BYTES: usize = 100;
/// What the server adds to a message: sender, conversation, ids, seq, type, time.
pub(crate) const PUSH_EXTRA: usize = 168;
/// What the server adds to a delivered ACK.
pub(crate) const RECEIPT_EXTRA: usize = 108;
/// A whole ACK(saved).
pub(crate) const SAVED_BYTES: usize = 225;

/// A pair of connections.
#[derive(Debug)]
pub(crate) struct Bare {
    to_receiver: String,
    to_sender: String,
    message_fill: String,
    delivered_fill: String,
}

impl Bare {
    /// The connections' numbers, and texts of `size` bytes.
    pub(crate) fn new(sender: usize, receiver: usize, size: usize) -> Self {
        let message_bytes = size + MESSAGE_OVERHEAD;
        Self {
            to_receiver: format!("M{receiver:08}"),
            to_sender: format!("A{sender:08}"),
            message_fill: "x".repeat(message_bytes - HEAD_BYTES),
            delivered_fill: "x".repeat(DELIVERED_BYTES - HEAD_BYTES),
        }
    }
}

impl Dialect for Bare {
    fn message(&self, index: u64) -> String {
        format!("{}{index:016}{}", self.to_receiver, self.message_fill)
    }

    fn delivered(&self, id: &str) -> String {
        format!("{}{id}{}", self.to_sender, self.delivered_fill)
    }

    fn pong(&self) -> String {
        String::new()
    }

    fn read<'a>(&self, text: &'a str) -> Incoming<'a> {
        let Some(id) = text.get(ADDRESS_BYTES..HEAD_BYTES) else { return Incoming::Unreadable };
        let Ok(index) = id.parse::<u64>() else { return Incoming::Unreadable };
        // One conversation per pair, and a relay refuses nothing: the number is the place.
        let seq = index + 1;
        match text.as_bytes().first() {
            Some(b'S') => Incoming::Saved { index, seq },
            Some(b'M') => Incoming::Pushed { index, seq, id },
            Some(b'A') => Incoming::Delivered { seq },
            _ => Incoming::Unreadable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typed::Typed;

    #[test]
    fn frames_are_as_long_as_the_typed_ones() {
        let bare = Bare::new(400, 401, 200);
        let typed = Typed::new("b01234567-400", "b01234567-401", 200);
        let message = (bare.message(12_345).len(), typed.message(12_345).len());
        assert!(message.0.abs_diff(message.1) <= 4, "{message:?}");
        let id = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let delivered = (bare.delivered(&id[..16]).len(), typed.delivered(id).len());
        assert!(delivered.0.abs_diff(delivered.1) <= 4, "{delivered:?}");
    }

    #[test]
    fn hears_itself() {
        let pair = Bare::new(1, 2, 10);
        let id = "0000000000000007";
        assert_eq!(pair.read(&pair.message(7)), Incoming::Pushed { index: 7, seq: 8, id });
        assert_eq!(pair.read(&pair.delivered(id)), Incoming::Delivered { seq: 8 });
        assert_eq!(pair.read("S"), Incoming::Unreadable);
    }
}
