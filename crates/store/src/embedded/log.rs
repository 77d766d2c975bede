//! The commit log: its entries are durable, whether or not the trees have flushed them.
//!
//! Entries are numbered without a gap. A batch is appended and synced before any of its writes is
//! answered. The trees hold it in their memtables and flush them when they are full, after which
//! the segments of the batch are retired. At open, the entries that were not flushed are replayed.
//!
//! An entry beyond the last one that was known to be synced may only be in the page cache: after a
//! failed sync the kernel takes such pages for written, and another sync of them succeeds without
//! writing anything. So opening writes these entries again, into a new segment, and syncs that before
//! anybody is answered. A later segment may therefore begin with entries of an earlier one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nexo_chat::ids::Millis;

use super::batch::Batch;
use super::fail_points::{FailPoint, reach};
use super::options::{FaultKind, Faults, LogClock, Options};
use super::pace::Pace;
use super::poison::{EngineFault, is_out_of_resources};
use super::segment::{self, ENTRY_HEADER_BYTES, LogEntry, ScannedSegment, Segment};
use crate::member_key::OwnSend;

/// The first segment is small, so that a new server starts quickly; each next one is twice as long,
/// up to this.
const SEGMENT_BYTES_MAX: u64 = 16 << 20;
const SEGMENT_BYTES_MIN: u64 = 1 << 20;

/// Retired segments that are kept for reuse, about as many as one flush retires: a new one costs the
/// disk its whole length in zeros, an old one only its header.
const SPARES_MAX: usize = 4;

/// How long no segment is created after the disk was full.
const NO_ROOM_PAUSE: Duration = Duration::from_millis(200);

/// The log, open at its end.
pub(crate) struct Log {
    current: Segment,
    ready: ReadySegments,
    /// The number of the newest entry; zero before the first.
    newest: u64,
    /// The newest durable entry.
    synced: u64,
    /// Up to this entry, all own sends are contained in the cursors that were written.
    covered: u64,
    entry: Vec<u8>,
    clock: LogClock,
    faults: Faults,
}

impl Log {
    /// Opens the log after the replayed entries, in a new segment: nothing is ever written behind
    /// an entry that a crash tore. Everything that was replayed is durable then.
    pub(crate) fn open(
        after: Replayed,
        ready: ReadySegments,
        options: &Options,
    ) -> Result<Self, EngineFault> {
        let current = ready.next()?;
        let (clock, faults) = (options.clock.clone(), options.faults.clone());
        let (synced, covered, entry) = (after.durable, 0, Vec::new());
        let mut log =
            Self { current, ready, newest: synced, synced, covered, entry, clock, faults };
        for TailEntry { time, payload } in after.tail {
            log.entry.clear();
            log.entry.resize(ENTRY_HEADER_BYTES, 0);
            log.entry.extend_from_slice(&payload);
            log.append_entry(time)?;
        }
        if log.synced < log.newest {
            reach(FailPoint::TailRewritten);
            log.sync()?;
        }
        Ok(log)
    }

    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// Records that the cursors written so far contain all own sends up to this entry.
    pub(crate) fn cover(&mut self, entry: u64) {
        self.covered = entry;
    }

    /// Appends an entry. It is durable after [`Log::sync`].
    pub(crate) fn append(&mut self, sent: &[OwnSend], batch: &Batch) -> Result<(), EngineFault> {
        match self.faults.get() {
            FaultKind::Write => return Err(EngineFault::new("cannot write: a test wants it so")),
            FaultKind::NoRoom => return Err(EngineFault::no_room("no room: a test wants it so")),
            FaultKind::None | FaultKind::Sync => {}
        }
        self.entry.clear();
        self.entry.resize(ENTRY_HEADER_BYTES, 0);
        batch.encode(self.covered, sent, &mut self.entry)?;
        self.append_entry(self.clock.now())
    }

    fn append_entry(&mut self, time: Millis) -> Result<(), EngineFault> {
        if !self.current.has_room(self.entry.len()) && !self.current.is_empty() {
            self.roll()?;
        }
        // An entry that was partly written is overwritten from its beginning, or never read.
        let appended = self.current.append(&mut self.entry, self.newest + 1, self.synced, time);
        appended.map_err(|error| log_fault(&error))?;
        reach(FailPoint::EntryAppended);
        self.newest += 1;
        Ok(())
    }

    /// Makes all entries durable.
    pub(crate) fn sync(&mut self) -> Result<(), EngineFault> {
        // Never temporary, whatever the reason: after a failed sync it is unknown what is durable.
        let cannot = |error: io::Error| EngineFault::new(format!("cannot sync the log: {error}"));
        self.current.sync().map_err(cannot)?;
        if self.faults.get() == FaultKind::Sync {
            return Err(EngineFault::new("cannot sync: a test wants it so"));
        }
        self.synced = self.newest;
        reach(FailPoint::EntrySynced);
        Ok(())
    }

    /// Makes sure that the next entry has room.
    pub(crate) fn make_room(&mut self) -> Result<(), EngineFault> {
        if self.current.is_empty() { Ok(()) } else { self.roll().map(drop) }
    }

    /// Continues in the next segment, and returns its number.
    pub(crate) fn roll(&mut self) -> Result<u64, EngineFault> {
        if self.faults.get() == FaultKind::NoRoom {
            return Err(EngineFault::no_room("no room: a test wants it so"));
        }
        if self.synced < self.newest {
            self.sync()?;
        }
        self.current = self.ready.next()?;
        Ok(self.current.number)
    }
}

/// Preallocated segments.
pub(crate) struct ReadySegments {
    made: Receiver<io::Result<Segment>>,
    pace: Arc<Pace>,
}

impl ReadySegments {
    /// Returns the next segment. If it has to wait for it, the segment is made without rests.
    fn next(&self) -> Result<Segment, EngineFault> {
        let made = self.made.try_recv().or_else(|_| {
            self.pace.set_hurries(true);
            let made = self.made.recv();
            self.pace.set_hurries(false);
            made
        });
        match made {
            Ok(made) => made.map_err(|error| log_fault(&error)),
            Err(_) => Err(EngineFault::new("nobody makes segments for the log")),
        }
    }
}

fn log_fault(error: &io::Error) -> EngineFault {
    EngineFault::io("cannot write to the log", error)
}

/// What was found at open.
#[derive(Debug)]
pub(crate) struct Replayed {
    /// The newest entry that is known to be durable.
    durable: u64,
    /// The intact entries after that one.
    tail: Vec<TailEntry>,
    /// The number of the next segment.
    pub(crate) next_segment: u64,
    /// How many segments still have entries that were not flushed.
    pub(crate) segments: usize,
}

/// An entry that is written again.
#[derive(Debug)]
struct TailEntry {
    time: Millis,
    payload: Vec<u8>,
}

/// What is known of the log from outside of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownLog {
    /// Up to this entry, everything is in the trees.
    pub(crate) flushed: u64,
    /// Up to this entry at least, everything was acknowledged.
    pub(crate) acknowledged: u64,
    /// A sync failed: nothing in the log counts as durable.
    pub(crate) is_dirty: bool,
}

/// Reads the log, passes each entry after `flushed` to `take`, and checks that no acknowledged
/// entry is missing.
pub(crate) fn replay(
    folder: &Path,
    known: KnownLog,
    mut take: impl FnMut(u64, &[u8]) -> Result<(), EngineFault>,
) -> Result<Replayed, EngineFault> {
    let unreadable = |error: io::Error| EngineFault::new(format!("cannot read the log: {error}"));
    let segments = segment::list(folder).map_err(unreadable)?;
    let KnownLog { flushed, acknowledged, is_dirty } = known;
    let durable = if is_dirty { flushed } else { acknowledged.max(flushed) };
    let (mut newest, mut known_synced) = (flushed, acknowledged);
    let (mut tail, mut empty) = (Vec::new(), Vec::new());
    for (number, path) in &segments {
        let found = ScannedSegment::read(path, *number, newest).map_err(unreadable)?;
        known_synced = known_synced.max(found.synced_beyond);
        let mut is_empty = true;
        for LogEntry { number, time, payload } in found.entries() {
            is_empty = false;
            if number <= newest {
                continue; // flushed, or written again
            }
            if number != newest + 1 {
                return Err(EngineFault::new(format!(
                    "entry {} of the log is missing",
                    newest + 1
                )));
            }
            take(number, payload)?;
            newest = number;
            if number > durable {
                tail.push(TailEntry { time, payload: payload.to_vec() });
            }
        }
        if is_empty {
            empty.push(path);
        }
    }
    if newest < known_synced {
        let missing = known_synced - newest;
        return Err(EngineFault::new(format!(
            "{missing} acknowledged batches are missing or damaged"
        )));
    }
    for path in &empty {
        // Preallocated, or torn at its first entry: nothing in it was acknowledged.
        fs::remove_file(path).map_err(unreadable)?;
    }
    remove_spares(folder).map_err(unreadable)?;
    let next_segment = segments.last().map_or(1, |(number, _)| number + 1);
    let segments = segments.len() - empty.len();
    Ok(Replayed { durable, tail, next_segment, segments })
}

fn remove_spares(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == SPARE) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// The extension of a retired segment that is kept for reuse.
const SPARE: &str = "spare";

/// Whether anything was ever written here.
pub(crate) fn is_begun(folder: &Path) -> io::Result<bool> {
    Ok(!segment::list(folder)?.is_empty())
}

/// Segments that are no longer needed, kept for reuse.
#[derive(Clone, Default)]
pub(crate) struct RetiredSegments(Arc<Mutex<Vec<PathBuf>>>);

impl RetiredSegments {
    /// Removes all segments before this one, except some that are kept for reuse.
    pub(crate) fn retire(&self, folder: &Path, before: u64) -> io::Result<()> {
        for (number, path) in segment::list(folder)? {
            if number >= before {
                break;
            }
            let mut spares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if spares.len() < SPARES_MAX {
                // It gets another extension, since a segment that is being reused may have its old
                // name.
                let spare = path.with_extension(SPARE);
                fs::rename(path, &spare)?;
                spares.push(spare);
            } else {
                fs::remove_file(path)?;
            }
            reach(FailPoint::SegmentRetired);
        }
        Ok(())
    }

    fn take(&self) -> Option<PathBuf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

/// Creates segments ahead of their use, until the log is dropped.
pub(crate) fn preallocate(
    folder: PathBuf,
    first: u64,
    retired: RetiredSegments,
) -> (impl FnOnce() + Send, ReadySegments) {
    let (sender, made): (SyncSender<io::Result<Segment>>, _) = sync_channel(0);
    let pace = Arc::new(Pace::default());
    let ready = ReadySegments { made, pace: Arc::clone(&pace) };
    let work = move || {
        let (mut number, mut length) = (first, SEGMENT_BYTES_MIN);
        loop {
            let made = Segment::create(&folder, number, length, retired.take(), &pace);
            let has_no_room = made.as_ref().err().is_some_and(is_out_of_resources);
            if sender.send(made).is_err() {
                return;
            }
            if has_no_room {
                // The same number again, for the next caller.
                thread::sleep(NO_ROOM_PAUSE);
                continue;
            }
            number += 1;
            length = (length * 2).min(SEGMENT_BYTES_MAX);
        }
    };
    (work, ready)
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
