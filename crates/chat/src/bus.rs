//! What the domain needs to spread events. At most once, unordered between conversations, safe to
//! repeat: a hint that is made good by pulling from the store.

use std::sync::Arc;

use crate::Boxed;
use serde::{Deserialize, Serialize};

use crate::command::Event;
use crate::ids::{ConnectionId, ConversationId, LoginId, Platform, UserId};

/// A socket that a user has somewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Whose.
    pub user: UserId,
    /// Which socket.
    pub connection: ConnectionId,
    /// Signed in how.
    pub login: LoginId,
    /// On what device.
    pub platform: Platform,
}

/// Hears events on this node.
pub trait Listener: Send + Sync {
    /// Must not block. Events of one conversation come in the order they were published.
    fn hear(&self, event: &Event);

    /// The same for many that happened together.
    fn hear_all(&self, events: &[Event]) {
        for event in events {
            self.hear(event);
        }
    }

    /// Events may have been missed: what is known from them has to be looked up again. Must not
    /// block.
    fn lost(&self) {}
}

/// Spreads events to the nodes that have listeners.
pub trait Bus: Send + Sync {
    /// Tells everybody concerned, here and elsewhere. Never waits, never fails: what cannot be told
    /// is dropped and counted.
    fn publish(&self, event: Event);

    /// The same for many that happened together, in their order.
    fn publish_all(&self, events: Vec<Event>) {
        for event in events {
            self.publish(event);
        }
    }

    /// Names who hears on this node. Set once, before the first socket.
    fn subscribe(&self, listener: Arc<dyn Listener>);

    /// Notes that a user has a socket here and returns the places they had before, the oldest
    /// first, in one act: of two claims at once, the later one sees the earlier.
    fn claim(&self, place: Place) -> Boxed<'_, Vec<Place>>;

    /// The socket is gone. Repeating it does nothing.
    fn release(&self, user: &UserId, connection: ConnectionId);

    /// The places a user has now, the oldest first.
    fn places(&self, user: &UserId) -> Boxed<'_, Vec<Place>>;

    /// Somebody here hears these groups: what is published of them elsewhere reaches this node from
    /// the moment this returns, or once others can be reached again. Tells whether it did not
    /// before.
    fn tune_in(&self, groups: Vec<ConversationId>) -> Boxed<'_, bool>;

    /// Nobody here hears this group any more.
    fn tune_out(&self, group: &ConversationId);

    /// Whether there may be other nodes at all.
    fn is_shared(&self) -> bool {
        false
    }

    /// Why other nodes cannot be reached now, or `Ok`. What is published meanwhile is heard here
    /// only.
    fn health(&self) -> Result<(), String>;
}
