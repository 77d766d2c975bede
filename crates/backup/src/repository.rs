//! The layout of a repository, the same in a folder and in S3:
//!
//! ```text
//! nexo-backup.json                         says which layout this is
//! backups/<id>.json                        a manifest per backup
//! objects/ab/<hash>                        files by their BLAKE3, written once, shared by backups
//! log/<history>/<segment>-<first>-<last>-<hash>   the archived log of one data folder
//! pruned/<id>.json                         manifests deleted a short while ago
//! ```

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::TryStreamExt;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload};
use serde::{Deserialize, Serialize};

use crate::error::BackupError;
use crate::manifest::{LAYOUT, Manifest};
use crate::target::{S3Options, Target};

const MARKER: &str = "nexo-backup.json";
pub(crate) const BACKUPS: &str = "backups";
pub(crate) const PRUNED: &str = "pruned";
pub(crate) const OBJECTS: &str = "objects";
pub(crate) const LOG: &str = "log";

/// Backups in a folder or in S3.
#[derive(Clone)]
pub struct Repository {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// The folder, if it is one.
    pub(crate) folder: Option<PathBuf>,
    name: String,
}

#[derive(Deserialize, Serialize)]
struct Marker {
    layout: u32,
}

/// The backups of a repository, oldest first, and those whose manifests cannot be read.
pub struct ListedBackups {
    pub backups: Vec<Manifest>,
    pub damaged: Vec<(String, BackupError)>,
}

/// An object that exists: its size and when it was written.
#[derive(Clone, Copy)]
pub(crate) struct StoredObject {
    pub(crate) bytes: u64,
    pub(crate) written_ms: u64,
}

impl Repository {
    /// Opens a repository that exists.
    pub async fn open(target: &Target, s3: &S3Options) -> Result<Self, BackupError> {
        let repository = Self::at(target, target.open(s3)?);
        if repository.marker().await?.is_none() {
            return Err(BackupError::NoRepository(repository.name));
        }
        Ok(repository)
    }

    /// Opens a repository to write to, creating it if there is none.
    pub async fn create(target: &Target, s3: &S3Options) -> Result<Self, BackupError> {
        let repository = Self::at(target, target.create(s3)?);
        if repository.marker().await?.is_none() {
            let marker = Marker { layout: LAYOUT };
            let bytes = serde_json::to_vec(&marker).unwrap_or_default();
            repository.put(&ObjectPath::from(MARKER), bytes).await?;
        }
        Ok(repository)
    }

    fn at(target: &Target, store: Arc<dyn ObjectStore>) -> Self {
        let folder = match target {
            Target::Folder(path) => Some(path.clone()),
            Target::S3 { .. } => None,
        };
        Self { store, folder, name: target.to_string() }
    }

    async fn marker(&self) -> Result<Option<()>, BackupError> {
        let Some(bytes) = self.get(&ObjectPath::from(MARKER)).await? else { return Ok(None) };
        match serde_json::from_slice::<Marker>(&bytes) {
            Ok(Marker { layout }) if layout > LAYOUT => Err(BackupError::Newer(self.name.clone())),
            Ok(_) => Ok(Some(())),
            Err(error) => {
                Err(BackupError::Target(format!("{}: {MARKER} is damaged: {error}", self.name)))
            }
        }
    }

    pub(crate) async fn put(
        &self,
        location: &ObjectPath,
        bytes: Vec<u8>,
    ) -> Result<(), BackupError> {
        let put = self.store.put(location, PutPayload::from(bytes)).await;
        put.map(drop).map_err(BackupError::repository(format!("write {location}")))
    }

    /// Returns a small object; `None` if there is none.
    pub(crate) async fn get(&self, location: &ObjectPath) -> Result<Option<Vec<u8>>, BackupError> {
        let cannot = || BackupError::repository(format!("read {location}"));
        match self.store.get(location).await {
            Ok(found) => Ok(Some(found.bytes().await.map_err(cannot())?.to_vec())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(cannot()(error)),
        }
    }

    pub(crate) async fn delete(&self, location: &ObjectPath) -> Result<(), BackupError> {
        match self.store.delete(location).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(BackupError::repository(format!("delete {location}"))(error)),
        }
    }

    pub(crate) async fn list(&self, folder: &str) -> Result<Vec<ObjectMeta>, BackupError> {
        let listed = self.store.list(Some(&ObjectPath::from(folder))).try_collect().await;
        listed.map_err(BackupError::repository(format!("list {folder} in {}", self.name)))
    }

    /// Reads all manifests.
    pub async fn backups(&self) -> Result<ListedBackups, BackupError> {
        let mut listed = ListedBackups { backups: Vec::new(), damaged: Vec::new() };
        for (id, read) in self.manifests(BACKUPS).await? {
            match read {
                Ok(manifest) => listed.backups.push(manifest),
                Err(error) => listed.damaged.push((id, error)),
            }
        }
        listed.backups.sort_by_key(|it| (it.taken_ms, it.id.clone()));
        Ok(listed)
    }

    /// Reads the manifests of a folder, by their ids.
    pub(crate) async fn manifests(
        &self,
        folder: &str,
    ) -> Result<BTreeMap<String, Result<Manifest, BackupError>>, BackupError> {
        let mut manifests = BTreeMap::new();
        for meta in self.list(folder).await? {
            let Some(id) = meta.location.filename().and_then(|name| name.strip_suffix(".json"))
            else {
                continue;
            };
            // One that was pruned meanwhile is no backup any more.
            if let Some(bytes) = self.get(&meta.location).await? {
                manifests.insert(id.to_owned(), Manifest::read(id, &bytes));
            }
        }
        Ok(manifests)
    }

    /// Returns one backup.
    pub async fn backup(&self, id: &str) -> Result<Manifest, BackupError> {
        let unknown = || BackupError::NoBackup(id.to_owned());
        if id.contains('/') {
            return Err(unknown());
        }
        let bytes = self.get(&manifest_path(BACKUPS, id)).await?.ok_or_else(unknown)?;
        Manifest::read(id, &bytes)
    }

    /// Returns every object by its hash.
    pub(crate) async fn objects(&self) -> Result<HashMap<String, StoredObject>, BackupError> {
        let listed = self.list(OBJECTS).await?;
        let objects = listed.into_iter().filter_map(|meta| {
            let written_ms = u64::try_from(meta.last_modified.timestamp_millis()).unwrap_or(0);
            let stored = StoredObject { bytes: meta.size, written_ms };
            Some((meta.location.filename()?.to_owned(), stored))
        });
        Ok(objects.collect())
    }
}

pub(crate) fn manifest_path(folder: &str, id: &str) -> ObjectPath {
    ObjectPath::from(format!("{folder}/{id}.json"))
}

pub(crate) fn object_path(hash: &str) -> ObjectPath {
    ObjectPath::from(format!("{OBJECTS}/{}/{hash}", hash.get(..2).unwrap_or("00")))
}
