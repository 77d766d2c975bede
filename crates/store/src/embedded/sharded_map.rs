//! A bounded map in memory, in front of the disk, shared by many threads.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

const SHARDS: usize = 64;

/// A map in shards with a lock each. A missing value is loaded under the shard's lock, so that a
/// value that was read before a commit cannot overwrite the one published after it.
pub(crate) struct ShardedMap<K, V> {
    shards: Vec<Mutex<HashMap<K, V>>>,
    hasher: RandomState,
    shard_max: usize,
}

impl<K: Hash + Eq, V> ShardedMap<K, V> {
    /// Creates a map of at most about so many entries.
    pub(crate) fn new(max: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, hasher: RandomState::new(), shard_max: (max / SHARDS).max(16) }
    }

    /// Locks the shard of a key.
    pub(crate) fn lock_shard(&self, key: &K) -> MutexGuard<'_, HashMap<K, V>> {
        let hash = usize::try_from(self.hasher.hash_one(key) % SHARDS as u64).unwrap_or(0);
        // Entries are inserted as whole values: a panic elsewhere leaves none half-done.
        self.shards[hash].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inserts an entry into a locked shard. If the shard is full, drops about half of the entries
    /// that may go.
    pub(crate) fn insert(
        &self,
        shard: &mut HashMap<K, V>,
        key: K,
        value: V,
        may_go: impl Fn(&V) -> bool,
    ) {
        if shard.len() >= self.shard_max {
            let mut odd = false;
            shard.retain(|_, value| {
                odd = !odd;
                odd || !may_go(value)
            });
        }
        shard.insert(key, value);
    }
}
