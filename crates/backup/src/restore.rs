//! Makes a new data folder from a backup, up to its end, to the newest archived entry, or to a time.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use nexo_store::embedded::{FolderToRestore, segment_entries};
use nexo_store::{Embedded, Options};

use crate::create::is_secret;
use crate::error::BackupError;
use crate::log_archive::archived;
use crate::log_plan::{PlannedSegment, plan};
use crate::manifest::Manifest;
use crate::objects;
use crate::repository::{Repository, object_path};
use crate::time::format_time;
use crate::transfer::Transfer;

/// What to restore.
#[derive(Clone, Debug, Default)]
pub struct RestoreRequest {
    /// This backup and nothing after it; `None` is the newest, and the archived log after it.
    pub backup: Option<String>,
    /// The data as it was at this time, in milliseconds since 1970.
    pub at_ms: Option<u64>,
    /// The new data folder.
    pub data: PathBuf,
    pub options: Options,
}

/// What was restored.
pub struct Restored {
    /// The open store. The folder opens for nobody else until its import is finished.
    pub store: Arc<Embedded>,
    pub manifest: Manifest,
    /// The newest entry that was restored, and when it was written, if the log says so.
    pub newest: u64,
    pub newest_ms: Option<u64>,
    /// Whether the repository has everything up to the time that was asked for.
    pub is_covered: bool,
}

/// Copies a backup into a new folder and opens it. After a failure the folder is incomplete, and
/// says so when it is opened.
pub async fn restore(
    repository: &Repository,
    request: &RestoreRequest,
    transfer: &Transfer,
) -> Result<Restored, BackupError> {
    let manifest = choose(repository, request).await?;
    // A backup that is named is restored as it is, unless a time says how far to go beyond it.
    let with_archive = request.backup.is_none() || request.at_ms.is_some();
    let archived = match with_archive {
        true => archived(repository, &manifest.history).await?,
        false => Vec::new(),
    };
    let segments = plan(&manifest, &archived);
    let reached = segments.last().map_or(manifest.flushed, |segment| segment.last);
    if reached < manifest.newest {
        let (id, why) = (manifest.id.clone(), "entries of its log are missing".to_owned());
        return Err(BackupError::DamagedManifest { id, why });
    }
    check_paths(&manifest)?;
    let log_bytes = segments.iter().map(|segment| segment.bytes);
    transfer.add_total(manifest.files.iter().map(|file| file.bytes).chain(log_bytes).sum());
    let folder = FolderToRestore::create(&request.data, manifest.format)?;
    let store = &*repository.store;
    for file in &manifest.files {
        let (location, hash) = (object_path(&file.blake3), &file.blake3);
        let (data, path) = (&request.data, &file.path);
        objects::copy_out(store, &location, data, path, hash, file.bytes, transfer).await?;
        transfer.add_done(file.bytes);
    }
    create_table_folders(&request.data)?;
    let end = copy_log(repository, &segments, &manifest, request, transfer).await?;
    if end.newest < manifest.exact_from {
        return Err(not_covered(request, &manifest));
    }
    let store = folder.open(manifest.flushed, end.newest, &request.options)?;
    let LogEnd { newest, newest_ms, is_cut } = end;
    let at_ms = request.at_ms.unwrap_or(0);
    let is_covered = is_cut || at_ms <= manifest.taken_ms;
    Ok(Restored { store, manifest, newest, newest_ms, is_covered })
}

/// Picks the backup.
async fn choose(
    repository: &Repository,
    request: &RestoreRequest,
) -> Result<Manifest, BackupError> {
    if let Some(id) = &request.backup {
        let manifest = repository.backup(id).await?;
        return match request.at_ms {
            Some(at_ms) if at_ms < manifest.exact_from_ms => Err(not_covered(request, &manifest)),
            _ => Ok(manifest),
        };
    }
    let listed = repository.backups().await?;
    let newest = listed.backups.last().map(|manifest| manifest.id.clone()).unwrap_or_default();
    // Ids begin with their time. Without a time, what is wanted is the newest, and not silently an
    // older one.
    if let Some((_, error)) = listed.damaged.into_iter().find(|(id, _)| *id > newest)
        && request.at_ms.is_none()
    {
        return Err(error);
    }
    let earliest = listed.backups.first().cloned();
    let wanted = request.at_ms.unwrap_or(u64::MAX);
    let fits = |manifest: &Manifest| manifest.exact_from_ms <= wanted;
    match (listed.backups.into_iter().rfind(fits), earliest) {
        (Some(manifest), _) => Ok(manifest),
        (None, Some(earliest)) => Err(not_covered(request, &earliest)),
        (None, None) => Err(BackupError::NoRepository("the repository".to_owned())),
    }
}

fn not_covered(request: &RestoreRequest, earliest: &Manifest) -> BackupError {
    let at = format_time(request.at_ms.unwrap_or(0));
    let (id, from) = (&earliest.id, format_time(earliest.exact_from_ms));
    BackupError::NotCovered(format!(
        "{at} cannot be restored: the log of backup {id} begins at {from}. Give a later --at, or an \
         older backup with --backup"
    ))
}

/// Refuses a manifest that would write outside of the data folder.
fn check_paths(manifest: &Manifest) -> Result<(), BackupError> {
    for file in &manifest.files {
        let path = Path::new(&file.path);
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || !(path.starts_with("trees") || is_secret(&file.path)) {
            let why = format!("{:?} is no file of a data folder", file.path);
            return Err(BackupError::DamagedManifest { id: manifest.id.clone(), why });
        }
    }
    Ok(())
}

/// A tree without tables has a folder for them too.
fn create_table_folders(data: &Path) -> Result<(), BackupError> {
    let trees = data.join("trees");
    for tree in fs::read_dir(&trees).map_err(BackupError::io(&trees))? {
        let tables = tree.map_err(BackupError::io(&trees))?.path().join("tables");
        fs::create_dir_all(&tables).map_err(BackupError::io(&tables))?;
    }
    Ok(())
}

struct LogEnd {
    newest: u64,
    newest_ms: Option<u64>,
    /// Whether later entries were left out.
    is_cut: bool,
}

/// Copies the log, and cuts it before the first entry that is later than the wanted time.
async fn copy_log(
    repository: &Repository,
    segments: &[PlannedSegment],
    manifest: &Manifest,
    request: &RestoreRequest,
    transfer: &Transfer,
) -> Result<LogEnd, BackupError> {
    let mut end = LogEnd { newest: manifest.flushed, newest_ms: None, is_cut: false };
    for segment in segments {
        let (store, path) = (&*repository.store, format!("log/{:010}.log", segment.number));
        let PlannedSegment { location, blake3, bytes, .. } = segment;
        objects::copy_out(store, location, &request.data, &path, blake3, *bytes, transfer).await?;
        let to = request.data.join(&path);
        transfer.add_done(segment.bytes);
        let mut kept_bytes = 0;
        for (entry, ends) in segment_entries(&to, segment.number).map_err(BackupError::io(&to))? {
            // What the tables have is always kept; else nothing could be replayed on them.
            let is_later = entry.at_ms.zip(request.at_ms).is_some_and(|(at, wanted)| at > wanted);
            if is_later && entry.number > manifest.flushed {
                end.is_cut = true;
                break;
            }
            kept_bytes = ends;
            if entry.number > end.newest {
                (end.newest, end.newest_ms) = (entry.number, entry.at_ms);
            }
        }
        if end.is_cut {
            cut(&to, kept_bytes).map_err(BackupError::io(&to))?;
            break;
        }
    }
    Ok(end)
}

/// Shortens a file; without any entry it goes.
fn cut(path: &Path, bytes: u64) -> std::io::Result<()> {
    if bytes == 0 {
        return fs::remove_file(path);
    }
    let file = fs::File::options().write(true).open(path)?;
    file.set_len(bytes)?;
    file.sync_all()
}
