//! Reads backups back and compares every byte with what was written.

use std::collections::HashMap;

use crate::error::BackupError;
use crate::manifest::Manifest;
use crate::objects;
use crate::repository::{Repository, object_path};
use crate::transfer::Transfer;

/// What was read, and what is wrong.
#[derive(Default)]
pub struct Verified {
    pub backups: usize,
    pub objects: usize,
    pub bytes: u64,
    /// A sentence for each damaged or missing object or manifest, with the backups that need it.
    pub problems: Vec<String>,
}

/// Reads every object of one backup, or of all.
pub async fn verify(
    repository: &Repository,
    id: Option<&str>,
    transfer: &Transfer,
) -> Result<Verified, BackupError> {
    let mut verified = Verified::default();
    let backups = match id {
        Some(id) => vec![repository.backup(id).await?],
        None => {
            let listed = repository.backups().await?;
            verified.problems.extend(listed.damaged.iter().map(|(_, error)| error.to_string()));
            listed.backups
        }
    };
    verified.backups = backups.len();
    let mut needed: HashMap<&str, (u64, String, Vec<&str>)> = HashMap::new();
    for (manifest, (hash, bytes, file)) in
        backups.iter().flat_map(|it| it.objects().map(move |object| (it, object)))
    {
        let (_, _, ids) = needed.entry(hash).or_insert_with(|| (bytes, file, Vec::new()));
        if ids.last() != Some(&manifest.id.as_str()) {
            ids.push(&manifest.id);
        }
    }
    verified.objects = needed.len();
    verified.bytes = needed.values().map(|(bytes, ..)| bytes).sum();
    transfer.add_total(verified.bytes);
    for (hash, (bytes, file, ids)) in needed {
        let location = object_path(hash);
        let read = objects::read(&*repository.store, &location, &file, hash, bytes, transfer).await;
        match read {
            Ok(()) => {}
            Err(
                error @ (BackupError::MissingObject { .. } | BackupError::DamagedObject { .. }),
            ) => verified.problems.push(format!("{error} (needed by {})", ids.join(", "))),
            Err(error) => return Err(error),
        }
        transfer.add_done(bytes);
    }
    verified.problems.sort();
    Ok(verified)
}

impl Manifest {
    /// Bytes of all files as they are in a data folder.
    pub fn restored_bytes(&self) -> u64 {
        self.objects().map(|(_, bytes, _)| bytes).sum()
    }
}
