//! A consistent view of an open store, for a backup to copy while the store goes on.
//!
//! Table files never change, and holding their tables keeps the files. Everything newer is in the
//! log, whose segments are pinned; replaying it on the tables gives the store as it was at the
//! newest entry, as after a crash. No lock is held while files are copied.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use nexo_chat::store::StoreError;

use super::Embedded;
use super::core::Core;
use super::keys::FORMAT;
use super::log_pins::LogPin;
use super::poison::EngineFault;
use super::segment::{self, ScannedSegment};
use super::tree_files::TreeFiles;
use super::witness::{Witness, WitnessRecord};

/// The numbers of the witness may be read while they are being written.
const WITNESS_TRIES: usize = 100;
const WITNESS_EVERY: Duration = Duration::from_millis(1);

/// A view of the store. Its fields are dropped in order: the folder's lock is held until the tables
/// are dropped, which may delete their files.
pub struct Snapshot {
    trees: Vec<TreeFiles>,
    /// The entries after [`Snapshot::flushed`].
    pub log: LogSnapshot,
    /// Everything up to this entry is in the tables.
    pub flushed: u64,
    /// Nothing beyond this entry is in the tables: the log can be cut here or later.
    pub exact_from: u64,
    /// The format of the data folder.
    pub format: u32,
    _core: Arc<Core>,
}

/// A file to copy, by its path within the data folder.
pub struct SnapshotFile {
    pub path: String,
    pub content: FileContent,
}

pub enum FileContent {
    /// A small file that has been read.
    Bytes(Vec<u8>),
    /// A table file, which never changes, and the checksum that the tree knows of it.
    Table(PathBuf, u128),
}

/// A part of the log whose segments stay until this is dropped.
pub struct LogSnapshot {
    /// Those that have entries, oldest first.
    pub segments: Vec<LogSegment>,
    /// The newest durable entry.
    pub newest: u64,
    /// The segment that is being written, or a later one.
    pub next_segment: u64,
    pin: Option<LogPin>,
}

impl LogSnapshot {
    /// From now on the segments may go.
    pub fn release(&mut self) {
        self.pin = None;
    }

    /// Keeps only the segment that is being written, and later ones.
    pub fn into_end_pin(self) -> Option<LogPin> {
        let Self { mut pin, next_segment, .. } = self;
        if let Some(pin) = &mut pin {
            pin.move_to(next_segment);
        }
        pin
    }
}

/// The durable entries of one segment: the beginning of its file.
#[derive(Clone, Debug)]
pub struct LogSegment {
    pub number: u64,
    pub path: PathBuf,
    /// How many bytes of the file they take, with its header.
    pub bytes: u64,
    pub first: LogEntryAt,
    pub last: LogEntryAt,
}

/// An entry of the log and when it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntryAt {
    pub number: u64,
    /// Milliseconds since 1970; `None` in a segment of an older version, which does not say.
    pub at_ms: Option<u64>,
}

impl Embedded {
    /// Takes a snapshot of everything that is durable now. Blocks while it reads the log.
    pub fn snapshot(&self) -> Result<Snapshot, StoreError> {
        self.core.poison.check()?;
        // A fault here is the snapshot's: the store itself may be fine.
        snapshot(&self.core).map_err(|fault| StoreError::Unavailable(fault.to_string().into()))
    }

    /// How many segments the log has.
    pub fn log_segments(&self) -> usize {
        // Asked for again soon, if it cannot be read now.
        segment::list(&self.core.folder.log()).map_or(0, |segments| segments.len())
    }

    /// Keeps the whole log from now on.
    pub fn pin_log(&self) -> LogPin {
        self.core.log_pins.pin()
    }

    /// Pins the log and returns the durable entries after this one. They are in this segment and
    /// later ones.
    pub fn log_after(&self, entry: u64, segment: u64) -> Result<LogSnapshot, StoreError> {
        self.core.poison.check()?;
        let pin = self.core.log_pins.pin();
        let log = log_after(&self.core, pin, entry, segment);
        log.map_err(|fault| StoreError::Unavailable(fault.to_string().into()))
    }
}

fn snapshot(core: &Arc<Core>) -> Result<Snapshot, EngineFault> {
    // In this order: the log is kept from `flushed` on before anything can be flushed beyond it,
    // and its end is read after the tables, so that it has everything they may have.
    let pin = core.log_pins.pin();
    let flushed = witnessed(core)?.flushed;
    let trees = core.engine.files()?;
    let exact_from = core.sealed_up_to.load(Ordering::SeqCst).max(flushed);
    let log = log_after(core, pin, flushed, 0)?;
    Ok(Snapshot { trees, log, flushed, exact_from, format: FORMAT, _core: Arc::clone(core) })
}

fn log_after(
    core: &Core,
    mut pin: LogPin,
    entry: u64,
    from_segment: u64,
) -> Result<LogSnapshot, EngineFault> {
    let unreadable = |error| EngineFault::io("cannot read the log", &error);
    let newest = witnessed(core)?.acknowledged;
    let listed = segment::list(&core.folder.log()).map_err(unreadable)?;
    let (mut segments, mut last, mut next_segment) = (Vec::new(), entry, from_segment);
    for (number, path) in listed.into_iter().filter(|(number, _)| *number >= from_segment) {
        let scanned = ScannedSegment::read(&path, number, last).map_err(unreadable)?;
        let mut durable = scanned.ends().filter(|(at, _)| at.number <= newest);
        let Some((first, end)) = durable.next() else { continue };
        let (newest_here, bytes) = durable.last().unwrap_or((first, end));
        next_segment = number;
        if newest_here.number > last {
            segments.push(LogSegment { number, path, bytes, first, last: newest_here });
            last = newest_here.number;
        }
    }
    pin.move_to(segments.first().map_or(next_segment, |segment| segment.number));
    Ok(LogSnapshot { segments, newest, next_segment, pin: Some(pin) })
}

fn witnessed(core: &Core) -> Result<WitnessRecord, EngineFault> {
    for _ in 0..WITNESS_TRIES {
        if let Ok(Some(record)) = Witness::read(&core.folder.witness()) {
            return Ok(record);
        }
        thread::sleep(WITNESS_EVERY);
    }
    Err(EngineFault::new("cannot read the witness"))
}

impl Snapshot {
    /// All files but the log and the witness.
    pub fn files(&self) -> impl Iterator<Item = SnapshotFile> {
        self.trees.iter().flat_map(|tree| {
            let folder = format!("trees/{}", tree.keyspace.name());
            let bytes = |name: &str, bytes: &Vec<u8>| SnapshotFile {
                path: format!("{folder}/{name}"),
                content: FileContent::Bytes(bytes.clone()),
            };
            let small = [bytes("current", &tree.current), bytes(&tree.version.0, &tree.version.1)];
            let tables = tree.tables().map(|table| SnapshotFile {
                path: format!("{folder}/tables/{}", table.name()),
                content: FileContent::Table(table.path, table.checksum),
            });
            small.into_iter().chain(tables.collect::<Vec<_>>())
        })
    }
}
