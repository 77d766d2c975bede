//! Message ids in the tables of their tree.
//!
//! Every new message looks up its id. The library would take the lock of the tree for that, which it
//! holds while it syncs the list of the tree's files; so the lookup uses a list of its own, which is
//! replaced after each flush and compaction.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use lsm_tree::table::filter::standard_bloom::Builder;
use lsm_tree::{AbstractTree, AnyTree, SeqNo};

use super::engine::Slice;

pub(crate) struct FlushedIds {
    tree: AnyTree,
    tables: RwLock<Arc<Tables>>,
    /// The tree's memtable, which is empty otherwise, has records too.
    is_in_memtable: AtomicBool,
}

impl FlushedIds {
    pub(crate) fn of(tree: &AnyTree) -> Self {
        let tables = RwLock::new(Arc::new(Tables::of(tree)));
        Self { tree: tree.clone(), tables, is_in_memtable: AtomicBool::new(false) }
    }

    pub(crate) fn get(&self, id: &[u8]) -> lsm_tree::Result<Option<Slice>> {
        if self.is_in_memtable.load(Ordering::Acquire) {
            return self.tree.get(id, SeqNo::MAX);
        }
        let tables = Arc::clone(&self.tables.read().unwrap_or_else(PoisonError::into_inner));
        (tables.find)(id)
    }

    /// Takes over the tree's tables after they changed.
    pub(crate) fn refresh(&self) {
        self.replace_if_newer(Tables::of(&self.tree));
    }

    /// The flusher and the compactor both refresh: tables that one of them looked up before the
    /// other changed them must not come back. An id that was flushed in between would not be found,
    /// and its message stored twice.
    fn replace_if_newer(&self, tables: Tables) {
        let mut tables = Arc::new(tables);
        let mut current = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        if tables.version > current.version {
            std::mem::swap(&mut *current, &mut tables);
        }
        drop(current);
        drop(tables); // without the lock: it may delete files
    }

    /// Makes known that the tree itself was written to.
    pub(crate) fn use_memtable(&self) {
        self.is_in_memtable.store(true, Ordering::Release);
    }
}

/// The tables that the tree had at a moment.
struct Tables {
    /// Grows with every change of the tree's tables.
    version: u64,
    /// Looks up an id in them. A function, since the library does not name the type of a version.
    find: Box<Find>,
}

type Find = dyn Fn(&[u8]) -> lsm_tree::Result<Option<Slice>> + Send + Sync;

impl Tables {
    fn of(tree: &AnyTree) -> Self {
        let version = tree.current_version();
        Self {
            version: version.id(),
            find: Box::new(move |id| {
                let hash = Builder::get_hash(id);
                let runs = version.iter_levels().flat_map(|level| level.iter());
                for table in runs.filter_map(|run| run.get_for_key(id)) {
                    if let Some(found) = table.get(id, SeqNo::MAX, hash)? {
                        return Ok((!found.is_tombstone()).then_some(found.value));
                    }
                }
                Ok(None)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use lsm_tree::{Config, SequenceNumberCounter};

    use super::*;

    #[test]
    fn older_tables_never_replace_newer_ones() {
        let folder = tempfile::tempdir().unwrap();
        let numbers = SequenceNumberCounter::default();
        let tree = Config::new(&folder, numbers.clone(), numbers).open().unwrap();
        let ids = FlushedIds::of(&tree);
        // The compactor looks at the tables, then the flusher adds one and takes it over.
        let older = Tables::of(&tree);
        let mut file = tree.ingestion().unwrap();
        file.write("id", "record").unwrap();
        file.finish().unwrap();
        assert_eq!(ids.get(b"id").unwrap(), None, "until the list is replaced");
        ids.refresh();
        ids.replace_if_newer(older);
        assert_eq!(ids.get(b"id").unwrap().as_deref(), Some(&b"record"[..]));
    }
}
