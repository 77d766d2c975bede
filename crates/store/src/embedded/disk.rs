//! Whether there is room on the disk. Without it the store takes nothing new and tries again: what
//! was acknowledged stays as it is, and when there is room everything goes on by itself.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nexo_chat::store::StoreError;

const MIB: u64 = 1 << 20;

/// The disk that the data folder is on.
pub(crate) struct Disk {
    path: PathBuf,
    /// Below so much free space nothing new is taken, so that what was taken can be written out.
    reserve: u64,
    /// Whether there was less when it was last looked at, and how much there was.
    low: AtomicBool,
    free: AtomicU64,
    /// The log could not be made longer when that was last tried.
    log_is_full: AtomicBool,
    /// What was collected cannot be written out.
    trees_are_full: AtomicBool,
}

impl Disk {
    pub(crate) fn new(path: PathBuf, reserve: u64) -> Self {
        let disk = Self {
            path,
            reserve,
            low: AtomicBool::new(false),
            free: AtomicU64::new(u64::MAX),
            log_is_full: AtomicBool::new(false),
            trees_are_full: AtomicBool::new(false),
        };
        disk.look();
        disk
    }

    /// Bytes that may be written. Unknown is enough: the write itself will tell.
    fn free(&self) -> u64 {
        rustix::fs::statvfs(&self.path).map_or(u64::MAX, |it| it.f_bavail * it.f_frsize)
    }

    /// Looks how much is left. Once a second is enough: the reserve is for what comes in between.
    pub(crate) fn look(&self) {
        let free = self.free();
        self.free.store(free, Ordering::Relaxed);
        set(&self.low, free < self.reserve, || self.problem());
    }

    /// Whether so much can be written now.
    pub(crate) fn has_room_for(&self, bytes: u64) -> bool {
        self.free() >= bytes
    }

    /// Notes whether the log can be made longer.
    pub(crate) fn log_is_full(&self, is_full: bool) {
        set(&self.log_is_full, is_full, || self.problem());
    }

    /// Whether the log could not be made longer.
    pub(crate) fn is_log_full(&self) -> bool {
        self.log_is_full.load(Ordering::Relaxed)
    }

    /// Notes whether what was collected can be written out.
    pub(crate) fn trees_are_full(&self, are_full: bool) {
        set(&self.trees_are_full, are_full, || self.problem());
    }

    /// Whether what was collected waits for room.
    pub(crate) fn is_stuck(&self) -> bool {
        self.trees_are_full.load(Ordering::Relaxed)
    }

    /// Whether there is less than the reserve.
    pub(crate) fn is_low(&self) -> bool {
        self.low.load(Ordering::Relaxed)
    }

    /// Refuses a write that would only be refused later.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.is_low() || self.is_stuck() {
            return Err(self.unavailable());
        }
        Ok(())
    }

    /// Why nothing is taken, or `Ok`.
    pub(crate) fn health(&self) -> Result<(), StoreError> {
        if self.problem().is_some() { Err(self.unavailable()) } else { Ok(()) }
    }

    /// What a write is told that found no room.
    pub(crate) fn unavailable(&self) -> StoreError {
        let problem = self.problem();
        StoreError::Unavailable(problem.unwrap_or_else(|| "the disk was full".to_owned()).into())
    }

    fn problem(&self) -> Option<String> {
        if self.is_low() {
            let free = self.free.load(Ordering::Relaxed) / MIB;
            let reserve = self.reserve / MIB;
            return Some(format!(
                "the disk has {free} MiB left, and {reserve} are kept in reserve"
            ));
        }
        let is_full = self.is_stuck() || self.is_log_full();
        is_full.then(|| "the disk is full".to_owned())
    }
}

/// Notes a state and logs when it changes.
fn set(flag: &AtomicBool, is_so: bool, problem: impl FnOnce() -> Option<String>) {
    if flag.swap(is_so, Ordering::Relaxed) == is_so {
        return;
    }
    if is_so {
        let why = problem().unwrap_or_default();
        tracing::warn!(target: "nexo::store", why, "nothing is saved until there is room");
    } else {
        tracing::info!(target: "nexo::store", "there is room on the disk again");
    }
}
