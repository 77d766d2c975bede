//! Options of the embedded engine.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use nexo_chat::clock::Clock;
use nexo_chat::ids::Millis;

/// Settings of the embedded engine.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cache of blocks read from disk.
    pub cache_bytes: u64,
    /// The memtables are flushed when they reach this size. More means less work for the disk and a
    /// longer recovery after a crash.
    pub memtable_bytes: u64,
    /// With fewer free bytes on the disk, writes are refused.
    pub reserve_bytes: u64,
    /// Open table files that are cached for the next read.
    pub table_files_max: usize,
    /// Writes that may wait; further ones are refused at once.
    pub queue_max: usize,
    /// How often moved cursors are written behind.
    pub cursors_every: Duration,
    /// Tells the time of each entry of the log, for a restore to a point in time.
    pub clock: LogClock,
    /// For tests: makes writes fail.
    pub faults: Faults,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 128 << 20,
            memtable_bytes: 64 << 20,
            reserve_bytes: 0,
            table_files_max: 512,
            queue_max: 65_536,
            cursors_every: Duration::from_secs(1),
            clock: LogClock::default(),
            faults: Faults::default(),
        }
    }
}

/// The clock of the log. Without one, entries say nothing of their time.
#[derive(Clone, Default)]
pub struct LogClock(Option<Arc<dyn Clock>>);

impl LogClock {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(Some(clock))
    }

    pub(crate) fn now(&self) -> Millis {
        self.0.as_ref().map_or(Millis(0), |clock| clock.now())
    }
}

impl fmt::Debug for LogClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogClock")
    }
}

/// A switch for tests that makes commits fail.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<AtomicU8>);

/// How commits fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    None = 0,
    /// Nothing is written.
    Write = 1,
    /// Everything is written, but the sync reports an error.
    Sync = 2,
    /// Nothing is written, since the disk is full.
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
