//! How fast a backup may copy, how far it is, and whether it should end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::BackupError;

/// Longest sleep of a paced copy, so that a stop is noticed soon.
const SLEEP_MAX: Duration = Duration::from_millis(200);

/// One run of copying, shared with whoever shows its progress.
#[derive(Default)]
pub struct Transfer {
    /// Bytes per second; zero is without a limit.
    bytes_per_second: u64,
    /// When the next bytes may be copied.
    next: Mutex<Option<Instant>>,
    stopping: AtomicBool,
    total: AtomicU64,
    done: AtomicU64,
    written: AtomicU64,
}

impl Transfer {
    /// Copies at most this many MiB in a second; zero is without a limit.
    pub fn new(mib_per_second: u64) -> Self {
        Self { bytes_per_second: mib_per_second << 20, ..Self::default() }
    }

    /// Ends the copying at its next step.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Bytes that the whole run handles.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Bytes handled so far, those that were there already included.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Bytes written to the target so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(crate) fn add_total(&self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_done(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn check(&self) -> Result<(), BackupError> {
        if self.stopping.load(Ordering::Relaxed) { Err(BackupError::Stopped) } else { Ok(()) }
    }

    /// Waits until this many bytes may be copied.
    pub(crate) async fn pace(&self, bytes: usize) -> Result<(), BackupError> {
        self.check()?;
        if self.bytes_per_second == 0 {
            return Ok(());
        }
        let now = Instant::now();
        #[allow(clippy::cast_precision_loss, reason = "a pace needs no more digits")]
        let takes = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        let begins = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let begins = next.map_or(now, |next| next.max(now));
            *next = Some(begins + takes);
            begins
        };
        loop {
            let left = begins.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.check()?;
            tokio::time::sleep(left.min(SLEEP_MAX)).await;
        }
    }
}
