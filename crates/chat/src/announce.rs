//! From the store to everybody: what became durable is published, in order.

use std::sync::Arc;

use crate::bus::Bus;
use crate::command::Event;
use crate::model::Kept;
use crate::store::Committed;

/// Publishes each durable message and change.
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
        for kept in batch {
            self.bus.publish(match kept {
                Kept::Message { message, origin, members } => Event::Message {
                    message: Arc::clone(message),
                    origin: *origin,
                    members: *members,
                },
                Kept::Change { change, origin } => {
                    Event::Change { change: Arc::clone(change), origin: *origin }
                }
            });
        }
    }
}
