//! Compaction, also of a tree that has a damaged table.
//!
//! The library's own strategy merges whatever tables a level needs, and fails when one of them cannot
//! be read. It cannot be told to leave a table alone. So after such a failure the tree's files stay as
//! they are, and only newer ones are merged with each other, into the empty level above the oldest
//! data. That keeps the number of files small; the price is that space of overwritten records is not
//! freed, and that a read may look at one more file, until the folder was salvaged. A tree whose newest
//! files are damaged is not compacted at all.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lsm_tree::compaction::{CompactionStrategy, Factory, Leveled, PullDown};
use lsm_tree::{AbstractTree, AnyTree, SeqNo};

use super::compaction_pace::PaceFilters;
use super::engine::{catch_panics, is_damage};
use super::fail_points::{FailPoint, reach};
use super::pace::{CommitCount, Pace};
use super::poison::EngineFault;
use super::tables;

/// The size of a table file, about. Readers and writers of a tree wait while compaction installs
/// its last file, so files are small.
const TABLE_BYTES_MAX: u64 = 32 << 20;
/// Sorted runs in level 0 that are worth a merge in a tree with damage.
const NEW_RUNS_MAX: usize = 8;
const LEVELS: usize = 7;

/// How a tree is compacted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Plan {
    /// By the library's own strategy.
    #[default]
    Leveled,
    /// Only new files, into this level.
    NewFilesInto(u8),
    /// Not at all.
    Stopped,
}

/// How each tree is compacted, by the trees' order.
pub(crate) struct Compaction {
    plans: Vec<Mutex<Plan>>,
    pace: Arc<Pace>,
    /// Whether a tree's lock is in use for long.
    installing: Arc<AtomicBool>,
}

impl Compaction {
    pub(crate) fn new(trees: usize, commits: &CommitCount) -> Self {
        let plans = (0..trees).map(|_| Mutex::default()).collect();
        Self { plans, pace: Pace::beside(commits), installing: Arc::default() }
    }

    /// The filter with which a tree's compactions keep their pace.
    pub(crate) fn filters(&self, tables: PathBuf) -> Arc<dyn Factory> {
        let (pace, installing) = (Arc::clone(&self.pace), Arc::clone(&self.installing));
        Arc::new(PaceFilters { pace, installing, tables })
    }

    pub(crate) fn hurry(&self, hurries: bool) {
        self.pace.set_hurries(hurries);
    }

    /// Whether compaction holds a tree's lock, or will in a moment.
    pub(crate) fn is_installing(&self) -> bool {
        self.installing.load(Ordering::Relaxed)
    }

    fn plan(&self, tree: usize) -> Plan {
        *self.plans[tree].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether damage limits the compaction of a tree.
    pub(crate) fn is_limited(&self, tree: usize) -> bool {
        self.plan(tree) != Plan::Leveled
    }

    /// Does one compaction of a tree if there is something to gain, and tells whether it did. Damage
    /// changes the plan, and is passed to `note`.
    pub(crate) fn step(
        &self,
        index: usize,
        tree: &AnyTree,
        oldest_visible: SeqNo,
        note: impl FnOnce(&EngineFault),
    ) -> Result<bool, EngineFault> {
        let plan = self.plan(index);
        let Some(strategy) = strategy(plan, tree) else { return Ok(false) };
        let before = tree.current_version().id();
        let mut met_damage = false;
        // Until it begins to merge, if it does.
        self.installing.store(true, Ordering::Relaxed);
        let merged = catch_panics("merge", || {
            tree.compact(strategy, oldest_visible).inspect_err(|error| {
                met_damage = is_damage(error) && (!is_io(error) || !tables::are_readable(tree));
            })
        });
        self.installing.store(false, Ordering::Relaxed);
        match merged {
            Err(_) if met_damage => {
                let next = after_damage(plan, tree);
                *self.plans[index].lock().unwrap_or_else(PoisonError::into_inner) = next;
                let name = tree.tree_config().path.file_name().unwrap_or_default();
                let name = name.to_string_lossy();
                note(&EngineFault::damage(format!("a table of {name} cannot be merged")));
                Ok(false)
            }
            Err(fault) => Err(fault),
            Ok(()) => {
                let has_merged = tree.current_version().id() != before;
                if has_merged {
                    reach(FailPoint::TreesCompacted);
                }
                Ok(has_merged)
            }
        }
    }
}

fn is_io(error: &lsm_tree::Error) -> bool {
    matches!(error, lsm_tree::Error::Io(_))
}

fn strategy(plan: Plan, tree: &AnyTree) -> Option<Arc<dyn CompactionStrategy>> {
    match plan {
        Plan::Leveled => Some(Arc::new(Leveled::default().with_table_target_size(TABLE_BYTES_MAX))),
        Plan::NewFilesInto(level) if tree.l0_run_count() >= NEW_RUNS_MAX => {
            Some(Arc::new(PullDown(0, level)))
        }
        Plan::NewFilesInto(_) | Plan::Stopped => None,
    }
}

/// The plan after a merge failed: into the last empty level above the data. If level 0 itself is
/// damaged, or there is no such level, nothing can be merged.
fn after_damage(plan: Plan, tree: &AnyTree) -> Plan {
    let is_empty = |level: &usize| tree.level_table_count(*level).is_none_or(|count| count == 0);
    let above = (1..LEVELS).take_while(is_empty).last();
    match (plan, above.map(u8::try_from)) {
        (Plan::Leveled, Some(Ok(level))) => Plan::NewFilesInto(level),
        _ => Plan::Stopped,
    }
}
