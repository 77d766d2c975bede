//! The bare disk: the bytes of a batch of messages appended to one file, then one fdatasync.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::measure::{Percentiles, histogram};
use crate::schedule::nanos;

/// Batches measured.
pub const BATCHES: [usize; 4] = [1, 16, 64, 256];
/// A message of 200 bytes with its keys and index records.
const MESSAGE_BYTES: usize = 450;
/// The sizes alternate, so that other load on the machine affects all of them.
const ROUNDS: usize = 4;
const ROUND: Duration = Duration::from_millis(500);
/// A new file begins at this size, so that the disk does not fill up.
const FILE_BYTES_MAX: usize = 256 << 20;

/// Figures of one batch size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiskRow {
    /// Messages of a batch.
    pub batch: usize,
    /// Messages durable per second.
    pub messages_per_second: f64,
    /// From writing a batch to its being durable.
    pub commit: Percentiles,
}

/// Measures all batch sizes in a folder; blocks for about eight seconds.
pub fn measure(folder: &Path) -> Result<Vec<DiskRow>> {
    measure_for(folder, ROUND)
}

fn measure_for(folder: &Path, round: Duration) -> Result<Vec<DiskRow>> {
    let logs: Result<Vec<_>> =
        BATCHES.iter().map(|batch| AppendFile::new(folder, *batch)).collect();
    let mut logs = logs?;
    for _ in 0..ROUNDS {
        logs.iter_mut().try_for_each(|log| log.append(folder, round))?;
    }
    Ok(logs.into_iter().map(AppendFile::close).collect())
}

/// A growing file that takes batches of one size.
struct AppendFile {
    file: File,
    file_bytes: usize,
    batch: usize,
    bytes: Vec<u8>,
    commits: Histogram<u64>,
    spent: Duration,
}

impl AppendFile {
    fn new(folder: &Path, batch: usize) -> Result<Self> {
        Ok(Self {
            file: new_file(folder)?,
            file_bytes: 0,
            batch,
            bytes: vec![b'x'; batch * MESSAGE_BYTES],
            commits: histogram()?,
            spent: Duration::ZERO,
        })
    }

    /// Appends and syncs batches for some time.
    fn append(&mut self, folder: &Path, time: Duration) -> Result<()> {
        let began = Instant::now();
        while began.elapsed() < time {
            if self.file_bytes >= FILE_BYTES_MAX {
                self.file = new_file(folder)?;
                self.file_bytes = 0;
            }
            let commit = Instant::now();
            self.file.write_all(&self.bytes)?;
            self.file.sync_data()?;
            self.commits.saturating_record(nanos(commit.elapsed()));
            self.file_bytes += self.bytes.len();
        }
        self.spent += began.elapsed();
        Ok(())
    }

    fn close(self) -> DiskRow {
        #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
        let messages = self.commits.len() as f64 * self.batch as f64;
        DiskRow {
            batch: self.batch,
            messages_per_second: messages / self.spent.as_secs_f64(),
            commit: Percentiles::of(&self.commits),
        }
    }
}

/// An unlinked file: it disappears with the process, however that ends.
fn new_file(folder: &Path) -> Result<File> {
    tempfile::tempfile_in(folder).with_context(|| format!("no file in {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_every_size_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let rows = measure_for(folder.path(), Duration::from_millis(5)).unwrap();
        assert!(rows.iter().map(|row| row.batch).eq(BATCHES));
        assert!(rows.iter().all(|row| row.commit.count > 0 && row.messages_per_second > 0.0));
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}
