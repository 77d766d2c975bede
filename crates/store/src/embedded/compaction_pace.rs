//! Compaction at a pace. The library merges tables in one call; a filter that keeps every record is
//! the only way to have a word in it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lsm_tree::compaction::filter::Context;
use lsm_tree::compaction::{CompactionFilter, Factory, ItemAccessor, Verdict};

use super::pace::{Pace, PacedTables};

/// Makes a filter for each merge of a tree.
pub(crate) struct PaceFilters {
    pub(crate) pace: Arc<Pace>,
    /// Unset while tables are merged: only before and after that the tree is locked.
    pub(crate) installing: Arc<AtomicBool>,
    /// The folder of the tree's tables.
    pub(crate) tables: PathBuf,
}

impl Factory for PaceFilters {
    fn name(&self) -> &'static str {
        "pace"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        self.installing.store(false, Ordering::Relaxed);
        let tables = PacedTables::begin(&self.pace, &self.tables);
        Box::new(PaceFilter { tables, installing: Arc::clone(&self.installing) })
    }
}

struct PaceFilter {
    tables: PacedTables,
    installing: Arc<AtomicBool>,
}

impl CompactionFilter for PaceFilter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> lsm_tree::Result<Verdict> {
        self.tables.wrote(item.key().len() + item.value()?.len());
        Ok(Verdict::Keep)
    }

    fn finish(mut self: Box<Self>) {
        self.tables.sync();
        self.installing.store(true, Ordering::Relaxed);
    }
}
