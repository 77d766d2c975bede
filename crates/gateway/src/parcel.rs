//! An event as frames: each form of it is encoded once, and shared.

use nexo_chat::command::Event;
use nexo_chat::ids::{Millis, UserId};
use nexo_chat::policy::delivery::{Way, is_important};
use nexo_wire::dialect::{Dialect, View};

use crate::connection::Connection;
use crate::measure::Measures;
use crate::outbox::Frame;

/// An event on its way to many: each form of it is encoded once, when it is first needed.
pub(crate) struct Parcel<'a> {
    pub(crate) event: &'a Event,
    pub(crate) way: Way,
    pub(crate) now: Millis,
    /// A handful: as many as there are dialects and ways to look at it.
    forms: Vec<((Dialect, View), Option<Frame>)>,
    /// How many got it, counted when all have.
    pub(crate) pushed: u64,
    measures: &'a Measures,
}

impl Drop for Parcel<'_> {
    fn drop(&mut self) {
        self.measures.pushed.increment(self.pushed);
    }
}

impl<'a> Parcel<'a> {
    pub(crate) fn new(event: &'a Event, way: Way, now: Millis, measures: &'a Measures) -> Self {
        Self { event, way, now, forms: Vec::new(), pushed: 0, measures }
    }

    /// The frame for a socket, if there is anything to say to it.
    pub(crate) fn frame(&mut self, connection: &Connection) -> Option<Frame> {
        if self.way == Way::Nothing {
            return None;
        }
        let view = self.view(&connection.user);
        let form = (connection.dialect, view);
        if let Some((_, frame)) = self.forms.iter().find(|(known, _)| *known == form) {
            return frame.clone();
        }
        let frame = connection.dialect.event(self.event, view).map(Frame::from);
        self.forms.push((form, frame.clone()));
        frame
    }

    fn view(&self, user: &UserId) -> View {
        match self.event {
            Event::Message { message, .. } => View {
                is_important: is_important(message, user),
                is_own: message.sender == *user,
                is_notice: self.way == Way::Notify,
            },
            Event::Change { change, .. } => View { is_own: change.by == *user, ..View::default() },
            Event::Receipt(receipt) => View { is_own: receipt.by == *user, ..View::default() },
            _ => View::default(),
        }
    }
}
