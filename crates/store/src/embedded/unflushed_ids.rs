//! Message ids that are in no file yet.
//!
//! Every new message looks up its id, and almost none is found. The ids are random, written once
//! and never read in order, so until they are flushed a hash map is faster than the sorted memtable
//! of a tree. It is many small maps by the id's first byte: one large map would stop the committer
//! for milliseconds whenever it grows, and its ids could only be sorted all at once.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::engine::Slice;

const PARTS: usize = 256;

/// Ids and their records, by the first byte of the id.
struct IdMap(Vec<HashMap<Slice, Slice>>);

impl Default for IdMap {
    fn default() -> Self {
        Self((0..PARTS).map(|_| HashMap::new()).collect())
    }
}

impl IdMap {
    fn get(&self, id: &[u8]) -> Option<&Slice> {
        self.0[part(id)].get(id)
    }
}

fn part(id: &[u8]) -> usize {
    id.first().copied().map_or(0, usize::from)
}

/// Ids that wait to be flushed.
#[derive(Clone)]
pub(crate) struct SealedIds(Arc<IdMap>);

impl SealedIds {
    /// Returns all ids and their records in ascending order.
    pub(crate) fn sorted(&self) -> impl Iterator<Item = (Slice, Slice)> {
        self.0.0.iter().flat_map(|part| {
            let mut ids: Vec<_> = part.iter().map(|(id, at)| (id.clone(), at.clone())).collect();
            ids.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            ids
        })
    }
}

/// The ids since the last seal, and sealed ones that wait to be flushed, oldest first.
#[derive(Default)]
pub(crate) struct UnflushedIds {
    active: RwLock<IdMap>,
    sealed: RwLock<Vec<SealedIds>>,
}

impl UnflushedIds {
    /// Inserts an id; returns about how many bytes it takes.
    pub(crate) fn insert(&self, id: Slice, record: Slice) -> u64 {
        let bytes = 2 * size_of::<Slice>() + id.len() + record.len();
        let mut active = self.active.write().unwrap_or_else(PoisonError::into_inner);
        active.0[part(&id)].insert(id, record);
        bytes as u64
    }

    /// Returns the record of an id that is in no file yet.
    pub(crate) fn get(&self, id: &[u8]) -> Option<Slice> {
        let active = self.active.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = active.get(id) {
            return Some(record.clone());
        }
        // The read lock on `active` is still held, so that no seal moves the id between the two
        // lookups.
        let sealed = self.sealed.read().unwrap_or_else(PoisonError::into_inner);
        sealed.iter().find_map(|ids| ids.0.get(id).cloned())
    }

    /// Seals the active ids and starts new maps.
    pub(crate) fn seal(&self) {
        let mut active = self.active.write().unwrap_or_else(PoisonError::into_inner);
        if active.0.iter().all(HashMap::is_empty) {
            return;
        }
        let ids = SealedIds(Arc::new(std::mem::take(&mut *active)));
        self.sealed.write().unwrap_or_else(PoisonError::into_inner).push(ids);
    }

    pub(crate) fn oldest_sealed(&self) -> Option<SealedIds> {
        self.sealed.read().unwrap_or_else(PoisonError::into_inner).first().cloned()
    }

    /// Removes the oldest sealed ids: they are in a file now.
    pub(crate) fn remove_oldest_sealed(&self) {
        let oldest = self.sealed.write().unwrap_or_else(PoisonError::into_inner).remove(0);
        drop(oldest); // without the lock: it takes long
    }
}
