//! The data folder: who holds it, and in which format it is.
//!
//! ```text
//! LOCK      held while a process has the folder open
//! FORMAT    "nexo store format 2"
//! FILLING   there while data is moved into the folder: what is in it is not yet all
//! witness   how far the log went, and how far it is needed (see `witness`)
//! log/      the commit log (see `log`)
//! trees/    an LSM tree for each keyspace; made as trees.new and renamed, so that they are whole
//!           or not there
//! ```

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::keys::FORMAT;
use super::poison::Fault;

/// Why a data folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("{0} is in use by another process")]
    Locked(PathBuf),
    /// It was written by a newer version of the program.
    #[error("{path} was written by a newer version (format {found}; this one knows up to {known})")]
    Newer {
        /// The folder.
        path: PathBuf,
        /// The format it has.
        found: u32,
        /// The newest format this program knows.
        known: u32,
    },
    /// Its format cannot be told.
    #[error("{path} is no data folder of a known format: {why}")]
    Unknown {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Something that was acknowledged cannot be read any more.
    #[error("{path} is damaged: {why}")]
    Damaged {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Data was being moved into it, and never came to an end.
    #[error(
        "{0} holds a part of the data: a migration into it did not finish. Delete it and run the \
         migration again"
    )]
    Unfinished(PathBuf),
    /// The system would not let us.
    #[error("cannot open {path}: {source}")]
    Io {
        /// The folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

/// A data folder that this process holds.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Held by being open.
    _lock: File,
}

impl Folder {
    /// Takes the folder, making it if it is not there.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io)?;
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

    /// The folder, unless data was being moved into it and never came to an end.
    pub(crate) fn finished(self) -> Result<Self, OpenError> {
        match self.filling().try_exists() {
            Ok(false) => Ok(self),
            Ok(true) => Err(OpenError::Unfinished(self.path)),
            Err(error) => Err(self.io(error)),
        }
    }

    fn filling(&self) -> PathBuf {
        self.path.join("FILLING")
    }

    /// Data will be moved into it: until [`Folder::end_filling`] nobody else opens it.
    pub(crate) fn begin_filling(&self) -> io::Result<()> {
        let mut file = File::create(self.filling())?;
        writeln!(
            file,
            "Data is being moved into this folder. Without an end it is not all there."
        )?;
        file.sync_all()?;
        self.sync()
    }

    /// All data is there, durably.
    pub(crate) fn end_filling(&self) -> io::Result<()> {
        fs::remove_file(self.filling())?;
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
            // An older program must not find what this one writes.
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

    /// Where the trees are.
    pub(crate) fn trees(&self) -> PathBuf {
        self.path.join("trees")
    }

    /// Where the commit log is.
    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// Where the witness is.
    pub(crate) fn witness(&self) -> PathBuf {
        self.path.join("witness")
    }

    /// Makes the trees with `make`, and a place for the log, if they are not there. The trees never
    /// show half-made.
    pub(crate) fn ensure(
        &self,
        make: impl FnOnce(&Path) -> Result<(), Fault>,
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
            // Left by a start that was cut short; nothing was ever acknowledged from it.
            fs::remove_dir_all(&draft).map_err(|source| self.io(source))?;
        }
        make(&draft).map_err(|fault| self.io(io::Error::other(fault)))?;
        fs::rename(&draft, self.trees())
            .and_then(|()| self.sync())
            .map_err(|source| self.io(source))
    }

    /// Makes the folder's own entries durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    /// The system's refusal, told of this folder.
    pub(crate) fn io(&self, source: io::Error) -> OpenError {
        OpenError::Io { path: self.path.clone(), source }
    }

    /// Damage found in this folder.
    pub(crate) fn damaged(&self, why: impl Into<String>) -> OpenError {
        OpenError::Damaged { path: self.path.clone(), why: why.into() }
    }

    fn unknown(&self, why: &str) -> OpenError {
        OpenError::Unknown { path: self.path.clone(), why: why.to_owned() }
    }
}
