//! Free space on the disk. While it is short the store refuses writes and tries again: acknowledged
//! data is unaffected, and writes resume by themselves when there is room.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nexo_chat::store::StoreError;

const MIB: u64 = 1 << 20;

/// The disk of the data folder.
pub(crate) struct Disk {
    path: PathBuf,
    /// With less free space than this, writes are refused, so that accepted ones can still be
    /// flushed.
    reserve: u64,
    /// Whether free space was below the reserve at the last check, and how much there was.
    low: AtomicBool,
    free: AtomicU64,
    /// The last attempt to allocate a segment of the log failed.
    log_full: AtomicBool,
    /// The last attempt to flush memtables failed.
    flush_blocked: AtomicBool,
}

impl Disk {
    pub(crate) fn new(path: PathBuf, reserve: u64) -> Self {
        let disk = Self {
            path,
            reserve,
            low: AtomicBool::new(false),
            free: AtomicU64::new(u64::MAX),
            log_full: AtomicBool::new(false),
            flush_blocked: AtomicBool::new(false),
        };
        disk.refresh();
        disk
    }

    /// Returns the free bytes. If they cannot be determined, assumes enough: the write itself will
    /// fail.
    fn free(&self) -> u64 {
        rustix::fs::statvfs(&self.path).map_or(u64::MAX, |it| it.f_bavail * it.f_frsize)
    }

    /// Checks the free space. Once a second is enough: the reserve covers what is written in
    /// between.
    pub(crate) fn refresh(&self) {
        let free = self.free();
        self.free.store(free, Ordering::Relaxed);
        set(&self.low, free < self.reserve, || self.problem());
    }

    pub(crate) fn has_room_for(&self, bytes: u64) -> bool {
        self.free() >= bytes
    }

    /// Sets whether the log could not be made longer.
    pub(crate) fn set_log_full(&self, is_full: bool) {
        set(&self.log_full, is_full, || self.problem());
    }

    pub(crate) fn is_log_full(&self) -> bool {
        self.log_full.load(Ordering::Relaxed)
    }

    /// Sets whether the memtables cannot be flushed.
    pub(crate) fn set_flush_blocked(&self, is_blocked: bool) {
        set(&self.flush_blocked, is_blocked, || self.problem());
    }

    pub(crate) fn is_flush_blocked(&self) -> bool {
        self.flush_blocked.load(Ordering::Relaxed)
    }

    /// Whether free space is below the reserve.
    pub(crate) fn is_low(&self) -> bool {
        self.low.load(Ordering::Relaxed)
    }

    /// Refuses a write early that could not be flushed later.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.is_low() || self.is_flush_blocked() {
            return Err(self.unavailable());
        }
        Ok(())
    }

    /// Returns `Ok`, or why writes are refused.
    pub(crate) fn health(&self) -> Result<(), StoreError> {
        if self.problem().is_some() { Err(self.unavailable()) } else { Ok(()) }
    }

    /// The error of a write that found no room.
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
        let is_full = self.is_flush_blocked() || self.is_log_full();
        is_full.then(|| "the disk is full".to_owned())
    }
}

/// Sets a flag and logs when it changes.
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
