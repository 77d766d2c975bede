//! The contract for spreading events between nodes. Delivery is at most once, unordered between
//! conversations, and may repeat: an event is a hint, and sessions make up for a lost one by
//! reading from the store.

use std::sync::Arc;

use crate::Boxed;
use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::ids::{ConnectionId, ConversationId, LoginId, Platform, UserId};

/// A socket of a user on some node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    pub user: UserId,
    pub connection: ConnectionId,
    pub login: LoginId,
    pub platform: Platform,
}

/// Receives events on this node.
pub trait Listener: Send + Sync {
    /// Must not block. Events of one conversation come in the order they were published.
    fn on_event(&self, event: &Event);

    /// The same for many events that happened together.
    fn on_events(&self, events: &[Event]) {
        for event in events {
            self.on_event(event);
        }
    }

    /// Events may have been lost: sessions must read again what they know from events. Must not
    /// block.
    fn on_loss(&self) {}
}

/// Spreads events to this node's listener and to the other nodes that an event concerns.
pub trait Bus: Send + Sync {
    /// Publishes an event here and to the other nodes it concerns. Never waits, never fails: an
    /// event that cannot be sent is dropped and counted.
    fn publish(&self, event: Event);

    /// The same for many events that happened together, in their order.
    fn publish_all(&self, events: &[Event]) {
        for event in events {
            self.publish(event.clone());
        }
    }

    /// Sets this node's listener, once, before the first socket.
    fn set_listener(&self, listener: Arc<dyn Listener>);

    /// Registers a socket of a user on this node, and returns the registrations the user had
    /// before, the oldest first. Both happen atomically: of two calls at once, the later one sees
    /// the earlier.
    fn register(&self, registration: Registration) -> Boxed<'_, Vec<Registration>>;

    /// Removes a registration. Repeating it does nothing.
    fn unregister(&self, user: &UserId, connection: ConnectionId);

    /// The registrations a user has now on all nodes, the oldest first.
    fn registrations(&self, user: &UserId) -> Boxed<'_, Vec<Registration>>;

    /// Subscribes this node to groups: events of them that other nodes publish reach this node from
    /// the moment this returns, or, while the bus is down, once it is back. Returns whether the
    /// node was not subscribed to one of them before.
    fn subscribe_groups(&self, groups: Vec<ConversationId>) -> Boxed<'_, bool>;

    /// Ends this node's subscription to a group.
    fn unsubscribe_group(&self, group: &ConversationId);

    /// Whether there may be other nodes.
    fn is_shared(&self) -> bool {
        false
    }

    /// Why other nodes cannot be reached now, or `Ok`. Events published meanwhile reach this node
    /// only.
    fn health(&self) -> Result<(), String>;
}
