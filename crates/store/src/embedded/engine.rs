//! The only file that knows the LSM trees: one for each keyspace.
//!
//! They have no log of their own: what is in their memtables is in the commit log too. Only the
//! committer writes to them, so a batch has one sequence number, and a scan sees whole batches.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lsm_tree::config::{
    BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use lsm_tree::file::TABLES_FOLDER;
use lsm_tree::{
    AbstractTree, AnyTree, Cache, CompressionType, Config, DescriptorTable, Guard, SeqNo,
    SequenceNumberCounter,
};
use nexo_chat::store::Order;

use super::batch::{Batch, Write};
use super::compaction::Compaction;
use super::flushed_ids::FlushedIds;
use super::keys::{KeyRange, Keyspace};
use super::memtables::Memtables;
use super::options::Options;
use super::pace::{CommitCount, Pace};
use super::poison::{EngineFault, is_out_of_resources};
use super::quarantine::Quarantine;
use super::tables::{self, TREE_FILE};
use super::unflushed_ids::UnflushedIds;

/// Bytes as the trees return them.
pub(crate) type Slice = lsm_tree::Slice;

/// Damaged blocks that a search for the last readable record passes.
const BLOCKS_PASSED_MAX: usize = 64;

mod salvage;
mod upkeep;

pub(crate) struct Engine {
    trees: Vec<AnyTree>,
    memtables: Memtables,
    unflushed_ids: UnflushedIds,
    flushed_ids: FlushedIds,
    /// Assigns sequence numbers to batches and to the trees' own changes.
    numbers: SequenceNumberCounter,
    /// Batches with lower numbers are complete.
    visible: AtomicU64,
    /// The sequence numbers of running scans, and how many scans each has.
    scans: Mutex<BTreeMap<SeqNo, usize>>,
    /// Bytes in the memtables since the last [`Engine::seal`].
    memtable_bytes: AtomicU64,
    compaction: Compaction,
    flush_pace: Arc<Pace>,
    commits: CommitCount,
    pub(crate) quarantine: Quarantine,
}

impl Engine {
    /// Creates the trees in a new folder.
    pub(crate) fn create(folder: &Path, options: &Options) -> Result<(), EngineFault> {
        let compaction = Compaction::new(Keyspace::ALL.len(), &CommitCount::default());
        drop(open_trees(folder, options, &SequenceNumberCounter::default(), &compaction)?);
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
        for keyspace in Keyspace::ALL {
            let tree = folder.join(keyspace.name());
            if tree.join(TREE_FILE).exists() {
                tables::check_list(&tree).map_err(|error| {
                    EngineFault::new(format!("the keyspace {}: {error}", keyspace.name()))
                })?;
            }
        }
        let numbers = SequenceNumberCounter::default();
        let commits = CommitCount::default();
        let compaction = Compaction::new(Keyspace::ALL.len(), &commits);
        let trees = open_trees(folder, options, &numbers, &compaction)?;
        let newest = trees.iter().filter_map(AbstractTree::get_highest_persisted_seqno).max();
        let next = newest.unwrap_or(0) + 1;
        numbers.fetch_max(next);
        Ok(Self {
            memtables: Memtables::of(&trees),
            unflushed_ids: UnflushedIds::default(),
            flushed_ids: FlushedIds::of(&trees[Keyspace::MessageIds as usize]),
            trees,
            numbers,
            visible: AtomicU64::new(next),
            scans: Mutex::default(),
            memtable_bytes: AtomicU64::new(0),
            compaction,
            flush_pace: Pace::beside(&commits),
            commits,
            quarantine: Quarantine::default(),
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
        let tree = self.tree(keyspace);
        let find = || match keyspace {
            Keyspace::MessageIds => self.flushed_ids.get(key),
            _ => tree.get(key, SeqNo::MAX),
        };
        if let Ok(found) = catch_unwind(AssertUnwindSafe(find))
            && let Ok(found) = found
        {
            return Ok(found);
        }
        // It failed. A damaged filter is no reason: a range is read without the filters.
        let range = (Bound::Included(key.to_vec()), Bound::Included(key.to_vec()));
        self.read(keyspace, &range, || {
            let found = tree.range(range.clone(), SeqNo::MAX, None).next();
            found.map(|it| it.into_inner().map(|(_, value)| value)).transpose()
        })
    }

    /// Runs a read of a tree. A failure is damage of the tables that cannot be read in the range,
    /// unless the system had no room, or the tree itself broke down.
    fn read<T>(
        &self,
        keyspace: Keyspace,
        range: &KeyRange,
        read: impl FnOnce() -> lsm_tree::Result<T>,
    ) -> Result<T, EngineFault> {
        let tree = self.tree(keyspace);
        match catch_unwind(AssertUnwindSafe(read)) {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(lsm_tree::Error::Io(error))) if is_out_of_resources(&error) => {
                return Err(EngineFault::io("cannot read", &error));
            }
            Ok(Err(_)) => {}
            // The trees panic on some kinds of damage. One that does so with its lock in hand
            // answers nothing any more.
            Err(_) => drop(catch_panics("read", || Ok(tree.table_count()))?),
        }
        let tables = catch_unwind(AssertUnwindSafe(|| tables::unreadable(tree, range)));
        let tables = tables.unwrap_or_default().join(", ");
        let place = if tables.is_empty() { keyspace.name() } else { &tables };
        Err(EngineFault::damage(format!("{place} cannot be read")))
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
        self.read(keyspace, &range, || {
            let found = self.tree(keyspace).range(range.clone(), scan.below, None);
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

    /// Returns the greatest key of a range that can be read, or one near it: a key next to a damaged
    /// block may be passed over. `None` if there is none near the end of the range.
    pub(crate) fn last_readable_key(&self, keyspace: Keyspace, range: KeyRange) -> Option<Slice> {
        let scan = ScanGuard::begin(self);
        let search = || {
            let found = self.tree(keyspace).range(range, scan.below, None);
            found.rev().take(BLOCKS_PASSED_MAX).find_map(|read| read.key().ok())
        };
        catch_unwind(AssertUnwindSafe(search)).ok().flatten()
    }

    /// Inserts a batch into the memtables. Only one thread may call this.
    pub(crate) fn apply(&self, batch: Batch) {
        let number = self.numbers.next();
        let mut collected = 0;
        let memtables = self.memtables.writer();
        for write in batch.into_writes() {
            collected += match write {
                Write { keyspace: Keyspace::MessageIds, key, value: Some(value) } => {
                    self.unflushed_ids.insert(key, value)
                }
                Write { keyspace: Keyspace::MessageIds, key, value: None } => {
                    self.flushed_ids.use_memtable();
                    self.tree(Keyspace::MessageIds).remove(key, number).0
                }
                write => memtables.write(write, number),
            };
        }
        drop(memtables);
        if collected > 0 {
            self.commits.fetch_add(1, Ordering::Relaxed);
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
    compaction: &Compaction,
) -> Result<Vec<AnyTree>, EngineFault> {
    let (cache, files) = caches(options);
    let open =
        |keyspace: &Keyspace| open_tree(folder, *keyspace, numbers, &cache, &files, compaction);
    Keyspace::ALL.iter().map(open).collect()
}

fn caches(options: &Options) -> (Arc<Cache>, Arc<DescriptorTable>) {
    let cache = Arc::new(Cache::with_capacity_bytes(options.cache_bytes));
    (cache, Arc::new(DescriptorTable::new(options.table_files_max)))
}

fn open_tree(
    folder: &Path,
    keyspace: Keyspace,
    numbers: &SequenceNumberCounter,
    cache: &Arc<Cache>,
    files: &Arc<DescriptorTable>,
    compaction: &Compaction,
) -> Result<AnyTree, EngineFault> {
    // We decide which batches are visible, so each tree gets a counter that nothing reads.
    let visible = SequenceNumberCounter::default();
    let folder = folder.join(keyspace.name());
    let config = Config::new(&folder, numbers.clone(), visible)
        .with_compaction_filter_factory(Some(compaction.filters(folder.join(TABLES_FOLDER))))
        .use_cache(Arc::clone(cache))
        .use_descriptor_table(Some(Arc::clone(files)))
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
}

/// The folder of a tree's tables.
pub(crate) fn tables_folder(tree: &AnyTree) -> PathBuf {
    tree.tree_config().path.join(TABLES_FOLDER)
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

/// Whether an error of the trees can be damage of what was read.
pub(crate) fn is_damage(error: &lsm_tree::Error) -> bool {
    match error {
        lsm_tree::Error::Io(error) => !is_out_of_resources(error),
        _ => true,
    }
}

/// Turns a panic into a fault: the trees panic on some kinds of damage.
pub(crate) fn catch_panics<T>(
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
