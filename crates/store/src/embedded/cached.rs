//! Records that are read often: a bounded part of them in memory, the rest on disk.

use std::hash::Hash;
use std::sync::Arc;

use super::poison::Fault;
use super::shards::Shards;

/// Shared values by their keys.
pub(crate) struct Cached<K, V>(Shards<K, Arc<V>>);

impl<K: Hash + Eq + Clone, V> Cached<K, V> {
    pub(crate) fn new(max: usize) -> Self {
        Self(Shards::new(max))
    }

    /// The value, from memory or as `load` finds it. What is not there is not remembered, so that
    /// asking for many costs no memory.
    pub(crate) fn get(
        &self,
        key: &K,
        load: impl FnOnce() -> Result<Option<V>, Fault>,
    ) -> Result<Option<Arc<V>>, Fault> {
        let mut part = self.0.lock(key);
        if let Some(value) = part.get(key) {
            return Ok(Some(Arc::clone(value)));
        }
        let Some(value) = load()?.map(Arc::new) else { return Ok(None) };
        self.0.insert(&mut part, key.clone(), Arc::clone(&value), |_| true);
        Ok(Some(value))
    }

    /// Takes over what became durable.
    pub(crate) fn publish(&self, key: K, value: Option<Arc<V>>) {
        let mut part = self.0.lock(&key);
        match value {
            Some(value) => self.0.insert(&mut part, key, value, |_| true),
            None => drop(part.remove(&key)),
        }
    }
}
