//! Processor time of this process, and disk space.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::sleep;

/// A generated store ends up smaller, but compaction rewrites it while it grows.
const BYTES_PER_MESSAGE: u64 = 1000;
/// The engine preallocates some space.
const BYTES_LEAST: u64 = 1 << 30;

/// Processor time of all threads of this process.
pub(super) fn cpu() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(used.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(used.tv_nsec).unwrap_or_default())
}

/// Microseconds for each of `count`.
pub(super) fn micros_each(took: Duration, count: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a count of messages or calls")]
    let count = count.max(1) as f64;
    took.as_secs_f64() * 1e6 / count
}

/// Waits until compaction has caught up, so that the next measurement pays only for itself; at most
/// a minute.
pub(super) async fn settle() {
    const STEP: Duration = Duration::from_millis(250);
    for _ in 0..240 {
        let before = cpu();
        sleep(STEP).await;
        if cpu().saturating_sub(before) < STEP / 20 {
            return;
        }
    }
}

/// Fails if the disk may not have room for so many messages.
pub(super) fn check_space(folder: &Path, messages: u64) -> Result<()> {
    let disk = rustix::fs::statvfs(folder)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let needed = messages.saturating_mul(BYTES_PER_MESSAGE).max(BYTES_LEAST);
    let mib = |bytes: u64| bytes >> 20;
    ensure!(
        free > needed,
        "{messages} messages may need {} MiB while they are written, and {} has {} MiB",
        mib(needed),
        folder.display(),
        mib(free)
    );
    Ok(())
}

/// Bytes that a folder takes on the disk.
pub(super) fn bytes_in(folder: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let entry = entry?;
        let about = entry.metadata()?;
        // Blocks, not lengths: the log's segments are preallocated.
        bytes += if about.is_dir() { bytes_in(&entry.path())? } else { about.blocks() * 512 };
    }
    Ok(bytes)
}
