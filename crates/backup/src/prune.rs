//! Deletes old backups, then what no backup needs any more.
//!
//! A backup may be running meanwhile and rely on objects of an older one. So a deleted manifest
//! stays in `pruned/` for a while, and until then its objects stay; an object without any manifest
//! stays for as long, since its manifest may be still to come.

use std::collections::{HashMap, HashSet};

use crate::error::BackupError;
use crate::log_archive::archived;
use crate::manifest::Manifest;
use crate::repository::{BACKUPS, LOG, PRUNED, Repository, manifest_path, object_path};

/// How long the objects of a deleted backup stay.
pub(crate) const GRACE_MS: u64 = 24 * 3_600_000;
const DAY_MS: u64 = 24 * 3_600_000;

/// Which backups stay: those that one of the two wants. Without either, all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keep {
    /// So many of the newest; zero wants none.
    pub last: usize,
    /// Those of so many days; zero wants none.
    pub days: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The ids of the deleted backups.
    pub backups: Vec<String>,
    pub objects: usize,
    pub bytes: u64,
}

/// Deletes what `keep` does not want. `grace_ms` is a day, unless it is certain that no backup is
/// being made.
pub async fn prune(
    repository: &Repository,
    keep: Keep,
    now_ms: u64,
    grace_ms: Option<u64>,
) -> Result<Pruned, BackupError> {
    let grace_ms = grace_ms.unwrap_or(GRACE_MS);
    let listed = repository.backups().await?;
    // What a damaged manifest needs is unknown: nothing may be deleted.
    if let Some((_, error)) = listed.damaged.into_iter().next() {
        return Err(error);
    }
    let (kept, outdated) = split(listed.backups, keep, now_ms);
    let mut pruned = Pruned::default();
    for manifest in outdated {
        let (manifest, bytes) = manifest.seal()?;
        repository.put(&manifest_path(PRUNED, &manifest.id), bytes).await?;
        repository.delete(&manifest_path(BACKUPS, &manifest.id)).await?;
        pruned.backups.push(manifest.id);
    }
    let recent = forget_pruned(repository, now_ms, grace_ms).await?;
    let needed: HashSet<&str> =
        kept.iter().chain(&recent).flat_map(Manifest::objects).map(|(hash, _, _)| hash).collect();
    for (hash, stored) in repository.objects().await? {
        if !needed.contains(hash.as_str()) && stored.written_ms + grace_ms <= now_ms {
            repository.delete(&object_path(&hash)).await?;
            pruned.objects += 1;
            pruned.bytes += stored.bytes;
        }
    }
    prune_log(repository, &kept, &recent, &mut pruned).await?;
    Ok(pruned)
}

/// Returns the backups to keep and the others. The newest always stays.
fn split(backups: Vec<Manifest>, keep: Keep, now_ms: u64) -> (Vec<Manifest>, Vec<Manifest>) {
    if keep.last == 0 && keep.days == 0 {
        return (backups, Vec::new());
    }
    let first_kept = backups.len().saturating_sub(keep.last.max(1));
    let since = now_ms.saturating_sub(keep.days * DAY_MS);
    let (mut kept, mut outdated) = (Vec::new(), Vec::new());
    for (place, manifest) in backups.into_iter().enumerate() {
        let is_young = keep.days > 0 && manifest.taken_ms >= since;
        if place >= first_kept || is_young { kept.push(manifest) } else { outdated.push(manifest) }
    }
    (kept, outdated)
}

/// Deletes the manifests that were pruned long ago, and returns the others.
async fn forget_pruned(
    repository: &Repository,
    now_ms: u64,
    grace_ms: u64,
) -> Result<Vec<Manifest>, BackupError> {
    let mut since = HashMap::new();
    for meta in repository.list(PRUNED).await? {
        let at = u64::try_from(meta.last_modified.timestamp_millis()).unwrap_or(0);
        let name = meta.location.filename().unwrap_or_default();
        since.insert(name.trim_end_matches(".json").to_owned(), at);
    }
    let mut recent = Vec::new();
    for (id, manifest) in repository.manifests(PRUNED).await? {
        if since.get(&id).is_some_and(|at| at + grace_ms > now_ms) {
            recent.push(manifest?);
        } else {
            repository.delete(&manifest_path(PRUNED, &id)).await?;
        }
    }
    Ok(recent)
}

/// Deletes the archived log that lies before every backup of its history.
async fn prune_log(
    repository: &Repository,
    kept: &[Manifest],
    recent: &[Manifest],
    pruned: &mut Pruned,
) -> Result<(), BackupError> {
    let mut histories: HashMap<&str, u64> = HashMap::new();
    for manifest in kept.iter().chain(recent) {
        let flushed = histories.entry(&manifest.history).or_insert(manifest.flushed);
        *flushed = manifest.flushed.min(*flushed);
    }
    let listed = repository.list(LOG).await?;
    let found: HashSet<String> = listed
        .iter()
        .filter_map(|meta| Some(meta.location.parts().nth(1)?.as_ref().to_owned()))
        .collect();
    for history in found {
        // A history without any backup may be about to get its first.
        let Some(flushed) = histories.get(history.as_str()) else { continue };
        for segment in archived(repository, &history).await? {
            if segment.last <= *flushed {
                repository.delete(&segment.path(&history)).await?;
                pruned.objects += 1;
                pruned.bytes += segment.bytes;
            }
        }
    }
    Ok(())
}
