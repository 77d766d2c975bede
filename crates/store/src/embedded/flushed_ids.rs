//! Message ids in the tables of their tree.
//!
//! Every new message looks up its id. The library would take the lock of the tree for that, which it
//! holds while it syncs the list of the tree's files; so the lookup uses a list of its own, which is
//! replaced after each flush and compaction.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use lsm_tree::table::filter::standard_bloom::Builder;
use lsm_tree::{AbstractTree, AnyTree, SeqNo};

use super::engine::Slice;

type Lookup = dyn Fn(&[u8]) -> lsm_tree::Result<Option<Slice>> + Send + Sync;

pub(crate) struct FlushedIds {
    tree: AnyTree,
    /// Looks up an id in the tables that the tree had when this was made.
    tables: RwLock<Arc<Lookup>>,
    /// Locked from looking at the tree's tables until they are taken over: the flusher and the
    /// compactor both do that, and older tables must not replace newer ones. An id that was flushed
    /// in between would not be found, and its message stored twice.
    refreshing: Mutex<()>,
    /// The tree's memtable, which is empty otherwise, has records too.
    is_in_memtable: AtomicBool,
}

impl FlushedIds {
    pub(crate) fn of(tree: &AnyTree) -> Self {
        let tables = RwLock::new(lookup(tree));
        let (refreshing, is_in_memtable) = (Mutex::default(), AtomicBool::new(false));
        Self { tree: tree.clone(), tables, refreshing, is_in_memtable }
    }

    pub(crate) fn get(&self, id: &[u8]) -> lsm_tree::Result<Option<Slice>> {
        if self.is_in_memtable.load(Ordering::Acquire) {
            return self.tree.get(id, SeqNo::MAX);
        }
        let tables = Arc::clone(&self.tables.read().unwrap_or_else(PoisonError::into_inner));
        tables(id)
    }

    /// Takes over the tree's tables after they changed.
    pub(crate) fn refresh(&self) {
        let _locked = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tables = lookup(&self.tree);
        std::mem::swap(
            &mut *self.tables.write().unwrap_or_else(PoisonError::into_inner),
            &mut tables,
        );
        // The old ones are dropped without the lock: that may delete files.
    }

    /// Makes known that the tree itself was written to.
    pub(crate) fn use_memtable(&self) {
        self.is_in_memtable.store(true, Ordering::Release);
    }
}

fn lookup(tree: &AnyTree) -> Arc<Lookup> {
    let version = tree.current_version();
    Arc::new(move |id| {
        let hash = Builder::get_hash(id);
        let runs = version.iter_levels().flat_map(|level| level.iter());
        for table in runs.filter_map(|run| run.get_for_key(id)) {
            if let Some(found) = table.get(id, SeqNo::MAX, hash)? {
                return Ok((!found.is_tombstone()).then_some(found.value));
            }
        }
        Ok(None)
    })
}
