//! The only file that knows the LSM trees: one for each keyspace.
//!
//! They have no log of their own: what is in their memtables is in the commit log too. Only the
//! committer writes to them, so a batch has one sequence number, and a scan sees whole batches.

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
use super::keys::{KeyRange, Keyspace};
use super::options::Options;
use super::poison::EngineFault;
use super::unflushed_ids::UnflushedIds;

/// Bytes as the trees return them.
pub(crate) type Slice = lsm_tree::Slice;

/// The file that every tree has; without it the library would silently create a new tree.
pub(crate) const TREE_FILE: &str = "current";
/// Open table files that are cached for the next read.
const OPEN_FILES_MAX: usize = 512;
/// The size of a table file, about. Readers and writers of a tree wait while compaction installs
/// its last file, so files are small.
const TABLE_BYTES_MAX: u64 = 32 << 20;
/// Sorted runs in level 0 that may wait for compaction; beyond it, nothing is flushed.
const L0_RUNS_MAX: usize = 24;

pub(crate) struct Engine {
    trees: Vec<AnyTree>,
    unflushed_ids: UnflushedIds,
    /// Assigns sequence numbers to batches and to the trees' own changes.
    numbers: SequenceNumberCounter,
    /// Batches with lower numbers are complete.
    visible: AtomicU64,
    /// The sequence numbers of running scans, and how many scans each has.
    scans: Mutex<BTreeMap<SeqNo, usize>>,
    /// Bytes in the memtables since the last [`Engine::seal`].
    memtable_bytes: AtomicU64,
}

impl Engine {
    /// Creates the trees in a new folder.
    pub(crate) fn create(folder: &Path, options: &Options) -> Result<(), EngineFault> {
        drop(open_trees(folder, options, &SequenceNumberCounter::default())?);
        // Each tree has synced its own folder, but not its entry in this one.
        catch_panics("sync", || Ok(File::open(folder)?.sync_all()?))
    }

    /// Opens trees that [`Engine::create`] created.
    pub(crate) fn open(folder: &Path, options: &Options) -> Result<Self, EngineFault> {
        for keyspace in Keyspace::ALL.into_iter().filter(|keyspace| keyspace.is_in_first_format()) {
            if !folder.join(keyspace.name()).join(TREE_FILE).exists() {
                return Err(EngineFault::new(format!(
                    "the keyspace {} is missing",
                    keyspace.name()
                )));
            }
        }
        let numbers = SequenceNumberCounter::default();
        let trees = open_trees(folder, options, &numbers)?;
        let newest = trees.iter().filter_map(AbstractTree::get_highest_persisted_seqno).max();
        let next = newest.unwrap_or(0) + 1;
        numbers.fetch_max(next);
        Ok(Self {
            trees,
            unflushed_ids: UnflushedIds::default(),
            numbers,
            visible: AtomicU64::new(next),
            scans: Mutex::default(),
            memtable_bytes: AtomicU64::new(0),
        })
    }

    pub(crate) fn tree(&self, keyspace: Keyspace) -> &AnyTree {
        &self.trees[keyspace as usize]
    }

    pub(crate) fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Slice>, EngineFault> {
        if keyspace == Keyspace::MessageIds
            && let Some(record) = self.unflushed_ids.get(key)
        {
            return Ok(Some(record));
        }
        catch_panics("read", || self.tree(keyspace).get(key, SeqNo::MAX))
    }

    /// Returns up to `limit` pairs of a range, in the given order, until their values exceed
    /// `bytes`.
    pub(crate) fn scan(
        &self,
        keyspace: Keyspace,
        range: KeyRange,
        limit: usize,
        order: Order,
        bytes: usize,
    ) -> Result<Vec<(Slice, Slice)>, EngineFault> {
        let scan = ScanGuard::begin(self);
        catch_panics("scan", || {
            let found = self.tree(keyspace).range(range, scan.below, None);
            match order {
                Order::Ascending => collect(found, limit, bytes),
                Order::Descending => collect(found.rev(), limit, bytes),
            }
        })
    }

    /// Returns the last pair of a range, by one reverse seek.
    pub(crate) fn last(
        &self,
        keyspace: Keyspace,
        range: KeyRange,
    ) -> Result<Option<(Slice, Slice)>, EngineFault> {
        Ok(self.scan(keyspace, range, 1, Order::Descending, 0)?.pop())
    }

    /// Inserts a batch into the memtables. Only one thread may call this.
    pub(crate) fn apply(&self, batch: Batch) {
        let number = self.numbers.next();
        let mut collected = 0;
        for Write { keyspace, key, value } in batch.into_writes() {
            collected += match (keyspace, value) {
                (Keyspace::MessageIds, Some(value)) => self.unflushed_ids.insert(key, value),
                (_, Some(value)) => self.tree(keyspace).insert(key, value, number).0,
                (_, None) => self.tree(keyspace).remove(key, number).0,
            };
        }
        self.memtable_bytes.fetch_add(collected, Ordering::Relaxed);
        self.visible.store(number + 1, Ordering::Release);
    }

    /// Returns about how many records a keyspace has; overwritten ones may count twice.
    pub(crate) fn approximate_len(&self, keyspace: Keyspace) -> u64 {
        self.tree(keyspace).approximate_len() as u64
    }

    /// Whether nothing was ever flushed.
    pub(crate) fn is_new(&self) -> bool {
        self.trees.iter().all(|tree| tree.table_count() == 0)
    }

    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.memtable_bytes.load(Ordering::Relaxed)
    }

    /// Seals the memtables and starts new ones; the sealed ones wait for [`Engine::flush`].
    pub(crate) fn seal(&self) {
        for tree in &self.trees {
            tree.rotate_memtable();
        }
        self.unflushed_ids.seal();
        self.memtable_bytes.store(0, Ordering::Relaxed);
    }

    /// Writes all sealed memtables to files, durably.
    pub(crate) fn flush(&self) -> Result<(), EngineFault> {
        for tree in &self.trees {
            if tree.sealed_memtable_count() > 0 {
                let old = self.oldest_visible();
                catch_panics("write out", || tree.flush(&tree.get_flush_lock(), old))?;
            }
        }
        while let Some(ids) = self.unflushed_ids.oldest_sealed() {
            catch_panics("write out ids", || {
                let mut file = self.tree(Keyspace::MessageIds).ingestion()?;
                for (id, record) in ids {
                    file.write(id, record)?;
                }
                file.finish()
            })?;
            self.unflushed_ids.drop_oldest_sealed();
        }
        Ok(())
    }

    /// Compacts until there is nothing to gain; `is_stopping` may end it between two compactions.
    pub(crate) fn compact(&self, is_stopping: impl Fn() -> bool) -> Result<(), EngineFault> {
        let strategy = Arc::new(Leveled::default().with_table_target_size(TABLE_BYTES_MAX));
        let mut has_merged = true;
        while has_merged {
            has_merged = false;
            // One compaction per tree in turn, so that no tree waits for all of another's.
            for tree in &self.trees {
                if is_stopping() {
                    return Ok(());
                }
                let before = tree.current_version().id();
                catch_panics("merge", || {
                    tree.compact(Arc::clone(&strategy) as _, self.oldest_visible())
                })?;
                has_merged |= tree.current_version().id() != before;
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
        Ok(())
    }

    /// Raises the visible number, so that new scans see the files of the last flush and compaction.
    pub(crate) fn apply_empty_batch(&self) {
        self.apply(Batch::default());
    }

    /// Whether compaction is so far behind that nothing more should be flushed.
    pub(crate) fn has_compaction_backlog(&self) -> bool {
        self.trees.iter().any(|tree| tree.l0_run_count() >= L0_RUNS_MAX)
    }

    /// Overwritten values below this number are visible to no scan.
    fn oldest_visible(&self) -> SeqNo {
        let scanning = self.scans();
        let visible = self.visible.load(Ordering::Acquire);
        scanning.keys().next().map_or(visible, |below| visible.min(*below))
    }

    fn scans(&self) -> MutexGuard<'_, BTreeMap<SeqNo, usize>> {
        self.scans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Registers a running scan: its versions are not dropped until the scan ends.
struct ScanGuard<'a> {
    engine: &'a Engine,
    below: SeqNo,
}

impl<'a> ScanGuard<'a> {
    fn begin(engine: &'a Engine) -> Self {
        let mut scanning = engine.scans();
        let below = engine.visible.load(Ordering::Acquire);
        *scanning.entry(below).or_default() += 1;
        Self { engine, below }
    }
}

impl Drop for ScanGuard<'_> {
    fn drop(&mut self) {
        let mut scanning = self.engine.scans();
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
) -> Result<Vec<AnyTree>, EngineFault> {
    let cache = Arc::new(Cache::with_capacity_bytes(options.cache_bytes));
    let files = Arc::new(DescriptorTable::new(OPEN_FILES_MAX));
    let open = |keyspace: &Keyspace| {
        // We decide which batches are visible, so each tree gets a counter that nothing reads.
        let visible = SequenceNumberCounter::default();
        let config = Config::new(folder.join(keyspace.name()), numbers.clone(), visible)
            .use_cache(Arc::clone(&cache))
            .use_descriptor_table(Some(Arc::clone(&files)))
            .data_block_compression_policy(CompressionPolicy::new([
                CompressionType::None,
                CompressionType::None,
                CompressionType::Lz4,
            ]))
            .filter_policy(FilterPolicy::new([
                // Every new message looks up its id, and the newest tables come first: few false
                // positives there.
                FilterPolicyEntry::Bloom(BloomConstructionPolicy::FalsePositiveRate(0.0001)),
                FilterPolicyEntry::Bloom(BloomConstructionPolicy::FalsePositiveRate(0.0001)),
                FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0)),
            ]));
        catch_panics("open a keyspace", || config.open())
    };
    Keyspace::ALL.iter().map(open).collect()
}

fn collect(
    found: impl Iterator<Item = impl Guard>,
    limit: usize,
    bytes: usize,
) -> lsm_tree::Result<Vec<(Slice, Slice)>> {
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

/// Turns a panic into a fault: the trees panic on some kinds of damage.
fn catch_panics<T>(
    what: &str,
    act: impl FnOnce() -> lsm_tree::Result<T>,
) -> Result<T, EngineFault> {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(lsm_tree::Error::Io(error))) => {
            Err(EngineFault::io(&format!("cannot {what}"), &error))
        }
        Ok(Err(error)) => Err(EngineFault::new(format!("cannot {what}: {error}"))),
        Err(_) => Err(EngineFault::new(format!("cannot {what}: the tree panicked"))),
    }
}
