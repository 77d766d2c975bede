//! Message ids that are in no file yet.
//!
//! Every new message looks up its id, and almost none is found. The ids are random, written once
//! and never read in order, so until they are flushed a hash map is faster than the sorted memtable
//! of a tree.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::engine::Slice;

type IdMap = HashMap<Slice, Slice>;

/// The ids since the last seal, and sealed ones that wait to be flushed, oldest first.
#[derive(Default)]
pub(crate) struct UnflushedIds {
    active: RwLock<IdMap>,
    sealed: RwLock<Vec<Arc<IdMap>>>,
}

impl UnflushedIds {
    /// Inserts an id; returns about how many bytes it takes.
    pub(crate) fn insert(&self, id: Slice, record: Slice) -> u64 {
        let bytes = 2 * size_of::<Slice>() + id.len() + record.len();
        self.active.write().unwrap_or_else(PoisonError::into_inner).insert(id, record);
        bytes as u64
    }

    /// Returns the record of an id that is in no file yet.
    pub(crate) fn get(&self, id: &[u8]) -> Option<Slice> {
        let collected = self.active.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = collected.get(id) {
            return Some(record.clone());
        }
        // The read lock on `active` is still held, so that no seal moves the id between the two
        // lookups.
        let sealed = self.sealed.read().unwrap_or_else(PoisonError::into_inner);
        sealed.iter().find_map(|ids| ids.get(id).cloned())
    }

    /// Seals the active ids and starts a new map.
    pub(crate) fn seal(&self) {
        let mut collected = self.active.write().unwrap_or_else(PoisonError::into_inner);
        if collected.is_empty() {
            return;
        }
        let ids = Arc::new(std::mem::take(&mut *collected));
        self.sealed.write().unwrap_or_else(PoisonError::into_inner).push(ids);
    }

    /// Returns the oldest sealed ids, sorted.
    pub(crate) fn oldest_sealed(&self) -> Option<Vec<(Slice, Slice)>> {
        let sealed = self.sealed.read().unwrap_or_else(PoisonError::into_inner);
        let oldest = Arc::clone(sealed.first()?);
        drop(sealed);
        let mut ids: Vec<_> = oldest.iter().map(|(id, at)| (id.clone(), at.clone())).collect();
        ids.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Some(ids)
    }

    /// Drops the oldest sealed ids: they are in a file now.
    pub(crate) fn drop_oldest_sealed(&self) {
        self.sealed.write().unwrap_or_else(PoisonError::into_inner).remove(0);
    }
}
