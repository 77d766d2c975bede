//! Puts the files of a backup into a new data folder.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use super::Embedded;
use super::folder::{Folder, OpenError, mark_filling};
use super::import::foreign_file;
use super::keys::FORMAT;
use super::options::Options;
use super::segment::ScannedSegment;
use super::snapshot::LogEntryAt;
use super::witness::Witness;
use crate::archive::ArchiveError;

/// A folder that is being restored. Until [`Import::finish`](crate::archive::Import::finish) it
/// opens for nobody else, also after a crash.
pub struct FolderToRestore {
    folder: Folder,
}

impl FolderToRestore {
    /// Locks a folder without data and marks it as incomplete. The backup has this format.
    pub fn create(path: &Path, format: u32) -> Result<Self, ArchiveError> {
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        if format > FORMAT {
            let (path, found, known) = (path.to_owned(), format, FORMAT);
            return Err(OpenError::Newer { path, found, known }.into());
        }
        if path.join("FORMAT").exists() {
            return Err(ArchiveError::NotEmpty("a store".to_owned()));
        }
        if let Some(name) = foreign_file(path)? {
            return Err(ArchiveError::NotEmpty(name));
        }
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io)?;
        // Before there is a store: a crash must not leave a folder that opens as an empty one.
        mark_filling(path).map_err(io)?;
        let folder = Folder::open(path)?;
        fs::create_dir_all(folder.log()).map_err(io)?;
        fs::create_dir_all(folder.trees()).map_err(io)?;
        Ok(Self { folder })
    }

    /// Syncs the folders, records how far the log goes, and opens the store, which replays the log.
    pub fn open(
        self,
        flushed: u64,
        newest: u64,
        options: &Options,
    ) -> Result<Arc<Embedded>, OpenError> {
        let folder = self.folder;
        let io = |source| folder.io(source);
        sync_folders(&folder.trees()).map_err(io)?;
        sync_folders(&folder.log()).map_err(io)?;
        let witness = Witness::create(&folder.witness()).map_err(io)?;
        witness.set_acknowledged(newest).map_err(io)?;
        witness.set_flushed(flushed).map_err(io)?;
        folder.sync().map_err(io)?;
        Embedded::open_in(folder, options)
    }
}

fn sync_folders(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    File::open(path)?.sync_all()
}

/// Returns the entries of a copied segment, each with where it ends in the file.
pub fn segment_entries(path: &Path, number: u64) -> io::Result<Vec<(LogEntryAt, u64)>> {
    Ok(ScannedSegment::read(path, number, 0)?.ends().collect())
}
