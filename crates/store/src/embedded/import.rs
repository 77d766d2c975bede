//! Imports everything from another store, into an empty folder.

use std::future::ready;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use nexo_chat::store::{Order, StoreError, StoreFuture};

use super::export::EXPORTED;
use super::folder::{Folder, OpenError};
use super::options::Options;
use super::{Embedded, item_records};
use crate::archive::{ArchiveError, Import, Item, ItemBatch};

/// Files of the server that may be in a folder before its store exists.
const SERVER_FILES: [&str; 4] = ["LOCK", "jwt.secret", "system.token", "metrics.token"];

impl Embedded {
    /// Opens a folder to export its data. The store must exist.
    pub fn open_to_read(
        path: impl AsRef<Path>,
        options: &Options,
    ) -> Result<Arc<Self>, ArchiveError> {
        if !path.as_ref().join("FORMAT").exists() {
            return Err(ArchiveError::Missing);
        }
        // Not `open`: reading a store adds no index to it.
        Ok(Self::open_in(Folder::open(path.as_ref())?.finished()?, options)?)
    }

    /// Opens a folder without data, to import into it. Until [`Import::finish`] it cannot be opened
    /// as a store, also after a crash.
    pub fn open_to_fill(
        path: impl AsRef<Path>,
        options: &Options,
    ) -> Result<Arc<Self>, ArchiveError> {
        let path = path.as_ref();
        if let Some(name) = foreign_file(path)? {
            return Err(ArchiveError::NotEmpty(name));
        }
        let store = Self::open_in(Folder::open(path)?.finished()?, options)?;
        for keyspace in EXPORTED {
            let all = (Bound::Unbounded, Bound::Unbounded);
            let any = store.core.engine.scan(keyspace, all, 1, Order::Ascending, 0);
            if !any.map_err(|fault| store.core.folder.damaged(fault))?.is_empty() {
                return Err(ArchiveError::NotEmpty(keyspace.name().replace('_', " ")));
            }
        }
        let marked = store.core.folder.begin_filling();
        marked.map_err(|source| store.core.folder.io(source))?;
        Ok(store)
    }

    /// Opens a folder whose import did not finish, to read what is on the disk.
    pub fn open_filled(
        path: impl AsRef<Path>,
        options: &Options,
    ) -> Result<Arc<Self>, ArchiveError> {
        Ok(Self::open_in(Folder::open(path.as_ref())?, options)?)
    }
}

/// Finds a file of something else in a folder that has no store.
pub(crate) fn foreign_file(path: &Path) -> Result<Option<String>, OpenError> {
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
        if !SERVER_FILES.contains(&&*name) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

impl Import for Embedded {
    fn import(&self, batch: ItemBatch) -> StoreFuture<'static, ()> {
        let bytes = batch.iter().map(Item::weight).sum();
        // Encoded here and not in the committer, which is the bottleneck.
        match item_records::batch_of(&batch) {
            Ok(batch) => self.submit(bytes, move |pending| {
                pending.effects().batch.append(batch);
                Ok(())
            }),
            Err(fault) => Box::pin(ready(Err(self.core.poison.set(&fault)))),
        }
    }

    fn finish(&self) -> StoreFuture<'_, ()> {
        // Built again, in case it was built while the folder was empty.
        let ended =
            self.index_folded_ids().map_err(|fault| self.core.poison.set(&fault)).and_then(|()| {
                let ended = self.core.folder.end_filling();
                ended.map_err(|error| StoreError::Unavailable(error.into()))
            });
        Box::pin(ready(ended))
    }
}
