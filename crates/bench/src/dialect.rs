//! What a pair says and hears, whatever the frames look like.

/// A frame, understood as far as a load generator needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incoming<'a> {
    /// The sender's message number `index` is durable, at `seq` of the conversation.
    Saved { index: u64, seq: u64 },
    /// The receiver was given a message; `id` is what its receipt names.
    Pushed { index: u64, seq: u64, id: &'a str },
    /// The sender was told that all messages up to `seq` are delivered.
    Delivered { seq: u64 },
    /// Something was refused; which message, if the answer says so.
    Refused { index: Option<u64>, reason: &'a str },
    /// The server wants a sign of life.
    Ping,
    /// Of no interest here.
    Other,
    /// Not understood.
    Unreadable,
}

/// The frames of one pair.
pub(crate) trait Dialect: Send + 'static {
    /// The sender's message number `index`.
    fn message(&self, index: u64) -> String;
    /// The receiver's acknowledgement of a pushed message.
    fn delivered(&self, id: &str) -> String;
    /// The answer to [`Incoming::Ping`].
    fn pong(&self) -> String;
    /// Reads a frame that came in on either socket.
    fn read<'a>(&self, text: &'a str) -> Incoming<'a>;
}
