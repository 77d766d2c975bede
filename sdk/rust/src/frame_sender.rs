//! Sends frames while there is a connection.
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::frames::ClientFrame;
use crate::rate_limiter::RateLimiter;

/// Sends frames while there is a connection.
pub(crate) struct FrameSender {
    sender: Option<mpsc::UnboundedSender<String>>,
    /// The frame limit of the connection.
    pub(crate) rate: RateLimiter,
}

impl FrameSender {
    pub(crate) fn new(now: Instant) -> Self {
        Self { sender: None, rate: RateLimiter::new(now) }
    }

    pub(crate) fn connect(&mut self, sender: mpsc::UnboundedSender<String>) {
        self.sender = Some(sender);
    }

    pub(crate) fn disconnect(&mut self) {
        self.sender = None;
    }

    pub(crate) fn send(&self, frame: &ClientFrame) -> bool {
        self.sender.is_some() && self.write(frame.text())
    }

    /// Returns whether it was handed to the socket.
    pub(crate) fn write(&self, text: String) -> bool {
        self.sender.as_ref().is_some_and(|sender| sender.send(text).is_ok())
    }
}
