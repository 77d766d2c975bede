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

/// How often a full disk is looked at.
const ROOM_EVERY: Duration = Duration::from_secs(1);
/// What a writer needs beside the data itself.
const ROOM_BESIDE: u64 = 1 << 20;

/// Something sealed, to be written out.
pub(crate) struct Sealed {
    /// The newest entry of the log that is in it.
    pub(crate) up_to: u64,
    /// The first segment of the log that holds anything newer.
    pub(crate) segment: u64,
    /// About how many bytes it will take.
    pub(crate) bytes: u64,
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
        if let Err(fault) = write_out_when_there_is_room(core, retired, &sealed) {
            // Whoever writes next is told.
            drop(core.poison.set(&fault));
            return;
        }
        core.sealed.fetch_sub(1, Ordering::SeqCst);
        ask(merge);
    }
}

/// Tries until there is room. It is looked for first: a file that was written in part would take
/// what little there is.
fn write_out_when_there_is_room(
    core: &Core,
    retired: &Retired,
    sealed: &Sealed,
) -> Result<(), Fault> {
    loop {
        if core.disk.has_room_for(sealed.bytes.saturating_add(ROOM_BESIDE)) {
            match write_out_one(core, retired, sealed) {
                Err(fault) if fault.is_passing() => {}
                done => {
                    core.disk.trees_are_full(false);
                    return done;
                }
            }
        }
        core.disk.trees_are_full(true);
        let since = Instant::now();
        while since.elapsed() < ROOM_EVERY {
            if is_over(core) {
                return Ok(()); // it stays in the log
            }
            std::thread::sleep(PATIENCE);
        }
    }
}

fn write_out_one(core: &Core, retired: &Retired, sealed: &Sealed) -> Result<(), Fault> {
    core.engine.write_out()?;
    // A sync that failed may not be tried again: nobody knows what is durable then.
    let unknown = |error: io::Error| Fault::new(format!("cannot write the witness: {error}"));
    core.witness.written_out(sealed.up_to).map_err(unknown)?;
    let cannot = |error: io::Error| Fault::io("cannot let go of the log", &error);
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
            // A merge needs room before it gives some back.
            Ok(()) if core.disk.is_low() || core.disk.is_stuck() => Ok(()),
            Ok(()) => core.engine.merge(|| is_over(core)),
            Err(RecvTimeoutError::Timeout) => core.engine.forget_old(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        match done {
            Err(fault) if fault.is_passing() => {
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

fn is_over(core: &Core) -> bool {
    core.closing.load(Ordering::Relaxed) || core.poison.check().is_err()
}

fn be_nice() {
    // On Linux a thread has its own niceness. Without it everything works, only less evenly.
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!(target: "nexo::store", %error, "no lower priority");
    }
}
