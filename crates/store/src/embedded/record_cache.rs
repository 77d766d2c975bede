//! A bounded cache of records that are read often.

use std::hash::Hash;
use std::sync::Arc;

use super::poison::EngineFault;
use super::sharded_map::ShardedMap;

/// Shared values by their keys.
pub(crate) struct RecordCache<K, V>(ShardedMap<K, Arc<V>>);

impl<K: Hash + Eq + Clone, V> RecordCache<K, V> {
    pub(crate) fn new(max: usize) -> Self {
        Self(ShardedMap::new(max))
    }

    /// Returns the value, cached or as `load` reads it. Missing values are not cached, so that
    /// asking for many costs no memory.
    pub(crate) fn get(
        &self,
        key: &K,
        load: impl FnOnce() -> Result<Option<V>, EngineFault>,
    ) -> Result<Option<Arc<V>>, EngineFault> {
        let mut shard = self.0.lock_shard(key);
        if let Some(value) = shard.get(key) {
            return Ok(Some(Arc::clone(value)));
        }
        let Some(value) = load()?.map(Arc::new) else { return Ok(None) };
        self.0.insert(&mut shard, key.clone(), Arc::clone(&value), |_| true);
        Ok(Some(value))
    }

    /// Caches a value that became durable, or removes one that was deleted.
    pub(crate) fn publish(&self, key: K, value: Option<Arc<V>>) {
        let mut shard = self.0.lock_shard(&key);
        match value {
            Some(value) => self.0.insert(&mut shard, key, value, |_| true),
            None => drop(shard.remove(&key)),
        }
    }
}
