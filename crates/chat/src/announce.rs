//! From the store to everybody: what became durable is published, in order.

use std::sync::Arc;

use crate::bus::Bus;
use crate::command::Event;
use crate::model::Kept;
use crate::store::Committed;

/// Publishes each durable message and change, and what people are told beside them.
pub struct Announcer {
    bus: Arc<dyn Bus>,
}

impl Announcer {
    /// Announces on this bus.
    pub fn new(bus: Arc<dyn Bus>) -> Self {
        Self { bus }
    }
}

impl Committed for Announcer {
    fn committed(&self, batch: &[Kept]) {
        self.bus.publish_all(batch.iter().map(event).collect());
    }
}

fn event(kept: &Kept) -> Event {
    match kept.clone() {
        Kept::Message { message, origin, members, change_seq } => {
            Event::Message { message, origin, members, change_seq }
        }
        Kept::Change { change, origin, members } => Event::Change { change, origin, members },
        Kept::Asked { request, to } => Event::JoinRequested { request, to },
        Kept::Answered { request, accepted, by, at } => {
            Event::JoinAnswered { request, accepted, by, at }
        }
        Kept::Chose { user, conversation, settings } => {
            Event::Settings { user, conversation, settings }
        }
    }
}
