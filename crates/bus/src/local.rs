//! The bus of a single node: every listener is here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use nexo_chat::Boxed;
use nexo_chat::bus::{Bus, Listener, Registration};
use nexo_chat::event::Event;
use nexo_chat::ids::{ConnectionId, ConversationId, UserId};

/// Calls this node's listener directly, in the publisher's thread: the listener only fills queues,
/// so the publisher does not wait.
#[derive(Default)]
pub struct LocalBus {
    listener: OnceLock<Arc<dyn Listener>>,
    registrations: Mutex<HashMap<UserId, Vec<Registration>>>,
}

impl LocalBus {
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<UserId, Vec<Registration>>> {
        self.registrations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bus for LocalBus {
    fn publish(&self, event: Event) {
        if let Some(listener) = self.listener.get() {
            listener.on_event(&event);
        }
    }

    fn publish_all(&self, events: &[Event]) {
        if let Some(listener) = self.listener.get() {
            listener.on_events(events);
        }
    }

    fn set_listener(&self, listener: Arc<dyn Listener>) {
        // A second listener would be a mistake in the wiring; the first one stays.
        let is_first = self.listener.set(listener).is_ok();
        debug_assert!(is_first, "one listener per node");
    }

    fn register(&self, registration: Registration) -> Boxed<'_, Vec<Registration>> {
        let mut registrations = self.lock();
        let own = registrations.entry(registration.user.clone()).or_default();
        let before = own.clone();
        own.push(registration);
        Box::pin(std::future::ready(before))
    }

    fn unregister(&self, user: &UserId, connection: ConnectionId) {
        let mut registrations = self.lock();
        if let Some(own) = registrations.get_mut(user) {
            own.retain(|registration| registration.connection != connection);
            if own.is_empty() {
                registrations.remove(user);
            }
        }
    }

    fn registrations(&self, user: &UserId) -> Boxed<'_, Vec<Registration>> {
        let own = self.lock().get(user).cloned().unwrap_or_default();
        Box::pin(std::future::ready(own))
    }

    fn subscribe_groups(&self, _groups: Vec<ConversationId>) -> Boxed<'_, bool> {
        Box::pin(std::future::ready(false)) // every event reaches this node anyway
    }

    fn unsubscribe_group(&self, _group: &ConversationId) {}

    fn health(&self) -> Result<(), String> {
        Ok(())
    }
}
