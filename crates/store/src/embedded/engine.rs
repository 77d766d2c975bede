//! The only file that knows the LSM trees: one for each keyspace.
//!
//! They have no log of their own: what is in their memory is in the commit log too. Only the
//! committer writes to them, so a batch gets one number, and who scans sees whole batches.

use std::collections::BTreeMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lsm_tree::compaction::Leveled;
use lsm_tree::config::{
    BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use lsm_tree::{
    AbstractTree, AnyTree, Cache, CompressionType, Config, DescriptorTable, Guard, SeqNo,
    SequenceNumberCounter,
};
use nexo_chat::store::Order;

use super::batch::{Batch, Write};
use super::keys::{KeyRange, Space};
use super::options::Options;
use super::poison::Fault;
use super::young::Young;

/// Bytes as the trees hand them out.
pub(crate) type Bytes = lsm_tree::Slice;

/// The file that a tree begins with; without it the library would begin a new one.
const BEGIN: &str = "current";
/// Open files of tables kept for the next read.
const FILES_MAX: usize = 512;
/// Files are at most about so large. A tree's readers and writers wait for the last one of a merge.
const TABLE_BYTES: u64 = 32 << 20;
/// So many sorted runs of the newest tables wait to be merged; beyond it, nothing is written out.
const RUNS_MAX: usize = 24;

/// The open trees.
pub(crate) struct Engine {
    trees: Vec<AnyTree>,
    young: Young,
    /// Numbers the batches, and the changes that the trees make to themselves.
    numbers: SequenceNumberCounter,
    /// Batches below this one are whole.
    visible: AtomicU64,
    /// Below what number somebody scans, and how many do.
    scanning: Mutex<BTreeMap<SeqNo, usize>>,
    /// Bytes collected in memory since the last [`Engine::seal`].
    collected: AtomicU64,
}

impl Engine {
    /// Makes trees in a new folder.
    pub(crate) fn create(folder: &Path, options: &Options) -> Result<(), Fault> {
        drop(open_trees(folder, options, &SequenceNumberCounter::default())?);
        // Each tree has made its own folder durable, but not its name in this one.
        guarded("sync", || Ok(File::open(folder)?.sync_all()?))
    }

    /// Opens trees that [`Engine::create`] made.
    pub(crate) fn open(folder: &Path, options: &Options) -> Result<Self, Fault> {
        for space in Space::ALL.into_iter().filter(|space| space.is_original()) {
            if !folder.join(space.name()).join(BEGIN).exists() {
                return Err(Fault::new(format!("the keyspace {} is missing", space.name())));
            }
        }
        let numbers = SequenceNumberCounter::default();
        let trees = open_trees(folder, options, &numbers)?;
        let newest = trees.iter().filter_map(AbstractTree::get_highest_persisted_seqno).max();
        let next = newest.unwrap_or(0) + 1;
        numbers.fetch_max(next);
        Ok(Self {
            trees,
            young: Young::default(),
            numbers,
            visible: AtomicU64::new(next),
            scanning: Mutex::default(),
            collected: AtomicU64::new(0),
        })
    }

    fn tree(&self, space: Space) -> &AnyTree {
        &self.trees[space as usize]
    }

    /// The value under a key.
    pub(crate) fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        if space == Space::Ids
            && let Some(record) = self.young.get(key)
        {
            return Ok(Some(record));
        }
        guarded("read", || self.tree(space).get(key, SeqNo::MAX))
    }

    /// Up to `limit` pairs of a range, in the given order, until their values exceed `bytes`.
    pub(crate) fn scan(
        &self,
        space: Space,
        range: KeyRange,
        limit: usize,
        order: Order,
        bytes: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, Fault> {
        let scan = Scan::begin(self);
        guarded("scan", || {
            let found = self.tree(space).range(range, scan.below, None);
            match order {
                Order::Ascending => collect(found, limit, bytes),
                Order::Descending => collect(found.rev(), limit, bytes),
            }
        })
    }

    /// The last pair of a range, by one reverse seek.
    pub(crate) fn last(
        &self,
        space: Space,
        range: KeyRange,
    ) -> Result<Option<(Bytes, Bytes)>, Fault> {
        Ok(self.scan(space, range, 1, Order::Descending, 0)?.pop())
    }

    /// Takes a batch over into memory. Only one thread may do that.
    pub(crate) fn apply(&self, batch: Batch) {
        let number = self.numbers.next();
        let mut collected = 0;
        for Write { space, key, value } in batch.into_writes() {
            collected += match (space, value) {
                (Space::Ids, Some(value)) => self.young.insert(key, value),
                (_, Some(value)) => self.tree(space).insert(key, value, number).0,
                (_, None) => self.tree(space).remove(key, number).0,
            };
        }
        self.collected.fetch_add(collected, Ordering::Relaxed);
        self.visible.store(number + 1, Ordering::Release);
    }

    /// About how many records a keyspace has; overwritten ones may count twice.
    pub(crate) fn about(&self, space: Space) -> u64 {
        self.tree(space).approximate_len() as u64
    }

    /// Whether nothing was ever written out.
    pub(crate) fn is_new(&self) -> bool {
        self.trees.iter().all(|tree| tree.table_count() == 0)
    }

    /// Bytes collected since the last [`Engine::seal`].
    pub(crate) fn collected(&self) -> u64 {
        self.collected.load(Ordering::Relaxed)
    }

    /// Begins to collect anew; what was collected until now waits for [`Engine::write_out`].
    pub(crate) fn seal(&self) {
        for tree in &self.trees {
            tree.rotate_memtable();
        }
        self.young.seal();
        self.collected.store(0, Ordering::Relaxed);
    }

    /// Writes all that was sealed to files, durably.
    pub(crate) fn write_out(&self) -> Result<(), Fault> {
        for tree in &self.trees {
            if tree.sealed_memtable_count() > 0 {
                let old = self.old();
                guarded("write out", || tree.flush(&tree.get_flush_lock(), old))?;
            }
        }
        while let Some(ids) = self.young.oldest() {
            guarded("write out ids", || {
                let mut file = self.tree(Space::Ids).ingestion()?;
                for (id, record) in ids {
                    file.write(id, record)?;
                }
                file.finish()
            })?;
            self.young.written_out();
        }
        Ok(())
    }

    /// Merges files until there is nothing to be gained; `is_over` may end it between two merges.
    pub(crate) fn merge(&self, is_over: impl Fn() -> bool) -> Result<(), Fault> {
        let strategy = Arc::new(Leveled::default().with_table_target_size(TABLE_BYTES));
        let mut has_merged = true;
        while has_merged {
            has_merged = false;
            // One merge for each in turn, so that none waits for all of another.
            for tree in &self.trees {
                if is_over() {
                    return Ok(());
                }
                let before = tree.current_version().id();
                guarded("merge", || tree.compact(Arc::clone(&strategy) as _, self.old()))?;
                has_merged |= tree.current_version().id() != before;
            }
        }
        Ok(())
    }

    /// Lets go of what was written out or merged, once nobody reads it any more.
    pub(crate) fn forget_old(&self) -> Result<(), Fault> {
        for tree in self.trees.iter().filter(|tree| tree.version_free_list_len() > 0) {
            let path = &tree.tree_config().path;
            guarded("tidy up", || tree.get_version_history_lock().maintenance(path, self.old()))?;
        }
        Ok(())
    }

    /// Lets scans that begin now see what the trees have made of their files.
    pub(crate) fn advance(&self) {
        self.apply(Batch::default());
    }

    /// Whether merging is so far behind that nothing more should be written out.
    pub(crate) fn is_crowded(&self) -> bool {
        self.trees.iter().any(|tree| tree.l0_run_count() >= RUNS_MAX)
    }

    /// Below this number nobody looks for what was overwritten.
    fn old(&self) -> SeqNo {
        let scanning = self.scanning();
        let visible = self.visible.load(Ordering::Acquire);
        scanning.keys().next().map_or(visible, |below| visible.min(*below))
    }

    fn scanning(&self) -> MutexGuard<'_, BTreeMap<SeqNo, usize>> {
        self.scanning.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who scans what is whole now, and for whom it is kept until they are done.
struct Scan<'a> {
    engine: &'a Engine,
    below: SeqNo,
}

impl<'a> Scan<'a> {
    fn begin(engine: &'a Engine) -> Self {
        let mut scanning = engine.scanning();
        let below = engine.visible.load(Ordering::Acquire);
        *scanning.entry(below).or_default() += 1;
        Self { engine, below }
    }
}

impl Drop for Scan<'_> {
    fn drop(&mut self) {
        let mut scanning = self.engine.scanning();
        if let Some(count) = scanning.get_mut(&self.below) {
            *count -= 1;
            if *count == 0 {
                scanning.remove(&self.below);
            }
        }
    }
}

fn open_trees(
    folder: &Path,
    options: &Options,
    numbers: &SequenceNumberCounter,
) -> Result<Vec<AnyTree>, Fault> {
    let cache = Arc::new(Cache::with_capacity_bytes(options.cache_bytes));
    let files = Arc::new(DescriptorTable::new(FILES_MAX));
    let open = |space: &Space| {
        // What is whole is for us to say, so the trees count it for themselves.
        let visible = SequenceNumberCounter::default();
        let config = Config::new(folder.join(space.name()), numbers.clone(), visible)
            .use_cache(Arc::clone(&cache))
            .use_descriptor_table(Some(Arc::clone(&files)))
            .data_block_compression_policy(CompressionPolicy::new([
                CompressionType::None,
                CompressionType::None,
                CompressionType::Lz4,
            ]))
            .filter_policy(FilterPolicy::new([
                // Every new message asks whether its id is known: the newest tables answer first.
                FilterPolicyEntry::Bloom(BloomConstructionPolicy::FalsePositiveRate(0.0001)),
                FilterPolicyEntry::Bloom(BloomConstructionPolicy::FalsePositiveRate(0.0001)),
                FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0)),
            ]));
        guarded("open a keyspace", || config.open())
    };
    Space::ALL.iter().map(open).collect()
}

fn collect(
    found: impl Iterator<Item = impl Guard>,
    limit: usize,
    bytes: usize,
) -> lsm_tree::Result<Vec<(Bytes, Bytes)>> {
    let (mut pairs, mut left) = (Vec::new(), bytes);
    for guard in found.take(limit) {
        let pair = guard.into_inner()?;
        let size = pair.1.len();
        pairs.push(pair);
        if size > left {
            break;
        }
        left -= size;
    }
    Ok(pairs)
}

/// The trees answer some kinds of damage with a panic; here it becomes an error like the others.
fn guarded<T>(what: &str, act: impl FnOnce() -> lsm_tree::Result<T>) -> Result<T, Fault> {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(lsm_tree::Error::Io(error))) => Err(Fault::io(&format!("cannot {what}"), &error)),
        Ok(Err(error)) => Err(Fault::new(format!("cannot {what}: {error}"))),
        Err(_) => Err(Fault::new(format!("cannot {what}: the tree panicked"))),
    }
}
