//! An event as frames: encoded once per dialect and view, and shared by all recipients.

use nexo_chat::event::Event;
use nexo_chat::ids::UserId;
use nexo_chat::policy::delivery::{DeliveryMode, is_important};
use nexo_wire::dialect::{Dialect, View};

use crate::meters::Meters;
use crate::socket::connection::Connection;
use crate::socket::outbox::OutFrame;

/// An event that is being pushed to many sockets. Each encoding is made when the first recipient
/// needs it.
pub(crate) struct EncodedEvent<'a> {
    pub(crate) event: &'a Event,
    pub(crate) mode: DeliveryMode,
    /// A list, not a map: there are only a few dialects and views.
    encodings: Vec<((Dialect, View), Option<OutFrame>)>,
    /// How many outboxes took it; added to the metric once, on drop.
    pub(crate) pushed: u64,
    meters: &'a Meters,
}

impl Drop for EncodedEvent<'_> {
    fn drop(&mut self) {
        self.meters.pushed.increment(self.pushed);
    }
}

impl<'a> EncodedEvent<'a> {
    pub(crate) fn new(event: &'a Event, meters: &'a Meters) -> Self {
        let mode = DeliveryMode::Push;
        Self { event, mode, encodings: Vec::new(), pushed: 0, meters }
    }

    /// The frame for a connection, if its dialect has one for this event.
    pub(crate) fn frame(&mut self, connection: &Connection) -> Option<OutFrame> {
        if self.mode == DeliveryMode::Nothing {
            return None;
        }
        let view = self.view(&connection.user);
        let key = (connection.dialect, view);
        if let Some((_, frame)) = self.encodings.iter().find(|(known, _)| *known == key) {
            return frame.clone();
        }
        let frame = connection.dialect.event(self.event, view).map(OutFrame::from);
        self.encodings.push((key, frame.clone()));
        frame
    }

    fn view(&self, user: &UserId) -> View {
        match self.event {
            Event::Message { message, .. } => View {
                is_important: is_important(message, user),
                is_own: message.sender == *user,
                is_notice: self.mode == DeliveryMode::Notify,
            },
            Event::Change { change, .. } => View { is_own: change.by == *user, ..View::default() },
            Event::Receipt(receipt) => View { is_own: receipt.by == *user, ..View::default() },
            _ => View::default(),
        }
    }
}
