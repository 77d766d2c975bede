//! What clients send and receive, independent of the dialect.

use tokio_tungstenite::tungstenite::Message;

/// A parsed frame, or a part of one, as far as a load generator needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incoming<'a> {
    /// ACK(saved): message number `index` is durable at `seq`; `id` is what a receipt names. The receiver
    /// gets it too if it got a preview.
    Saved {
        index: u64,
        seq: u64,
        id: &'a str,
    },
    /// ACK(accepted): the sender's message number `index` will be durable.
    Accepted {
        index: u64,
    },
    /// A preview: a message that is not durable yet.
    Shown {
        index: u64,
    },
    /// A pushed message; `id` is what its receipt names.
    Pushed {
        index: u64,
        seq: u64,
        id: &'a str,
    },
    /// A receipt: all messages up to `seq` are delivered.
    Delivered {
        seq: u64,
    },
    /// A refusal, of a message if the answer names one.
    Refused {
        index: Option<u64>,
        reason: &'a str,
    },
    /// The end of a page of missed messages.
    Resent {
        has_more: bool,
    },
    /// The connection is authenticated.
    Welcome,
    Ping,
    Other,
    Unreadable,
}

/// Encodes and parses the frames of one sender and its receivers.
pub(crate) trait Codec: Send + Sync {
    /// The sender's message number `index`.
    fn message(&self, index: u64) -> Message;
    /// The receiver's acknowledgement of a pushed message; `None` if the dialect has no receipts.
    fn delivered(&self, id: &str) -> Option<Message>;
    /// The answer to [`Incoming::Ping`].
    fn pong(&self) -> Message;
    /// Parses a received frame, and calls `on_incoming` for each message in it.
    fn read(&self, frame: &Message, on_incoming: &mut dyn FnMut(Incoming<'_>));
}

/// The parsed frame as text, for tests.
#[cfg(test)]
pub(crate) fn parsed(codec: &dyn Codec, frame: &Message) -> Vec<String> {
    let mut all = Vec::new();
    codec.read(frame, &mut |incoming| all.push(format!("{incoming:?}")));
    all
}
