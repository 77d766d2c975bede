//! Moving records from memtables to files, and merging files.

use std::sync::atomic::Ordering;

use lsm_tree::{AbstractTree, AnyTree};

use super::{Engine, catch_panics, tables_folder};
use crate::embedded::batch::Batch;
use crate::embedded::keys::Keyspace;
use crate::embedded::pace::PacedTables;
use crate::embedded::poison::EngineFault;

/// Sorted runs in level 0 that may wait for compaction; beyond it, nothing is flushed.
const L0_RUNS_MAX: usize = 24;
/// Runs in level 0 from which on compaction does not rest.
const L0_RUNS_HURRY: usize = 6;
/// The list of a tree's files has room for 255 runs. A tree that damage keeps from being compacted
/// must stop before.
const RUNS_MAX: usize = 240;

impl Engine {
    /// Seals the memtables and starts new ones; the sealed ones wait for [`Engine::flush`].
    pub(crate) fn seal(&self) {
        self.memtables.seal(&self.trees);
        self.unflushed_ids.seal();
        self.memtable_bytes.store(0, Ordering::Relaxed);
    }

    /// Writes all sealed memtables to files, durably.
    pub(crate) fn flush(&self) -> Result<(), EngineFault> {
        if self.trees.iter().any(|tree| tree.l0_run_count() >= RUNS_MAX) {
            return Err(EngineFault::new(
                "damage kept files from being merged until there were too many: salvage the folder",
            ));
        }
        while self.memtables.flush_oldest(&self.trees, self.oldest_visible(), &self.flush_pace)? {}
        while let Some(ids) = self.unflushed_ids.oldest_sealed() {
            let tree = self.tree(Keyspace::MessageIds);
            let mut paced = PacedTables::begin(&self.flush_pace, &tables_folder(tree));
            catch_panics("write out ids", || {
                let mut file = tree.ingestion()?;
                for (id, record) in ids.sorted() {
                    paced.wrote(id.len() + record.len());
                    file.write(id, record)?;
                }
                file.finish()
            })?;
            self.flushed_ids.refresh();
            self.unflushed_ids.remove_oldest_sealed();
        }
        self.hurry_if_behind();
        Ok(())
    }

    /// Compacts until there is nothing to gain; `is_stopping` may end it between two compactions.
    pub(crate) fn compact(&self, is_stopping: impl Fn() -> bool) -> Result<(), EngineFault> {
        let mut has_merged = true;
        while has_merged {
            has_merged = false;
            // One compaction per tree in turn, so that no tree waits for all of another's.
            for (index, tree) in self.trees.iter().enumerate() {
                if is_stopping() {
                    return Ok(());
                }
                let note = |fault: &EngineFault| self.quarantine.note(fault);
                let step = self.compaction.step(index, tree, self.oldest_visible(), note);
                self.flushed_ids.refresh();
                has_merged |= step?;
                self.hurry_if_behind();
            }
        }
        Ok(())
    }

    /// Deletes files and memtables that were flushed or compacted and that no scan reads any more.
    pub(crate) fn drop_old_versions(&self) -> Result<(), EngineFault> {
        for tree in self.trees.iter().filter(|tree| tree.version_free_list_len() > 0) {
            let path = &tree.tree_config().path;
            catch_panics("tidy up", || {
                tree.get_version_history_lock().maintenance(path, self.oldest_visible())
            })?;
        }
        self.memtables.free_flushed();
        Ok(())
    }

    /// Whether a tree's lock is in use for long.
    pub(crate) fn is_installing(&self) -> bool {
        self.compaction.is_installing()
    }

    /// Sets whether anybody waits for flushes.
    pub(crate) fn hurry_flush(&self, hurries: bool) {
        self.flush_pace.set_hurries(hurries);
    }

    /// Ends all rests of background work: the store is being closed.
    pub(crate) fn hurry(&self) {
        self.hurry_flush(true);
        self.compaction.hurry(true);
    }

    /// Compaction stops resting before flushes have to wait for it.
    fn hurry_if_behind(&self) {
        let runs = self.trees.iter().map(AbstractTree::l0_run_count).max();
        self.compaction.hurry(runs.is_some_and(|runs| runs >= L0_RUNS_HURRY));
    }

    /// Raises the visible number, so that new scans see the files of the last flush and compaction.
    pub(crate) fn apply_empty_batch(&self) {
        self.apply(Batch::default());
    }

    /// Whether compaction is so far behind that nothing more should be flushed. A tree with damage
    /// does not catch up, so it is not waited for.
    pub(crate) fn has_compaction_backlog(&self) -> bool {
        let is_behind = |tree: &AnyTree| tree.l0_run_count() >= L0_RUNS_MAX;
        let mut trees = self.trees.iter().enumerate();
        trees.any(|(index, tree)| is_behind(tree) && !self.compaction.is_limited(index))
    }
}
