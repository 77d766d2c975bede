//! Takes everything over from another store, into a folder that has nothing.

use std::future::ready;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use nexo_chat::store::{Order, StoreError, Stored};

use super::export::SPACES;
use super::folder::{Folder, OpenError};
use super::options::Options;
use super::{Embedded, entries};
use crate::archive::{ArchiveError, Import, Item, Lot};

/// What may be in a folder before its store is: what the server keeps beside it.
const BESIDE: [&str; 4] = ["LOCK", "jwt.secret", "system.token", "metrics.token"];

impl Embedded {
    /// Opens a folder to take data out of it. It must be there.
    pub fn open_to_read(
        path: impl AsRef<Path>,
        options: &Options,
    ) -> Result<Arc<Self>, ArchiveError> {
        if !path.as_ref().join("FORMAT").exists() {
            return Err(ArchiveError::Missing);
        }
        // As it is: nothing is added to what is only read.
        Ok(Self::open_in(Folder::open(path.as_ref())?.finished()?, options)?)
    }

    /// Opens a folder that has no data, to put data into it. Until [`Import::finish`] nobody can
    /// open it as a store, also after a crash.
    pub fn open_to_fill(
        path: impl AsRef<Path>,
        options: &Options,
    ) -> Result<Arc<Self>, ArchiveError> {
        let path = path.as_ref();
        if let Some(name) = strange(path)? {
            return Err(ArchiveError::NotEmpty(name));
        }
        let store = Self::open_in(Folder::open(path)?.finished()?, options)?;
        for space in SPACES {
            let all = (Bound::Unbounded, Bound::Unbounded);
            let any = store.core.engine.scan(space, all, 1, Order::Ascending, 0);
            if !any.map_err(|fault| store.core.folder.damaged(fault))?.is_empty() {
                return Err(ArchiveError::NotEmpty(space.name().replace('_', " ")));
            }
        }
        let marked = store.core.folder.begin_filling();
        marked.map_err(|source| store.core.folder.io(source))?;
        Ok(store)
    }

    /// Opens a folder that was filled but not finished, to read what the disk has of it.
    pub fn open_filled(
        path: impl AsRef<Path>,
        options: &Options,
    ) -> Result<Arc<Self>, ArchiveError> {
        Ok(Self::open_in(Folder::open(path.as_ref())?, options)?)
    }
}

/// Something in a folder without a store that is none of ours.
fn strange(path: &Path) -> Result<Option<String>, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    if path.join("FORMAT").exists() {
        return Ok(None);
    }
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
    };
    for entry in entries {
        let name = entry.map_err(io)?.file_name().to_string_lossy().into_owned();
        if !BESIDE.contains(&&*name) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

impl Import for Embedded {
    fn import(&self, lot: Lot) -> Stored<'static, ()> {
        let bytes = lot.iter().map(Item::weight).sum();
        // Here and not in the committer, which has enough to do.
        match entries::batch(&lot) {
            Ok(batch) => self.submit(bytes, move |pending| {
                pending.decided().batch.append(batch);
                Ok(())
            }),
            Err(fault) => Box::pin(ready(Err(self.core.poison.set(&fault)))),
        }
    }

    fn finish(&self) -> Stored<'_, ()> {
        // Again, should it have been made while there was nothing to take in.
        let ended = self.fold_all().map_err(|fault| self.core.poison.set(&fault)).and_then(|()| {
            let ended = self.core.folder.end_filling();
            ended.map_err(|error| StoreError::Unavailable(error.into()))
        });
        Box::pin(ready(ended))
    }
}
