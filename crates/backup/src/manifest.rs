//! What one backup consists of. A backup exists when its manifest does: it is written last.

use serde::{Deserialize, Serialize};

use crate::error::BackupError;

/// The layout of a repository that this program writes.
pub(crate) const LAYOUT: u32 = 1;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The layout of the repository.
    pub layout: u32,
    /// When it was taken, and something random.
    pub id: String,
    /// The version of the program that made it.
    pub nexo: String,
    /// The format of the data folder.
    pub format: u32,
    /// The data folder it is from. A restored folder begins a new history: its log goes on
    /// differently from the same numbers.
    pub history: String,
    /// The moment whose data it has.
    pub taken_ms: u64,
    pub finished_ms: u64,
    /// Everything up to this entry of the log is in the tables.
    pub flushed: u64,
    /// Nothing newer than this entry is in the tables, so the log can be cut here or later …
    pub exact_from: u64,
    /// … and so at this time or later.
    pub exact_from_ms: u64,
    /// The newest entry.
    pub newest: u64,
    pub with_secrets: bool,
    pub files: Vec<BackedUpFile>,
    /// The entries after `flushed`.
    pub log: Vec<BackedUpSegment>,
    /// All bytes it refers to, and those that no backup before it had.
    pub bytes: u64,
    pub written_bytes: u64,
    /// BLAKE3 of this manifest with this field empty.
    pub blake3: String,
}

/// A file by its path within the data folder.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BackedUpFile {
    pub path: String,
    pub bytes: u64,
    pub blake3: String,
    /// The checksum that the tree knows of a table file; empty for others.
    pub checksum: String,
}

/// A segment of the log, cut after its newest durable entry.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BackedUpSegment {
    pub segment: u64,
    pub first: u64,
    pub last: u64,
    pub bytes: u64,
    pub blake3: String,
}

impl Manifest {
    /// Returns the file's content, with its checksum.
    pub(crate) fn seal(mut self) -> Result<(Self, Vec<u8>), BackupError> {
        self.blake3 = self.checksum()?;
        let bytes = serde_json::to_vec_pretty(&self).map_err(|error| self.damaged(error))?;
        Ok((self, bytes))
    }

    /// Reads a file's content, and refuses it if a byte of it changed.
    pub(crate) fn read(id: &str, bytes: &[u8]) -> Result<Self, BackupError> {
        #[derive(Deserialize)]
        struct LayoutOnly {
            layout: u32,
        }
        let damaged = |why: String| BackupError::DamagedManifest { id: id.to_owned(), why };
        let LayoutOnly { layout } =
            serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        if layout > LAYOUT {
            return Err(BackupError::Newer(format!("backup {id}")));
        }
        let manifest: Self =
            serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        if manifest.blake3 != manifest.checksum()? || manifest.id != id {
            return Err(damaged("its checksum is wrong".to_owned()));
        }
        Ok(manifest)
    }

    fn checksum(&self) -> Result<String, BackupError> {
        let bare = Self { blake3: String::new(), ..self.clone() };
        let bytes = serde_json::to_vec(&bare).map_err(|error| self.damaged(error))?;
        Ok(blake3::hash(&bytes).to_string())
    }

    fn damaged(&self, error: impl ToString) -> BackupError {
        BackupError::DamagedManifest { id: self.id.clone(), why: error.to_string() }
    }

    /// Every object it refers to: its hash, its size, and the file it is.
    pub fn objects(&self) -> impl Iterator<Item = (&str, u64, String)> {
        let files = self.files.iter().map(|it| (it.blake3.as_str(), it.bytes, it.path.clone()));
        let log = self
            .log
            .iter()
            .map(|it| (it.blake3.as_str(), it.bytes, format!("log/{:010}.log", it.segment)));
        files.chain(log)
    }
}
