//! The bus of a single node: everybody concerned is here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use nexo_chat::Boxed;
use nexo_chat::bus::{Bus, Listener, Place};
use nexo_chat::command::Event;
use nexo_chat::ids::{ConnectionId, ConversationId, UserId};

/// Hands events straight to this node's listener, in the publisher's own thread: the listener only
/// fills queues, so nobody waits.
#[derive(Default)]
pub struct Local {
    listener: OnceLock<Arc<dyn Listener>>,
    places: Mutex<HashMap<UserId, Vec<Place>>>,
}

impl Local {
    /// A bus nobody listens to yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn places_now(&self) -> MutexGuard<'_, HashMap<UserId, Vec<Place>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bus for Local {
    fn publish(&self, event: Event) {
        if let Some(listener) = self.listener.get() {
            listener.hear(&event);
        }
    }

    fn publish_all(&self, events: Vec<Event>) {
        if let Some(listener) = self.listener.get() {
            listener.hear_all(&events);
        }
    }

    fn subscribe(&self, listener: Arc<dyn Listener>) {
        // A second listener would be a mistake in the wiring; the first one stays.
        let is_first = self.listener.set(listener).is_ok();
        debug_assert!(is_first, "one listener per node");
    }

    fn claim(&self, place: Place) -> Boxed<'_, Vec<Place>> {
        let mut places = self.places_now();
        let mine = places.entry(place.user.clone()).or_default();
        let before = mine.clone();
        mine.push(place);
        Box::pin(std::future::ready(before))
    }

    fn release(&self, user: &UserId, connection: ConnectionId) {
        let mut places = self.places_now();
        if let Some(mine) = places.get_mut(user) {
            mine.retain(|place| place.connection != connection);
            if mine.is_empty() {
                places.remove(user);
            }
        }
    }

    fn places(&self, user: &UserId) -> Boxed<'_, Vec<Place>> {
        let mine = self.places_now().get(user).cloned().unwrap_or_default();
        Box::pin(std::future::ready(mine))
    }

    fn tune_in(&self, _groups: Vec<ConversationId>) -> Boxed<'_, bool> {
        Box::pin(std::future::ready(false)) // everything published is heard here
    }

    fn tune_out(&self, _group: &ConversationId) {}

    fn health(&self) -> Result<(), String> {
        Ok(())
    }
}
