//! Background work on the trees: one thread flushes sealed memtables and retires the log, another
//! compacts files. Both have a lower priority than the threads that answer.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::time::{Duration, Instant};

use super::core::Core;
use super::fail_points::{FailPoint, reach};
use super::log::RetiredSegments;
use super::poison::EngineFault;

/// The niceness of these threads.
const NICENESS: i32 = 19;
/// How long the flusher waits for compaction to catch up; many files are slow to read, but not
/// wrong.
const BACKLOG_WAIT_MAX: Duration = Duration::from_secs(30);
/// How often the compactor drops versions that no scan reads any more.
const DROP_OLD_EVERY: Duration = Duration::from_secs(2);
/// How often the flusher checks whether compaction has caught up.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// How often a flush is retried while the disk is full.
const RETRY_ROOM_EVERY: Duration = Duration::from_secs(1);
/// Free bytes that a flush needs besides the data itself.
const ROOM_MARGIN_BYTES: u64 = 1 << 20;

/// Sealed memtables, to be flushed.
pub(crate) struct SealedMemtables {
    /// The newest entry of the log that they contain.
    pub(crate) up_to: u64,
    /// The first segment of the log that contains anything newer.
    pub(crate) segment: u64,
    /// About how many bytes the files will have.
    pub(crate) bytes: u64,
}

/// Flushes sealed memtables until the committer ends.
pub(crate) fn run_flusher(
    core: &Core,
    retired: &RetiredSegments,
    sealed: &Receiver<SealedMemtables>,
    merge: &SyncSender<()>,
) {
    lower_priority();
    // A folder that was left with many files is compacted first.
    request_compaction(merge);
    for sealed in sealed {
        let since = Instant::now();
        while core.engine.has_compaction_backlog()
            && !is_stopping(core)
            && since.elapsed() < BACKLOG_WAIT_MAX
        {
            request_compaction(merge);
            std::thread::sleep(POLL_EVERY);
        }
        if let Err(fault) = flush_when_disk_has_room(core, retired, &sealed) {
            // The next write is refused with it.
            drop(core.poison.set(&fault));
            core.mark_dirty(&fault);
            return;
        }
        let waiting = core.sealed.fetch_sub(1, Ordering::SeqCst) - 1;
        core.engine.hurry_flush(waiting > 1 || is_stopping(core));
        request_compaction(merge);
    }
}

/// Retries until there is room. Checks for room first: a partly written file would use up what
/// little there is.
fn flush_when_disk_has_room(
    core: &Core,
    retired: &RetiredSegments,
    sealed: &SealedMemtables,
) -> Result<(), EngineFault> {
    loop {
        if core.disk.has_room_for(sealed.bytes.saturating_add(ROOM_MARGIN_BYTES)) {
            match flush_and_retire_log(core, retired, sealed) {
                Err(fault) if fault.is_temporary() => {}
                done => {
                    core.disk.set_flush_blocked(false);
                    return done;
                }
            }
        }
        core.disk.set_flush_blocked(true);
        let since = Instant::now();
        while since.elapsed() < RETRY_ROOM_EVERY {
            if is_stopping(core) {
                return Ok(()); // the log still has it
            }
            std::thread::sleep(POLL_EVERY);
        }
    }
}

fn flush_and_retire_log(
    core: &Core,
    retired: &RetiredSegments,
    sealed: &SealedMemtables,
) -> Result<(), EngineFault> {
    core.engine.flush()?;
    reach(FailPoint::TreesFlushed);
    // A sync that failed may not be repeated: it is unknown what is durable then.
    let unknown = |error: io::Error| EngineFault::new(format!("cannot write the witness: {error}"));
    core.witness.set_flushed(sealed.up_to).map_err(unknown)?;
    reach(FailPoint::FlushWitnessed);
    let cannot = |error: io::Error| EngineFault::io("cannot let go of the log", &error);
    let log = core.folder.log();
    core.log_pins.retire(sealed.segment, |before| retired.retire(&log, before)).map_err(cannot)
}

/// Requests a compaction, unless one is waiting already.
fn request_compaction(merge: &SyncSender<()>) {
    if merge.try_send(()) == Err(TrySendError::Disconnected(())) {
        tracing::debug!(target: "nexo::store", "nobody merges any more");
    }
}

/// Compacts after every flush, and drops old versions in between.
pub(crate) fn run_compactor(core: &Arc<Core>, wanted: &Receiver<()>) {
    lower_priority();
    loop {
        let done = match wanted.recv_timeout(DROP_OLD_EVERY) {
            // A compaction needs room before it frees some.
            Ok(()) if core.disk.is_low() || core.disk.is_flush_blocked() => Ok(()),
            Ok(()) => core.engine.compact(|| is_stopping(core)),
            Err(RecvTimeoutError::Timeout) => core.engine.drop_old_versions(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        match done {
            Err(fault) if fault.is_temporary() => {
                tracing::warn!(target: "nexo::store", %fault, "files are merged later");
            }
            Err(fault) => {
                drop(core.poison.set(&fault));
                return;
            }
            Ok(()) => {}
        }
    }
}

fn is_stopping(core: &Core) -> bool {
    core.closing.load(Ordering::Relaxed) || core.poison.check().is_err()
}

fn lower_priority() {
    // On Linux niceness is per thread. Without it everything works, only less evenly.
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!(target: "nexo::store", %error, "no lower priority");
    }
}
