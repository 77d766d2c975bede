//! Message ids that no file has yet.
//!
//! Every new message asks whether its id is known, and almost none is. The ids are random, written
//! once and never looked at in order, so until they are written out a hash map serves them better
//! than the sorted memory of a tree.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::engine::Bytes;

type Ids = HashMap<Bytes, Bytes>;

/// The ids collected now, and those that wait to be written out, oldest first.
#[derive(Default)]
pub(crate) struct Young {
    collected: RwLock<Ids>,
    sealed: RwLock<Vec<Arc<Ids>>>,
}

impl Young {
    /// Takes an id over; returns about how many bytes it takes.
    pub(crate) fn insert(&self, id: Bytes, record: Bytes) -> u64 {
        let bytes = 2 * size_of::<Bytes>() + id.len() + record.len();
        self.collected.write().unwrap_or_else(PoisonError::into_inner).insert(id, record);
        bytes as u64
    }

    /// The record of an id, if no file has it yet.
    pub(crate) fn get(&self, id: &[u8]) -> Option<Bytes> {
        let collected = self.collected.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = collected.get(id) {
            return Some(record.clone());
        }
        // Still in hand, so that none is being sealed: it would be in neither place.
        let sealed = self.sealed.read().unwrap_or_else(PoisonError::into_inner);
        sealed.iter().find_map(|ids| ids.get(id).cloned())
    }

    /// Begins to collect anew.
    pub(crate) fn seal(&self) {
        let mut collected = self.collected.write().unwrap_or_else(PoisonError::into_inner);
        if collected.is_empty() {
            return;
        }
        let ids = Arc::new(std::mem::take(&mut *collected));
        self.sealed.write().unwrap_or_else(PoisonError::into_inner).push(ids);
    }

    /// The oldest ids that wait to be written out, in order.
    pub(crate) fn oldest(&self) -> Option<Vec<(Bytes, Bytes)>> {
        let sealed = self.sealed.read().unwrap_or_else(PoisonError::into_inner);
        let oldest = Arc::clone(sealed.first()?);
        drop(sealed);
        let mut ids: Vec<_> = oldest.iter().map(|(id, at)| (id.clone(), at.clone())).collect();
        ids.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Some(ids)
    }

    /// They are in a file now.
    pub(crate) fn written_out(&self) {
        self.sealed.write().unwrap_or_else(PoisonError::into_inner).remove(0);
    }
}
