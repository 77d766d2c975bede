//! For tests: named steps at which the process kills itself, and syncs that can be left out.
//!
//! `NEXOTEST_KILL_AT=entry_synced:20` kills the process the twentieth time it reaches that step, and
//! `NEXOTEST_SKIP_SYNC=log` leaves out a sync, so that a test can show that it would notice. A
//! release build has none of this.

/// A step on the way to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailPoint {
    /// An entry is in the log, but not synced.
    EntryAppended,
    /// It is synced, but not recorded in the witness.
    EntrySynced,
    EntryWitnessed,
    /// Readers see it, but nobody was answered.
    BatchPublished,
    CursorsWritten,
    /// The next segment has its length, but neither header nor name.
    SegmentZeroed,
    /// It is complete, but not named.
    SegmentSynced,
    /// It is named, but its folder is not synced.
    SegmentNamed,
    MemtablesSealed,
    /// The memtables are in table files, but the witness does not say so.
    TreesFlushed,
    /// The witness says so, but the segments of the log are still there.
    FlushWitnessed,
    SegmentRetired,
    TreesCompacted,
    /// While opening: the unsynced tail is written again, but not synced.
    TailRewritten,
}

impl FailPoint {
    pub const ALL: [Self; 14] = [
        Self::EntryAppended,
        Self::EntrySynced,
        Self::EntryWitnessed,
        Self::BatchPublished,
        Self::CursorsWritten,
        Self::SegmentZeroed,
        Self::SegmentSynced,
        Self::SegmentNamed,
        Self::MemtablesSealed,
        Self::TreesFlushed,
        Self::FlushWitnessed,
        Self::SegmentRetired,
        Self::TreesCompacted,
        Self::TailRewritten,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::EntryAppended => "entry_appended",
            Self::EntrySynced => "entry_synced",
            Self::EntryWitnessed => "entry_witnessed",
            Self::BatchPublished => "batch_published",
            Self::CursorsWritten => "cursors_written",
            Self::SegmentZeroed => "segment_zeroed",
            Self::SegmentSynced => "segment_synced",
            Self::SegmentNamed => "segment_named",
            Self::MemtablesSealed => "memtables_sealed",
            Self::TreesFlushed => "trees_flushed",
            Self::FlushWitnessed => "flush_witnessed",
            Self::SegmentRetired => "segment_retired",
            Self::TreesCompacted => "trees_compacted",
            Self::TailRewritten => "tail_rewritten",
        }
    }
}

/// A sync that promises something to somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPoint {
    /// Of the entries of the log.
    Log,
    /// Of the folder that names a new segment.
    SegmentName,
    /// Of how far the trees were flushed.
    Witness,
}

impl SyncPoint {
    pub const ALL: [Self; 3] = [Self::Log, Self::SegmentName, Self::Witness];

    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::SegmentName => "segment_name",
            Self::Witness => "witness",
        }
    }
}

#[cfg(debug_assertions)]
pub(crate) use self::enabled::{reach, sync};

#[cfg(debug_assertions)]
mod enabled {
    use std::env;
    use std::io;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    use super::{FailPoint, SyncPoint};

    /// The step to die at, and how many times it is passed before.
    static KILL_AT: LazyLock<Option<(String, AtomicU64)>> = LazyLock::new(|| {
        let wanted = env::var("NEXOTEST_KILL_AT").ok()?;
        let (name, count) = wanted.split_once(':')?;
        Some((name.to_owned(), AtomicU64::new(count.parse().ok()?)))
    });
    static SKIP_SYNC: LazyLock<Option<String>> =
        LazyLock::new(|| env::var("NEXOTEST_SKIP_SYNC").ok());

    pub(crate) fn reach(point: FailPoint) {
        let Some((name, left)) = &*KILL_AT else { return };
        if point.name() == name && left.fetch_sub(1, Ordering::SeqCst) == 1 {
            // SIGKILL: nothing runs any more, not even a destructor.
            if let Err(error) = kill_process(getpid(), Signal::KILL) {
                tracing::error!(target: "nexo::store", %error, "the process cannot be killed");
            }
        }
    }

    pub(crate) fn sync(point: SyncPoint, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let is_skipped = SKIP_SYNC.as_deref() == Some(point.name());
        if is_skipped { Ok(()) } else { sync() }
    }
}

#[cfg(not(debug_assertions))]
#[inline]
pub(crate) fn reach(_: FailPoint) {}

#[cfg(not(debug_assertions))]
#[inline]
pub(crate) fn sync(
    _: SyncPoint,
    sync: impl FnOnce() -> std::io::Result<()>,
) -> std::io::Result<()> {
    sync()
}
