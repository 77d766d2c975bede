//! Why a backup or a restore failed, and what to do then.

use std::io;
use std::path::PathBuf;

use nexo_chat::store::StoreError;
use nexo_store::archive::ArchiveError;
use nexo_store::embedded::OpenError;

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The address of the repository makes no sense.
    #[error("{0}")]
    Target(String),
    /// There is no repository there.
    #[error("there are no backups of Nexo in {0}: look at the address")]
    NoRepository(String),
    /// The folder or S3 refused an operation.
    #[error("cannot {what}: {source}")]
    Repository { what: String, source: object_store::Error },
    /// A newer version of the program wrote it.
    #[error("{0} was written by a newer version of Nexo: use that version")]
    Newer(String),
    /// There is no such backup.
    #[error("there is no backup {0}: `nexo backup list` shows them")]
    NoBackup(String),
    /// The list of files of a backup cannot be trusted.
    #[error("the manifest of backup {id} is damaged ({why}): take another backup with --backup")]
    DamagedManifest { id: String, why: String },
    /// A file of a backup is not there.
    #[error("{file} of the backup is missing (object {object}): take another backup with --backup")]
    MissingObject { file: String, object: String },
    /// A file of a backup has another content than it had when it was written.
    #[error(
        "{file} of the backup is damaged (object {object}: {why}): take another backup with \
         --backup, or bring the object back from a copy of the repository"
    )]
    DamagedObject { file: String, object: String, why: String },
    /// The wanted time or entry cannot be restored.
    #[error("{0}")]
    NotCovered(String),
    /// A file changed while it was copied, which no file of a snapshot does.
    #[error("{0} changed while it was copied")]
    Changed(PathBuf),
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The store cannot be read.
    #[error("{0}")]
    Store(StoreError),
    /// The server is going down.
    #[error("it was stopped before it was complete")]
    Stopped,
}

impl From<StoreError> for BackupError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl BackupError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    pub(crate) fn repository(what: impl Into<String>) -> impl FnOnce(object_store::Error) -> Self {
        let what = what.into();
        move |source| Self::Repository { what, source }
    }
}
