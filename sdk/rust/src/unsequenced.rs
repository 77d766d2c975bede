//! Messages without a seq.
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::types::Message;

/// Messages without a seq, by id, in the order in which they came.
#[derive(Default)]
pub(crate) struct Unsequenced {
    next_position: u64,
    positions: HashMap<String, u64>,
    messages: BTreeMap<u64, Arc<Message>>,
}

impl Unsequenced {
    /// Adds or replaces a message.
    pub(crate) fn set(&mut self, id: &str, message: Arc<Message>) {
        self.next_position += 1;
        let position = *self.positions.entry(id.to_owned()).or_insert(self.next_position);
        self.messages.insert(position, message);
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Arc<Message>> {
        self.messages.get(self.positions.get(id)?)
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<Arc<Message>> {
        self.messages.remove(&self.positions.remove(id)?)
    }

    /// Removes and returns all, in order.
    pub(crate) fn take_all(&mut self) -> Vec<Arc<Message>> {
        self.positions.clear();
        std::mem::take(&mut self.messages).into_values().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.messages.values()
    }
}
