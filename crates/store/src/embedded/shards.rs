//! A bounded map in memory, in front of the disk, shared by many threads.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

const SHARDS: usize = 64;

/// A map in parts with a lock each. What is not there is loaded under the part's lock, so that a
/// value that was read before a commit cannot overwrite the one published after it.
pub(crate) struct Shards<K, V> {
    parts: Vec<Mutex<HashMap<K, V>>>,
    hasher: RandomState,
    part_max: usize,
}

impl<K: Hash + Eq, V> Shards<K, V> {
    /// A map of about at most so many entries.
    pub(crate) fn new(max: usize) -> Self {
        let parts = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { parts, hasher: RandomState::new(), part_max: (max / SHARDS).max(16) }
    }

    /// The part in which a key is.
    pub(crate) fn lock(&self, key: &K) -> MutexGuard<'_, HashMap<K, V>> {
        let hash = usize::try_from(self.hasher.hash_one(key) % SHARDS as u64).unwrap_or(0);
        // Entries are whole values put in at once: a panic elsewhere leaves none half-done.
        self.parts[hash].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an entry into a locked part, dropping about half of those that may go if it is full.
    pub(crate) fn insert(
        &self,
        part: &mut HashMap<K, V>,
        key: K,
        value: V,
        may_go: impl Fn(&V) -> bool,
    ) {
        if part.len() >= self.part_max {
            let mut odd = false;
            part.retain(|_, value| {
                odd = !odd;
                odd || !may_go(value)
            });
        }
        part.insert(key, value);
    }
}
