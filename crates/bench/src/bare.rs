//! The bare relay's frames: as long as the typed ones, but with nothing to parse.
//!
//! A frame is a letter, the eight digits of the connection to relay to, the sixteen digits of the
//! message's number, and padding. `M` is a message: the relay passes it on and answers `S`, which
//! stands for ACK(saved). `A` is the receiver's acknowledgement: it is passed on and stands for the
//! delivered receipt. `B` is a message to all in the sender's room: the relay makes one frame of
//! it for all of them, and answers `S`. What the real server adds to a frame, the relay adds as padding.

use tokio_tungstenite::tungstenite::Message;

use crate::codec::{Codec, Incoming};

/// Letter and destination.
pub(crate) const ADDRESS_BYTES: usize = 9;
/// Letter, destination and number.
pub(crate) const HEAD_BYTES: usize = ADDRESS_BYTES + 16;

/// A typed message without its text: names of fields, number, receiver.
const MESSAGE_OVERHEAD: usize = 74;
/// How much longer a message to a group is: its type, and an id longer than a user's.
const GROUP_EXTRA: usize = 18;
/// A typed delivered ACK.
const DELIVERED_BYTES: usize = 100;
/// What the server adds to a message: sender, conversation, ids, seq, type, time.
pub(crate) const PUSH_EXTRA: usize = 168;
/// What the server adds to a delivered ACK.
pub(crate) const RECEIPT_EXTRA: usize = 108;
/// A whole ACK(saved).
pub(crate) const SAVED_BYTES: usize = 225;

/// A pair of connections, or a room.
#[derive(Debug)]
pub(crate) struct BareCodec {
    is_room: bool,
    to_receiver: String,
    to_sender: String,
    message_fill: String,
    delivered_fill: String,
}

impl BareCodec {
    /// The connections' numbers, and texts of `size` bytes.
    pub(crate) fn pair(sender: usize, receiver: usize, size: usize) -> Self {
        let message_bytes = size + MESSAGE_OVERHEAD;
        Self {
            is_room: false,
            to_receiver: format!("M{receiver:08}"),
            to_sender: format!("A{sender:08}"),
            message_fill: "x".repeat(message_bytes - HEAD_BYTES),
            delivered_fill: "x".repeat(DELIVERED_BYTES - HEAD_BYTES),
        }
    }

    /// A member of a room, and texts of `size` bytes.
    pub(crate) fn room(room: usize, size: usize) -> Self {
        let to_receiver = format!("B{room:08}");
        Self { is_room: true, to_receiver, ..Self::pair(0, 0, size + GROUP_EXTRA) }
    }
}

impl Codec for BareCodec {
    fn message(&self, index: u64) -> Message {
        Message::text(format!("{}{index:016}{}", self.to_receiver, self.message_fill))
    }

    fn delivered(&self, id: &str) -> Option<Message> {
        let frame = || Message::text(format!("{}{id}{}", self.to_sender, self.delivered_fill));
        // A broadcast is not acknowledged: it measures what ready-made frames can do at best.
        (!self.is_room).then(frame)
    }

    fn pong(&self) -> Message {
        Message::text("")
    }

    fn read(&self, frame: &Message, on_incoming: &mut dyn FnMut(Incoming<'_>)) {
        if let Message::Text(text) = frame {
            on_incoming(parse(text.as_str()).unwrap_or(Incoming::Unreadable));
        }
    }
}

fn parse(text: &str) -> Option<Incoming<'_>> {
    let id = text.get(ADDRESS_BYTES..HEAD_BYTES)?;
    let index: u64 = id.parse().ok()?;
    // One sender, and a relay refuses nothing: the seq follows from the number.
    let seq = index + 1;
    match text.as_bytes().first()? {
        b'S' => Some(Incoming::Saved { index, seq, id: "" }),
        b'M' => Some(Incoming::Pushed { index, seq, id }),
        // A room has several senders, and the relay assigns no seq.
        b'B' => Some(Incoming::Pushed { index, seq: 0, id }),
        b'A' => Some(Incoming::Delivered { seq }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::parsed;
    use crate::dialects::{Recipient, Typed};

    #[test]
    fn frames_are_as_long_as_the_typed_ones() {
        let id = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let pairs: [(Box<dyn Codec>, Box<dyn Codec>); 2] = [
            (
                Box::new(BareCodec::pair(400, 401, 200)),
                Box::new(Typed::new(
                    Recipient::Person { from: "b01234567-400", to: "b01234567-401" },
                    200,
                )),
            ),
            (
                Box::new(BareCodec::room(1, 200)),
                Box::new(Typed::new(Recipient::Group("abcdefghijklmnopqrstuvwxyz"), 200)),
            ),
        ];
        for (bare, typed) in pairs {
            let message = (bare.message(12_345).len(), typed.message(12_345).len());
            assert!(message.0.abs_diff(message.1) <= 4, "{message:?}");
            if let Some(delivered) = bare.delivered(&id[..16]) {
                let typed = typed.delivered(id).expect("a receipt").len();
                assert!(delivered.len().abs_diff(typed) <= 4, "{typed}");
            }
        }
    }

    #[test]
    fn hears_itself() {
        let pair = BareCodec::pair(1, 2, 10);
        let id = "0000000000000007";
        let pushed = format!("{:?}", Incoming::Pushed { index: 7, seq: 8, id });
        assert_eq!(parsed(&pair, &pair.message(7)), [pushed.as_str()]);
        let delivered = pair.delivered(id).expect("a receipt");
        assert_eq!(parsed(&pair, &delivered), [format!("{:?}", Incoming::Delivered { seq: 8 })]);
        assert_eq!(parsed(&pair, &Message::text("S")), ["Unreadable"]);
        let room = BareCodec::room(3, 10);
        let pushed = format!("{:?}", Incoming::Pushed { index: 7, seq: 0, id });
        assert_eq!(parsed(&room, &room.message(7)), [pushed]);
        assert_eq!(room.delivered(id), None);
    }
}
