//! Records, outside of the log, how far it went and how far it is still needed.
//!
//! The log ends where an entry cannot be read. That is right for a write that was torn by a power
//! cut and wrong for one that was acknowledged. So after each synced batch its number is written
//! here, unsynced: it costs nothing, and since it is written after the batch it is never ahead of
//! the disk. If the log ends below it, acknowledged batches are missing. For the same reason a copy
//! of an open folder must copy this file first.
//!
//! The second number says up to which entry the trees have flushed everything. It is durable before
//! the log is retired up to there.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::fail_points::{self, SyncPoint};

/// The open file: two numbers with their checksums.
#[derive(Debug)]
pub(crate) struct Witness(File);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WitnessRecord {
    /// At least everything up to this entry of the log was acknowledged.
    pub(crate) acknowledged: u64,
    /// Everything up to this entry is in the trees' files.
    pub(crate) flushed: u64,
}

const LENGTH: usize = 12;

impl Witness {
    /// Creates the file for a new store.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let draft = path.with_extension("new");
        let witness = Self(File::create(&draft)?);
        witness.set_acknowledged(0)?;
        witness.set_flushed(0)?;
        witness.0.sync_all()?;
        std::fs::rename(draft, path)?;
        Ok(witness)
    }

    /// Reads the numbers; `None` if there is no file. A malformed file is invalid data.
    pub(crate) fn read(path: &Path) -> io::Result<Option<WitnessRecord>> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        decode(&bytes).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        File::options().write(true).open(path).map(Self)
    }

    /// Records that this entry is durable. Not synced.
    pub(crate) fn set_acknowledged(&self, entry: u64) -> io::Result<()> {
        self.0.write_all_at(&encode(entry), 0)
    }

    /// Records durably that the trees have flushed everything up to this entry.
    pub(crate) fn set_flushed(&self, entry: u64) -> io::Result<()> {
        self.0.write_all_at(&encode(entry), LENGTH as u64)?;
        fail_points::sync(SyncPoint::Witness, || self.0.sync_data())
    }
}

fn encode(number: u64) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes[8..].copy_from_slice(&crc32fast::hash(&number.to_be_bytes()).to_be_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<WitnessRecord> {
    let number = |bytes: &[u8]| {
        let number = u64::from_be_bytes(*bytes.first_chunk()?);
        (encode(number) == bytes).then_some(number)
    };
    let (first, second) = bytes.split_at_checked(LENGTH)?;
    Some(WitnessRecord { acknowledged: number(first)?, flushed: number(second)? })
}
