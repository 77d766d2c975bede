//! The way to the server while there is one.
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::frames::ClientFrame;
use crate::pace::Pace;

/// The way to the server while there is one.
pub(crate) struct Wire {
    line: Option<mpsc::UnboundedSender<String>>,
    /// How many frames the connection allows.
    pub(crate) frames: Pace,
}

impl Wire {
    pub(crate) fn new(now: Instant) -> Self {
        Self { line: None, frames: Pace::new(now) }
    }

    pub(crate) fn up(&mut self, line: mpsc::UnboundedSender<String>) {
        self.line = Some(line);
    }

    pub(crate) fn down(&mut self) {
        self.line = None;
    }

    pub(crate) fn send(&self, frame: &ClientFrame) -> bool {
        self.line.is_some() && self.write(frame.text())
    }

    /// Whether it went out, as far as one can know.
    pub(crate) fn write(&self, text: String) -> bool {
        self.line.as_ref().is_some_and(|line| line.send(text).is_ok())
    }
}
