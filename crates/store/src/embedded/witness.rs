//! Remembers, outside of the tree, how many batches were made durable.
//!
//! The tree cuts its journal off at an entry it cannot read, which is right for a write that was
//! torn by a power cut and wrong for one that was acknowledged. So after each synced batch its
//! number is written here, unsynced: it costs nothing, and since it is written after the batch it
//! is never ahead of the disk. If the tree ends below it, acknowledged batches are gone. For the
//! same reason a copy of an open folder must take this file first.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The open file: a batch number and its checksum.
#[derive(Debug)]
pub(crate) struct Witness(File);

const LENGTH: usize = 12;

impl Witness {
    /// Makes the file for a tree without batches.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = File::create_new(path)?;
        let witness = Self(file);
        witness.record(0)?;
        witness.0.sync_all()?;
        Ok(witness)
    }

    /// Reads the number; `None` if there is no file. One that makes no sense is invalid data.
    pub(crate) fn read(path: &Path) -> io::Result<Option<u64>> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let number = bytes.try_into().ok().and_then(decode);
        number.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Opens the file to go on.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        File::options().write(true).open(path).map(Self)
    }

    /// Remembers that this batch is durable.
    pub(crate) fn record(&self, batch: u64) -> io::Result<()> {
        self.0.write_all_at(&encode(batch), 0)
    }
}

fn encode(batch: u64) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..8].copy_from_slice(&batch.to_be_bytes());
    bytes[8..].copy_from_slice(&crc32fast::hash(&batch.to_be_bytes()).to_be_bytes());
    bytes
}

fn decode(bytes: [u8; LENGTH]) -> Option<u64> {
    let batch = u64::from_be_bytes(*bytes.first_chunk()?);
    (encode(batch) == bytes).then_some(batch)
}
