//! What the operator may set about the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// Settings of the embedded engine.
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory for blocks read from disk.
    pub cache_bytes: u64,
    /// How much is collected in memory before it is written out sorted. More means less work for
    /// the disk and a longer start after a crash.
    pub memtable_bytes: u64,
    /// Free bytes on the disk below which nothing new is taken.
    pub reserve_bytes: u64,
    /// Writes that may wait; further ones are refused at once.
    pub queue_max: usize,
    /// How often moved cursors are written behind.
    pub cursors_every: Duration,
    /// For tests: makes writes fail.
    pub faults: Faults,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 128 << 20,
            memtable_bytes: 64 << 20,
            reserve_bytes: 0,
            queue_max: 65_536,
            cursors_every: Duration::from_secs(1),
            faults: Faults::default(),
        }
    }
}

/// A switch that makes the engine's commits fail, for tests of what happens then.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<AtomicU8>);

/// How commits fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// They do not.
    None = 0,
    /// Nothing is written.
    Write = 1,
    /// Everything is written, but the sync reports an error.
    Sync = 2,
    /// Nothing is written, since there is no room.
    NoRoom = 3,
}

impl Faults {
    /// From now on commits fail this way.
    pub fn set(&self, kind: FaultKind) {
        self.0.store(kind as u8, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> FaultKind {
        match self.0.load(Ordering::SeqCst) {
            0 => FaultKind::None,
            1 => FaultKind::Write,
            3 => FaultKind::NoRoom,
            _ => FaultKind::Sync,
        }
    }
}
