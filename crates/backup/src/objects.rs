//! One object of a repository: a file named after its BLAKE3, written once, read back, copied out.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures_util::StreamExt;
use nexo_store::embedded::TableChecksum;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};

use crate::error::BackupError;
use crate::folder_writer;
use crate::repository::Repository;
use crate::transfer::Transfer;

/// The size of a part of a multipart upload, and the most of a file that is in memory at once.
const PART_BYTES: usize = 8 << 20;
const READ_BYTES: usize = 1 << 20;

/// What is copied into a repository.
pub(crate) enum Source {
    Bytes(Vec<u8>),
    /// The first bytes of a file.
    File {
        path: PathBuf,
        bytes: u64,
    },
}

impl Source {
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { bytes, .. } => *bytes,
        }
    }

    fn open(&self) -> Result<Box<dyn Read + Send + '_>, BackupError> {
        match self {
            Self::Bytes(bytes) => Ok(Box::new(bytes.as_slice())),
            Self::File { path, bytes } => {
                let file = File::open(path).map_err(BackupError::io(path))?;
                Ok(Box::new(file.take(*bytes)))
            }
        }
    }

    fn shown(&self) -> PathBuf {
        match self {
            Self::Bytes(_) => "a small file".into(),
            Self::File { path, .. } => path.clone(),
        }
    }

    /// Reads it once to learn its hash, and the checksum that a tree would have of it.
    pub(crate) async fn hash(&self, transfer: &Transfer) -> Result<(String, u128), BackupError> {
        let (mut reader, mut hasher) = (self.open()?, blake3::Hasher::new());
        let mut checksum = TableChecksum::default();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let count = reader.read(&mut buffer).map_err(BackupError::io(self.shown()))?;
            if count == 0 {
                return Ok((hasher.finalize().to_string(), checksum.finish()));
            }
            transfer.pace(count).await?;
            hasher.update(&buffer[..count]);
            checksum.update(&buffer[..count]).map_err(BackupError::io(self.shown()))?;
        }
    }
}

/// Fills a part from a reader; shorter only at the end.
fn next_part(reader: &mut dyn Read) -> std::io::Result<Vec<u8>> {
    let mut part = Vec::new();
    reader.take(PART_BYTES as u64).read_to_end(&mut part)?;
    Ok(part)
}

/// Writes an object and reads it back. It must have this hash.
pub(crate) async fn write(
    repository: &Repository,
    location: &ObjectPath,
    source: &Source,
    hash: &str,
    transfer: &Transfer,
) -> Result<(), BackupError> {
    let cannot = || BackupError::repository(format!("write {location}"));
    let mut reader = source.open()?;
    let (mut hasher, store) = (blake3::Hasher::new(), &*repository.store);
    if let Some(folder) = &repository.folder {
        let path = folder.join(location.as_ref());
        folder_writer::write(&path, &mut *reader, &mut hasher, transfer).await?;
    } else if source.bytes() <= PART_BYTES as u64 {
        let part = next_part(&mut reader).map_err(BackupError::io(source.shown()))?;
        transfer.pace(part.len()).await?;
        hasher.update(&part);
        store.put(location, PutPayload::from(part)).await.map_err(cannot())?;
    } else {
        let mut upload = store.put_multipart(location).await.map_err(cannot())?;
        let written = async {
            loop {
                let part = next_part(&mut reader).map_err(BackupError::io(source.shown()))?;
                if part.is_empty() {
                    break;
                }
                transfer.pace(part.len()).await?;
                hasher.update(&part);
                upload.put_part(PutPayload::from(part)).await.map_err(cannot())?;
            }
            Ok(())
        };
        if let Err(error) = written.await {
            if let Err(left) = upload.abort().await {
                tracing::debug!(target: "nexo::backup", %left, "an unfinished upload is left");
            }
            return Err(error);
        }
        upload.complete().await.map_err(cannot())?;
    }
    if hasher.finalize().to_string() != hash {
        return Err(BackupError::Changed(source.shown()));
    }
    transfer.add_written(source.bytes());
    read(store, location, &source.shown().display().to_string(), hash, source.bytes(), transfer)
        .await
}

/// Reads an object whole and compares its hash and size.
pub(crate) async fn read(
    store: &dyn ObjectStore,
    location: &ObjectPath,
    file: &str,
    hash: &str,
    bytes: u64,
    transfer: &Transfer,
) -> Result<(), BackupError> {
    copy_to(store, location, file, hash, bytes, transfer, &mut std::io::sink()).await
}

/// Copies an object into a new file of a folder, durably.
pub(crate) async fn copy_out(
    store: &dyn ObjectStore,
    location: &ObjectPath,
    folder: &Path,
    path: &str,
    hash: &str,
    bytes: u64,
    transfer: &Transfer,
) -> Result<(), BackupError> {
    let to = folder.join(path);
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent).map_err(BackupError::io(parent))?;
    }
    let mut file = File::create_new(&to).map_err(BackupError::io(&to))?;
    copy_to(store, location, path, hash, bytes, transfer, &mut file).await?;
    file.sync_all().map_err(BackupError::io(to))
}

async fn copy_to(
    store: &dyn ObjectStore,
    location: &ObjectPath,
    file: &str,
    hash: &str,
    bytes: u64,
    transfer: &Transfer,
    to: &mut (dyn Write + Send),
) -> Result<(), BackupError> {
    let object = location.to_string();
    let damaged = |why: String| BackupError::DamagedObject {
        file: file.to_owned(),
        object: object.clone(),
        why,
    };
    let cannot = |source| match source {
        object_store::Error::NotFound { .. } => {
            BackupError::MissingObject { file: file.to_owned(), object: object.clone() }
        }
        source => BackupError::Repository { what: format!("read {object}"), source },
    };
    let (mut hasher, mut length) = (blake3::Hasher::new(), 0);
    let mut stream = store.get(location).await.map_err(cannot)?.into_stream();
    while let Some(chunk) = stream.next().await {
        let chunk: Bytes = chunk.map_err(cannot)?;
        transfer.pace(chunk.len()).await?;
        hasher.update(&chunk);
        length += chunk.len() as u64;
        to.write_all(&chunk).map_err(BackupError::io(file))?;
    }
    if length != bytes {
        return Err(damaged(format!("it has {length} bytes and not {bytes}")));
    }
    if hasher.finalize().to_string() != hash {
        return Err(damaged("its checksum is wrong".to_owned()));
    }
    Ok(())
}
