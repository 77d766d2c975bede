//! Messages without a place.
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::types::Message;

/// Messages without a place in the conversation, by name, in the order in which they came.
#[derive(Default)]
pub(crate) struct Unplaced {
    count: u64,
    turns: HashMap<String, u64>,
    messages: BTreeMap<u64, Arc<Message>>,
}

impl Unplaced {
    /// One more, or news about one that is there.
    pub(crate) fn set(&mut self, name: &str, message: Arc<Message>) {
        self.count += 1;
        let turn = *self.turns.entry(name.to_owned()).or_insert(self.count);
        self.messages.insert(turn, message);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Message>> {
        self.messages.get(self.turns.get(name)?)
    }

    pub(crate) fn remove(&mut self, name: &str) -> Option<Arc<Message>> {
        self.messages.remove(&self.turns.remove(name)?)
    }

    /// All of them, in order; none is left.
    pub(crate) fn take_all(&mut self) -> Vec<Arc<Message>> {
        self.turns.clear();
        std::mem::take(&mut self.messages).into_values().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.messages.values()
    }
}
