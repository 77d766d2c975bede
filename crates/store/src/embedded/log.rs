//! The commit log: what is in it is durable, whatever the trees have written out.
//!
//! Entries are numbered without a gap. A batch is appended and synced before anybody is answered;
//! the trees take it over in memory and write it out when they have collected enough, after which
//! the segments that held it are let go. At open, the entries that the trees have not written out
//! are done again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::batch::Batch;
use super::cursors::Sent;
use super::options::{FaultKind, Faults};
use super::poison::{Fault, is_passing};
use super::segment::{self, ENTRY, Found, Segment};

/// The first segment is small, so that a new server is there at once; each next one is twice as
/// long, up to this.
const SEGMENT_BYTES_MAX: u64 = 16 << 20;
const SEGMENT_BYTES_MIN: u64 = 1 << 20;

/// How long nobody tries to make a segment after there was no room for it.
const NO_ROOM_PAUSE: Duration = Duration::from_millis(200);

/// The log at the end of which is written.
pub(crate) struct Log {
    current: Segment,
    /// Segments that are ready to be written to.
    ready: Receiver<io::Result<Segment>>,
    /// The number of the newest entry; zero before the first.
    newest: u64,
    /// Up to which entry it is durable.
    synced: u64,
    /// Up to which entry all own sends are among the written cursors.
    covered: u64,
    entry: Vec<u8>,
    faults: Faults,
}

impl Log {
    /// Goes on after what was found, in a segment of its own: nothing is ever written behind an
    /// entry that a crash has torn.
    pub(crate) fn open(
        after: Replayed,
        ready: Receiver<io::Result<Segment>>,
        faults: Faults,
    ) -> Result<Self, Fault> {
        let current = take(&ready)?;
        let Replayed { newest, .. } = after;
        let (synced, covered, entry) = (newest, 0, Vec::new());
        Ok(Self { current, ready, newest, synced, covered, entry, faults })
    }

    /// The number of the newest entry.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// Notes that the cursors written so far tell all own sends up to this entry.
    pub(crate) fn cover(&mut self, entry: u64) {
        self.covered = entry;
    }

    /// Adds an entry. It is durable after [`Log::sync`].
    pub(crate) fn append(&mut self, sent: &[Sent], batch: &Batch) -> Result<(), Fault> {
        match self.faults.get() {
            FaultKind::Write => return Err(Fault::new("cannot write: a test wants it so")),
            FaultKind::NoRoom => return Err(Fault::no_room("no room: a test wants it so")),
            FaultKind::None | FaultKind::Sync => {}
        }
        self.entry.clear();
        self.entry.resize(ENTRY, 0);
        batch.encode(self.covered, sent, &mut self.entry)?;
        if !self.current.has_room(self.entry.len()) && !self.current.is_empty() {
            self.roll()?;
        }
        // An entry that was written in part is written again from its beginning, or never read.
        let appended = self.current.append(&mut self.entry, self.newest + 1, self.synced);
        appended.map_err(|error| cannot(&error))?;
        self.newest += 1;
        Ok(())
    }

    /// Makes all entries durable.
    pub(crate) fn sync(&mut self) -> Result<(), Fault> {
        // Whatever the reason: after a failed sync nobody knows what is durable.
        let cannot = |error: io::Error| Fault::new(format!("cannot sync the log: {error}"));
        self.current.sync().map_err(cannot)?;
        if self.faults.get() == FaultKind::Sync {
            return Err(Fault::new("cannot sync: a test wants it so"));
        }
        self.synced = self.newest;
        Ok(())
    }

    /// Sees that there is room for more.
    pub(crate) fn make_room(&mut self) -> Result<(), Fault> {
        if self.current.is_empty() { Ok(()) } else { self.roll().map(drop) }
    }

    /// Goes on in the next segment, and returns its number.
    pub(crate) fn roll(&mut self) -> Result<u64, Fault> {
        if self.faults.get() == FaultKind::NoRoom {
            return Err(Fault::no_room("no room: a test wants it so"));
        }
        if self.synced < self.newest {
            self.sync()?;
        }
        self.current = take(&self.ready)?;
        Ok(self.current.number)
    }
}

fn take(ready: &Receiver<io::Result<Segment>>) -> Result<Segment, Fault> {
    match ready.recv() {
        Ok(made) => made.map_err(|error| cannot(&error)),
        Err(_) => Err(Fault::new("nobody makes segments for the log")),
    }
}

fn cannot(error: &io::Error) -> Fault {
    Fault::io("cannot write to the log", error)
}

/// What was found at open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Replayed {
    /// The newest entry that is whole.
    pub(crate) newest: u64,
    /// The number of the next segment.
    pub(crate) next_segment: u64,
    /// How many segments still hold what the trees have not written out.
    pub(crate) segments: usize,
}

/// Reads the log, hands over each entry after `written_out`, and checks that nothing is missing of
/// what was acknowledged.
pub(crate) fn replay(
    folder: &Path,
    written_out: u64,
    acknowledged: u64,
    mut take: impl FnMut(u64, &[u8]) -> Result<(), Fault>,
) -> Result<Replayed, Fault> {
    let unreadable = |error: io::Error| Fault::new(format!("cannot read the log: {error}"));
    let segments = segment::list(folder).map_err(unreadable)?;
    let (mut newest, mut known_synced) = (written_out, acknowledged);
    let mut empty = Vec::new();
    for (number, path) in &segments {
        let found = Found::read(path, *number, newest).map_err(unreadable)?;
        known_synced = known_synced.max(found.synced_beyond);
        let mut is_empty = true;
        for (number, payload) in found.entries() {
            is_empty = false;
            if number <= written_out {
                continue;
            }
            if number != newest + 1 {
                return Err(Fault::new(format!("entry {} of the log is missing", newest + 1)));
            }
            take(number, payload)?;
            newest = number;
        }
        if is_empty {
            empty.push(path);
        } else {
            // A kill may have come before their sync, and from now on they count as durable.
            fs::File::open(path).and_then(|file| file.sync_all()).map_err(unreadable)?;
        }
    }
    if newest < known_synced {
        let missing = known_synced - newest;
        return Err(Fault::new(format!("{missing} acknowledged batches are missing or damaged")));
    }
    for path in &empty {
        // Made ready, or torn at its first entry: nothing in it was acknowledged.
        fs::remove_file(path).map_err(unreadable)?;
    }
    remove_spares(folder).map_err(unreadable)?;
    let next_segment = segments.last().map_or(1, |(number, _)| number + 1);
    Ok(Replayed { newest, next_segment, segments: segments.len() - empty.len() })
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

/// How a segment is called that is kept to be used again.
const SPARE: &str = "spare";

/// Whether anything was ever written here.
pub(crate) fn is_begun(folder: &Path) -> io::Result<bool> {
    Ok(!segment::list(folder)?.is_empty())
}

/// The segments that nobody needs any more, to be used again.
#[derive(Clone, Default)]
pub(crate) struct Retired(Arc<Mutex<Vec<PathBuf>>>);

impl Retired {
    /// Lets all segments before this one go. One is kept to be used again.
    pub(crate) fn retire(&self, folder: &Path, before: u64) -> io::Result<()> {
        for (number, path) in segment::list(folder)? {
            if number >= before {
                break;
            }
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.is_empty() {
                // A name of its own: the last one may still be on its way to be used again.
                let spare = path.with_extension(SPARE);
                fs::rename(path, &spare)?;
                kept.push(spare);
            } else {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    fn take(&self) -> Option<PathBuf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

/// Makes segments ahead of their use, until nobody takes them any more.
pub(crate) fn prepare(
    folder: PathBuf,
    first: u64,
    retired: Retired,
) -> (impl FnOnce() + Send, Receiver<io::Result<Segment>>) {
    let (sender, ready): (SyncSender<io::Result<Segment>>, _) = sync_channel(0);
    let work = move || {
        let (mut number, mut length) = (first, SEGMENT_BYTES_MIN);
        loop {
            let made = Segment::create(&folder, number, length, retired.take());
            let has_no_room = made.as_ref().err().is_some_and(is_passing);
            if sender.send(made).is_err() {
                return;
            }
            if has_no_room {
                // The same again, for whoever asks next.
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
