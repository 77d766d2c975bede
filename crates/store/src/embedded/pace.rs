//! Background writing in small steps with rests between them.
//!
//! A thread that writes a table as fast as it can takes a core from the threads that answer, and
//! hands the disk tens of megabytes at once, which the next sync of the log has to wait for. So after
//! every step it has the system begin to write what it has written so far, and rests for a multiple of
//! the time that the step took. It does not rest while others wait for it, nor while nobody commits:
//! then it disturbs nobody, and what it leaves undone would only make reads slower.

use std::fs::{self, File};
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};

/// Bytes of a step. Small, so that the disk has not yet written them when the system is asked to:
/// what is written already, it drops from its cache.
const STEP_BYTES: usize = 64 << 10;
/// How many times as long as its work took a step rests.
const REST_FACTOR: u32 = 3;
/// A step that took long waited for a core or the disk; resting as long again would be too much.
const REST_MAX: Duration = Duration::from_millis(5);
/// The store is idle when nothing was committed for so long.
const IDLE_AFTER: Duration = Duration::from_millis(100);

/// Counts committed batches, for background work to see whether it may disturb anybody.
pub(crate) type CommitCount = Arc<AtomicU64>;

/// Whether background work may take its time.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    hurries: AtomicBool,
    commits: CommitCount,
}

impl Pace {
    /// Work that only rests while this count grows.
    pub(crate) fn beside(commits: &CommitCount) -> Arc<Self> {
        Arc::new(Self { hurries: AtomicBool::default(), commits: Arc::clone(commits) })
    }

    /// Sets whether somebody waits for the work.
    pub(crate) fn set_hurries(&self, hurries: bool) {
        self.hurries.store(hurries, Ordering::Relaxed);
    }

    /// Rests after work that began at `since`.
    pub(crate) fn rest(&self, since: Instant) {
        if !self.hurries.load(Ordering::Relaxed) {
            thread::sleep((since.elapsed() * REST_FACTOR).min(REST_MAX));
        }
    }
}

/// A spell of writing new tables of a tree at a pace.
pub(crate) struct PacedTables {
    pace: Arc<Pace>,
    tables: GrowingTables,
    since: Instant,
    /// Bytes since the last rest.
    step: usize,
    /// The count of commits, and when it was last seen to grow.
    commits: (u64, Instant),
}

impl PacedTables {
    /// Begins before the tables are created.
    pub(crate) fn begin(pace: &Arc<Pace>, folder: &Path) -> Self {
        let tables = GrowingTables::new(folder);
        let since = Instant::now();
        let commits = (pace.commits.load(Ordering::Relaxed), since);
        Self { pace: Arc::clone(pace), tables, since, step: 0, commits }
    }

    /// Counts written bytes, and rests when a step is done.
    pub(crate) fn wrote(&mut self, bytes: usize) {
        self.step += bytes;
        if self.step < STEP_BYTES {
            return;
        }
        self.step = 0;
        self.tables.write_out();
        if !self.is_idle() {
            self.pace.rest(self.since);
        }
        self.since = Instant::now();
    }

    fn is_idle(&mut self) -> bool {
        let (count, now) = (self.pace.commits.load(Ordering::Relaxed), Instant::now());
        if count != self.commits.0 {
            self.commits = (count, now);
        }
        now.duration_since(self.commits.1) >= IDLE_AFTER
    }

    /// Waits until everything so far is on the disk, so that the library, which syncs its last table
    /// with the tree's lock in hand, has little left to do.
    pub(crate) fn sync(&mut self) {
        self.tables.sync();
    }
}

/// The table files that were created since a moment. Their names are numbers in ascending order.
struct GrowingTables {
    folder: PathBuf,
    next: u64,
    /// With how many of its bytes the system has begun to write.
    open: Option<(File, u64)>,
}

impl GrowingTables {
    fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), next: newest(folder) + 1, open: None }
    }

    /// Has the system begin to write. Only a hint: the library syncs every table before it counts.
    fn write_out(&mut self) {
        loop {
            if let Some((file, begun)) = &mut self.open
                && let Err(error) = begin_writing(file, begun)
            {
                tracing::debug!(target: "nexo::store", %error, "a table is written out later");
            }
            match File::open(self.folder.join(self.next.to_string())) {
                Ok(file) => self.open = Some((file, 0)),
                Err(_) => return, // not created yet
            }
            self.next += 1;
        }
    }

    fn sync(&mut self) {
        self.write_out();
        // The library syncs it again, and an error is reported to it too.
        if let Some((file, _)) = &self.open
            && let Err(error) = file.sync_data()
        {
            tracing::warn!(target: "nexo::store", %error, "a new table cannot be synced");
        }
    }
}

/// Begins to write what was added to a file, without waiting for it.
pub(crate) fn begin_writing(file: &File, begun: &mut u64) -> io::Result<()> {
    let length = file.metadata()?.len();
    let added = NonZeroU64::new(length.saturating_sub(*begun));
    if let Some(added) = added {
        // Linux takes this as a request to write the dirty pages of the range now.
        fadvise(file, *begun, Some(added), Advice::DontNeed)?;
        *begun = length;
    }
    Ok(())
}

/// The greatest number of a table in a folder. If it cannot be read, no file is found later, and the
/// system writes when it wants to.
fn newest(folder: &Path) -> u64 {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_rests_only_while_others_commit() {
        let commits = CommitCount::default();
        let folder = tempfile::tempdir().unwrap();
        let mut work = PacedTables::begin(&Pace::beside(&commits), folder.path());
        assert!(!work.is_idle(), "it has not looked for long enough");
        thread::sleep(IDLE_AFTER);
        assert!(work.is_idle());
        commits.fetch_add(1, Ordering::Relaxed);
        assert!(!work.is_idle());
        thread::sleep(IDLE_AFTER);
        assert!(work.is_idle());
    }
}
