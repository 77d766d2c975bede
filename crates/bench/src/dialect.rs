//! What people say and hear, whatever the frames look like.

use tokio_tungstenite::tungstenite::Message;

/// A frame, or a part of it, understood as far as a load generator needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incoming<'a> {
    /// Message number `index` is durable, at `seq` of the conversation; `id` is what a receipt names.
    /// Its receiver hears so if it was shown before.
    Saved { index: u64, seq: u64, id: &'a str },
    /// The sender's message number `index` will be durable.
    Accepted { index: u64 },
    /// The receiver was shown a message that is not durable yet.
    Shown { index: u64 },
    /// The receiver was given a message; `id` is what its receipt names.
    Pushed { index: u64, seq: u64, id: &'a str },
    /// The sender was told that all messages up to `seq` are delivered.
    Delivered { seq: u64 },
    /// Something was refused; which message, if the answer says so.
    Refused { index: Option<u64>, reason: &'a str },
    /// A page of what was missed is complete.
    Resent { has_more: bool },
    /// The connection may be used.
    Welcome,
    /// The server wants a sign of life.
    Ping,
    /// Of no interest here.
    Other,
    /// Not understood.
    Unreadable,
}

/// The frames of one sender and those who hear them.
pub(crate) trait Dialect: Send + Sync {
    /// The sender's message number `index`.
    fn message(&self, index: u64) -> Message;
    /// The receiver's acknowledgement of a pushed message; none if senders never hear of it.
    fn delivered(&self, id: &str) -> Option<Message>;
    /// The answer to [`Incoming::Ping`].
    fn pong(&self) -> Message;
    /// Reads a frame that came in on any socket. One frame may hold several messages.
    fn read(&self, frame: &Message, heard: &mut dyn FnMut(Incoming<'_>));
}

/// What a frame says, for tests of dialects.
#[cfg(test)]
pub(crate) fn heard(dialect: &dyn Dialect, frame: &Message) -> Vec<String> {
    let mut all = Vec::new();
    dialect.read(frame, &mut |incoming| all.push(format!("{incoming:?}")));
    all
}
