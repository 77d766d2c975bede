//! The data folder: its lock and its format.
//!
//! ```text
//! LOCK      held while a process has the folder open
//! FORMAT    "nexo store format 4"
//! FILLING   there while data is imported into the folder: it is not complete yet
//! DIRTY     there after a sync failed: what the log seems to hold may only be in the page cache
//! witness   how far the log went, and how far it is needed (see `witness`)
//! log/      the commit log (see `log`)
//! trees/    an LSM tree for each keyspace; created as trees.new and renamed, so that they are
//!           complete or not there
//! ```

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::keys::FORMAT;
use super::poison::EngineFault;

const FILLING: &str = "FILLING";

/// Why a data folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the folder open.
    #[error("{0} is in use by another process")]
    Locked(PathBuf),
    /// The folder was written by a newer version of the program.
    #[error("{path} was written by a newer version (format {found}; this one knows up to {known})")]
    Newer {
        path: PathBuf,
        /// The format of the folder.
        found: u32,
        /// The newest format this program knows.
        known: u32,
    },
    /// The format cannot be determined.
    #[error("{path} is no data folder of a known format: {why}")]
    Unknown { path: PathBuf, why: String },
    /// Acknowledged data cannot be read any more.
    #[error("{path} is damaged: {why}")]
    Damaged { path: PathBuf, why: String },
    /// An import into the folder did not finish.
    #[error(
        "{0} holds a part of the data: a migration into it did not finish, or a restore. Delete it \
         and run the migration again, or the restore"
    )]
    Unfinished(PathBuf),
    /// The operating system refused an operation.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// Marks a folder as incomplete, durably.
pub(crate) fn mark_filling(path: &Path) -> io::Result<()> {
    let mut file = File::create(path.join(FILLING))?;
    writeln!(file, "Data is being moved into this folder. Without an end it is not all there.")?;
    file.sync_all()?;
    File::open(path)?.sync_all()
}

/// A data folder that this process has locked.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// The lock lasts as long as the file is open.
    _lock: File,
}

/// Creates the folder, durably, if it does not exist.
fn create(path: &Path) -> io::Result<()> {
    if path.try_exists()? {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

impl Folder {
    /// Locks the folder, creating it if it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        create(path).map_err(io)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join("LOCK"))
            .map_err(io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::Locked(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        let folder = Self { path: path.to_owned(), _lock: lock };
        folder.check_format()?;
        Ok(folder)
    }

    /// Returns the folder, unless an import into it did not finish.
    pub(crate) fn finished(self) -> Result<Self, OpenError> {
        match self.filling().try_exists() {
            Ok(false) => Ok(self),
            Ok(true) => Err(OpenError::Unfinished(self.path)),
            Err(error) => Err(self.io(error)),
        }
    }

    fn filling(&self) -> PathBuf {
        self.path.join(FILLING)
    }

    /// Marks the folder as incomplete: until [`Folder::end_filling`] it opens for nobody else.
    pub(crate) fn begin_filling(&self) -> io::Result<()> {
        mark_filling(&self.path)
    }

    /// Removes the mark, durably: all data is there.
    pub(crate) fn end_filling(&self) -> io::Result<()> {
        fs::remove_file(self.filling())?;
        self.sync()
    }

    fn dirty(&self) -> PathBuf {
        self.path.join("DIRTY")
    }

    /// Whether a sync failed since the folder was last opened.
    pub(crate) fn is_dirty(&self) -> io::Result<bool> {
        self.dirty().try_exists()
    }

    /// Remembers that a sync failed. The disk may fail this too, and then the log is still believed
    /// no further than the last entry that was synced.
    pub(crate) fn mark_dirty(&self, fault: &EngineFault) -> io::Result<()> {
        let mut file = File::create(self.dirty())?;
        writeln!(file, "{fault}. The log is written again at the next start.")?;
        file.sync_all()?;
        self.sync()
    }

    /// Forgets it, durably: everything in the log was written again.
    pub(crate) fn mark_clean(&self) -> io::Result<()> {
        fs::remove_file(self.dirty())?;
        self.sync()
    }

    fn check_format(&self) -> Result<(), OpenError> {
        let text = match fs::read(self.path.join("FORMAT")) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if self.trees().exists() || self.log().exists() || self.witness().exists() {
                    return Err(self.unknown("FORMAT is missing"));
                }
                return self.write_format().map_err(|source| self.io(source));
            }
            Err(error) => return Err(self.io(error)),
        };
        let number = text.trim_end().strip_prefix("nexo store format ").map(str::parse::<u32>);
        match number {
            Some(Ok(FORMAT)) => Ok(()),
            // Raised before the first write, so that an older program refuses the folder.
            Some(Ok(1..FORMAT)) => self.write_format().map_err(|source| self.io(source)),
            Some(Ok(found)) if found > FORMAT => {
                Err(OpenError::Newer { path: self.path.clone(), found, known: FORMAT })
            }
            _ => Err(self.unknown(&format!("FORMAT says {text:?}"))),
        }
    }

    fn write_format(&self) -> io::Result<()> {
        let draft = self.path.join("FORMAT.new");
        let mut file = File::create(&draft)?;
        writeln!(file, "nexo store format {FORMAT}")?;
        file.sync_all()?;
        fs::rename(draft, self.path.join("FORMAT"))?;
        self.sync()
    }

    pub(crate) fn trees(&self) -> PathBuf {
        self.path.join("trees")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    pub(crate) fn witness(&self) -> PathBuf {
        self.path.join("witness")
    }

    /// Creates the trees with `make`, and the folder of the log, if they do not exist. The trees
    /// are never seen half-made.
    pub(crate) fn ensure(
        &self,
        make: impl FnOnce(&Path) -> Result<(), EngineFault>,
    ) -> Result<(), OpenError> {
        if self.witness().exists() {
            let missing = [self.trees(), self.log()].into_iter().find(|part| !part.exists());
            return match missing {
                Some(part) => Err(self.damaged(format!("{} is missing", part.display()))),
                None => Ok(()),
            };
        }
        fs::create_dir_all(self.log()).map_err(|source| self.io(source))?;
        if self.trees().exists() {
            return Ok(());
        }
        let draft = self.path.join("trees.new");
        if draft.exists() {
            // Left by a start that was interrupted; nothing was ever acknowledged from it.
            fs::remove_dir_all(&draft).map_err(|source| self.io(source))?;
        }
        make(&draft).map_err(|fault| self.io(io::Error::other(fault)))?;
        fs::rename(&draft, self.trees())
            .and_then(|()| self.sync())
            .map_err(|source| self.io(source))
    }

    /// Syncs the folder's own entries.
    pub(crate) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    pub(crate) fn io(&self, source: io::Error) -> OpenError {
        OpenError::Io { path: self.path.clone(), source }
    }

    pub(crate) fn damaged(&self, why: impl Into<String>) -> OpenError {
        OpenError::Damaged { path: self.path.clone(), why: why.into() }
    }

    fn unknown(&self, why: &str) -> OpenError {
        OpenError::Unknown { path: self.path.clone(), why: why.to_owned() }
    }
}
