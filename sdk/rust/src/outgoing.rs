//! Our own messages without a place.
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::types::Message;

/// Ours on their way, in the order they were said.
#[derive(Default)]
pub(crate) struct Outgoing {
    count: u64,
    places: HashMap<String, u64>,
    messages: BTreeMap<u64, Arc<Message>>,
}

impl Outgoing {
    /// One more, or news about one that is there.
    pub(crate) fn set(&mut self, message: Arc<Message>) {
        let next = self.count + 1;
        let place = *self.places.entry(message.client_msg_id.clone()).or_insert(next);
        self.count = self.count.max(place);
        self.messages.insert(place, message);
    }

    pub(crate) fn get(&self, client_msg_id: &str) -> Option<&Arc<Message>> {
        self.messages.get(self.places.get(client_msg_id)?)
    }

    pub(crate) fn remove(&mut self, client_msg_id: &str) {
        if let Some(place) = self.places.remove(client_msg_id) {
            self.messages.remove(&place);
        }
    }

    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.messages.values()
    }
}
