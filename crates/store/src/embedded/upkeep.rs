//! What the trees need beside the writes: what they collected is written out and the log let go,
//! and their files are merged. Two threads do it, at a lower priority than those who answer.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::time::{Duration, Instant};

use super::core::Core;
use super::log::Retired;
use super::poison::Fault;

/// How much nicer these threads are than the others.
const NICENESS: i32 = 10;
/// How long a writer waits for merging to catch up; many files are slow to read, but not wrong.
const CROWDED_MAX: Duration = Duration::from_secs(30);
/// How often the mergers look for what nobody reads any more.
const FORGET_EVERY: Duration = Duration::from_secs(2);
/// How often a writer asks whether merging has caught up.
const PATIENCE: Duration = Duration::from_millis(20);

/// Something sealed, to be written out.
pub(crate) struct Sealed {
    /// The newest entry of the log that is in it.
    pub(crate) up_to: u64,
    /// The first segment of the log that holds anything newer.
    pub(crate) segment: u64,
}

/// Writes out whatever was sealed, until nobody seals any more.
pub(crate) fn write_out(
    core: &Core,
    retired: &Retired,
    sealed: &Receiver<Sealed>,
    merge: &SyncSender<()>,
) {
    be_nice();
    // A folder that was left with many files is tidied up first.
    ask(merge);
    for sealed in sealed {
        let since = Instant::now();
        while core.engine.is_crowded() && !is_over(core) && since.elapsed() < CROWDED_MAX {
            ask(merge);
            std::thread::sleep(PATIENCE);
        }
        let done = write_out_one(core, retired, &sealed);
        if let Err(fault) = done {
            // Whoever writes next is told.
            drop(core.poison.set(&fault));
            return;
        }
        ask(merge);
    }
}

fn write_out_one(core: &Core, retired: &Retired, sealed: &Sealed) -> Result<(), Fault> {
    core.engine.write_out()?;
    let cannot = |error: io::Error| Fault::new(format!("cannot let go of the log: {error}"));
    core.witness.written_out(sealed.up_to).map_err(cannot)?;
    retired.retire(&core.folder.log(), sealed.segment).map_err(cannot)
}

/// Asks for a merge, unless one is waiting already.
fn ask(merge: &SyncSender<()>) {
    if merge.try_send(()) == Err(TrySendError::Disconnected(())) {
        tracing::debug!(target: "nexo::store", "nobody merges any more");
    }
}

/// Merges files whenever some were written out, and lets go of what was merged.
pub(crate) fn merge(core: &Arc<Core>, wanted: &Receiver<()>) {
    be_nice();
    loop {
        let done = match wanted.recv_timeout(FORGET_EVERY) {
            Ok(()) => core.engine.merge(|| is_over(core)),
            Err(RecvTimeoutError::Timeout) => core.engine.forget_old(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if let Err(fault) = done {
            drop(core.poison.set(&fault));
            return;
        }
    }
}

fn is_over(core: &Core) -> bool {
    core.closing.load(Ordering::Relaxed) || core.poison.check().is_err()
}

fn be_nice() {
    // On Linux a thread has its own niceness. Without it everything works, only less evenly.
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!(target: "nexo::store", %error, "no lower priority");
    }
}
