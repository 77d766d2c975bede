//! Makes a backup of an open store: only what no backup in the repository has is copied.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use nexo_chat::clock::{Clock, Rng};
use nexo_store::Embedded;
use nexo_store::embedded::{FileContent, LogSegment, Snapshot};

use crate::error::BackupError;
use crate::manifest::{BackedUpFile, BackedUpSegment, LAYOUT, Manifest};
use crate::objects::{self, Source};
use crate::prune::GRACE_MS;
use crate::repository::{BACKUPS, Repository, StoredObject, manifest_path, object_path};
use crate::time::format_time;
use crate::transfer::Transfer;

/// The file in a data folder that names its history. No backup has it: a restored folder is
/// another history.
const HISTORY: &str = "backup.id";

pub struct BackupOptions {
    /// The data folder of the store.
    pub data: PathBuf,
    pub with_secrets: bool,
    /// The version of the program.
    pub version: String,
    pub clock: Arc<dyn Clock>,
    pub rng: Arc<dyn Rng>,
}

/// Makes a backup and returns its manifest. The store goes on meanwhile.
pub async fn create(
    repository: &Repository,
    store: &Embedded,
    options: &BackupOptions,
    transfer: &Transfer,
) -> Result<Manifest, BackupError> {
    let history = history_id(&options.data, &*options.rng)?;
    let earlier = repository.backups().await?.backups;
    // Before the snapshot: everything acknowledged up to now is in it.
    let taken_ms = options.clock.now().0;
    let mut snapshot = store.snapshot()?;
    let mut copy = Copy {
        known: KnownObjects::list(repository, &earlier, taken_ms).await?,
        tables: known_tables(earlier, &history),
        repository,
        transfer,
        used: HashMap::new(),
        damaged: Vec::new(),
    };
    let files = sources(&snapshot, options)?;
    let log_bytes = snapshot.log.segments.iter().map(|it| it.bytes);
    transfer.add_total(files.iter().map(|(_, source, _)| source.bytes()).chain(log_bytes).sum());
    // The log first, so that its segments are held for a short time only.
    let mut log = Vec::new();
    for segment in std::mem::take(&mut snapshot.log.segments) {
        log.push(copy.segment(segment).await?);
    }
    let exact_from_ms = log_time(&log, snapshot.exact_from).unwrap_or(taken_ms).min(taken_ms);
    snapshot.log.release();
    let mut listed = Vec::new();
    for (path, source, checksum) in files {
        listed.push(copy.file(path, &source, checksum).await?);
    }
    copy.check_all_there().await?;
    let manifest = Manifest {
        layout: LAYOUT,
        id: backup_id(taken_ms, &*options.rng),
        nexo: options.version.clone(),
        format: snapshot.format,
        history,
        taken_ms,
        finished_ms: options.clock.now().0,
        flushed: snapshot.flushed,
        exact_from: snapshot.exact_from,
        exact_from_ms,
        newest: snapshot.log.newest,
        with_secrets: options.with_secrets,
        bytes: copy.used.values().sum(),
        written_bytes: transfer.written(),
        damaged: copy.damaged,
        files: listed,
        log: log.into_iter().map(|(segment, _)| segment).collect(),
        blake3: String::new(),
    };
    publish(repository, manifest).await
}

/// Writes the manifest and reads it back: now the backup exists.
async fn publish(repository: &Repository, manifest: Manifest) -> Result<Manifest, BackupError> {
    let (manifest, bytes) = manifest.seal()?;
    repository.put(&manifest_path(BACKUPS, &manifest.id), bytes).await?;
    let stored = repository.backup(&manifest.id).await?;
    if stored != manifest {
        let why = "it is not what was written".to_owned();
        return Err(BackupError::DamagedManifest { id: manifest.id, why });
    }
    Ok(manifest)
}

type FileSource = (String, Source, Option<u128>);

/// The files to copy, each with the checksum that its tree knows of a table.
fn sources(snapshot: &Snapshot, options: &BackupOptions) -> Result<Vec<FileSource>, BackupError> {
    let mut sources = Vec::new();
    for file in snapshot.files() {
        let (source, checksum) = match file.content {
            FileContent::Bytes(bytes) => (Source::Bytes(bytes), None),
            FileContent::Table(path, checksum) => {
                let bytes = fs::metadata(&path).map_err(BackupError::io(&path))?.len();
                (Source::File { path, bytes }, Some(checksum))
            }
        };
        sources.push((file.path, source, checksum));
    }
    if options.with_secrets {
        for name in secret_files(&options.data)? {
            let path = options.data.join(&name);
            let bytes = fs::read(&path).map_err(BackupError::io(&path))?;
            sources.push((name, Source::Bytes(bytes), None));
        }
    }
    Ok(sources)
}

/// `jwt.secret` and the tokens.
fn secret_files(data: &Path) -> Result<Vec<String>, BackupError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(data).map_err(BackupError::io(data))? {
        let name = entry.map_err(BackupError::io(data))?.file_name().to_string_lossy().into_owned();
        if is_secret(&name) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Whether a file of the data folder is a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let kind = name.rsplit_once('.').map(|(_, kind)| kind);
    matches!(kind, Some("secret" | "token")) && !name.contains('/')
}

/// When this entry was written. Tables end where a segment ends.
fn log_time(log: &[(BackedUpSegment, LogSegment)], entry: u64) -> Option<u64> {
    let within = log.iter().find(|(it, _)| (it.first..=it.last).contains(&entry));
    match within {
        Some((_, segment)) => segment.last.at_ms,
        None => log.first().and_then(|(_, segment)| segment.first.at_ms),
    }
}

/// Objects that can be relied on to stay while this backup is made.
struct KnownObjects(HashMap<String, StoredObject>);

impl KnownObjects {
    async fn list(
        repository: &Repository,
        earlier: &[Manifest],
        now_ms: u64,
    ) -> Result<Self, BackupError> {
        let referenced: HashSet<&str> =
            earlier.iter().flat_map(Manifest::objects).map(|(hash, _, _)| hash).collect();
        let mut objects = repository.objects().await?;
        // Others may be deleted at any moment, unless they are young: a backup that was interrupted
        // goes on where it was.
        objects.retain(|hash, stored| {
            referenced.contains(hash.as_str()) || stored.written_ms + GRACE_MS / 2 > now_ms
        });
        Ok(Self(objects))
    }

    fn has(&self, hash: &str, bytes: u64) -> bool {
        self.0.get(hash).is_some_and(|stored| stored.bytes == bytes)
    }
}

/// The tables of the newest earlier backup, by path: a table that is the same need not be read.
fn known_tables(earlier: Vec<Manifest>, history: &str) -> HashMap<String, BackedUpFile> {
    let newest = earlier.into_iter().rfind(|manifest| manifest.history == history);
    let (files, damaged) =
        newest.map(|manifest| (manifest.files, manifest.damaged)).unwrap_or_default();
    files
        .into_iter()
        // A damaged one is looked at again, so that every backup says so.
        .filter(|file| !file.checksum.is_empty() && !damaged.contains(&file.path))
        .map(|file| (file.path.clone(), file))
        .collect()
}

/// A backup in the making.
struct Copy<'a> {
    repository: &'a Repository,
    transfer: &'a Transfer,
    known: KnownObjects,
    tables: HashMap<String, BackedUpFile>,
    /// The objects of this backup and their sizes.
    used: HashMap<String, u64>,
    /// Tables that are not as their tree wrote them.
    damaged: Vec<String>,
}

impl Copy<'_> {
    async fn segment(
        &mut self,
        segment: LogSegment,
    ) -> Result<(BackedUpSegment, LogSegment), BackupError> {
        let source = Source::File { path: segment.path.clone(), bytes: segment.bytes };
        let (blake3, _) = self.object(&source).await?;
        let backed_up = BackedUpSegment {
            segment: segment.number,
            first: segment.first.number,
            last: segment.last.number,
            bytes: segment.bytes,
            blake3,
        };
        Ok((backed_up, segment))
    }

    async fn file(
        &mut self,
        path: String,
        source: &Source,
        checksum: Option<u128>,
    ) -> Result<BackedUpFile, BackupError> {
        let bytes = source.bytes();
        let expected = checksum;
        let checksum = expected.map(|it| format!("{it:032x}")).unwrap_or_default();
        if let Some(known) = self.tables.get(&path)
            && (&known.checksum, known.bytes) == (&checksum, bytes)
            && self.known.has(&known.blake3, bytes)
        {
            self.transfer.check()?;
            self.transfer.add_done(bytes);
            self.used.insert(known.blake3.clone(), bytes);
            return Ok(known.clone());
        }
        let (blake3, found) = self.object(source).await?;
        if expected.is_some_and(|expected| expected != found) {
            self.damaged.push(path.clone());
        }
        Ok(BackedUpFile { path, bytes, blake3, checksum })
    }

    /// Makes sure that the repository has this content, and returns its hash and checksum.
    async fn object(&mut self, source: &Source) -> Result<(String, u128), BackupError> {
        let ((hash, checksum), bytes) = (source.hash(self.transfer).await?, source.bytes());
        if !self.known.has(&hash, bytes) && !self.used.contains_key(&hash) {
            let location = object_path(&hash);
            objects::write(self.repository, &location, source, &hash, self.transfer).await?;
        }
        self.transfer.add_done(bytes);
        self.used.insert(hash.clone(), bytes);
        Ok((hash, checksum))
    }

    /// Checks that nobody deleted an object meanwhile.
    async fn check_all_there(&self) -> Result<(), BackupError> {
        let there = self.repository.objects().await?;
        for (hash, bytes) in &self.used {
            if there.get(hash).is_none_or(|stored| stored.bytes != *bytes) {
                let file = "a file".to_owned();
                return Err(BackupError::MissingObject { file, object: hash.clone() });
            }
        }
        Ok(())
    }
}

/// Returns the name of this data folder's history, which is made at its first backup.
pub fn history_id(data: &Path, rng: &dyn Rng) -> Result<String, BackupError> {
    let path = data.join(HISTORY);
    if let Ok(known) = fs::read_to_string(&path) {
        let known = known.trim();
        if !known.is_empty() && known.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(known.to_owned());
        }
    }
    let made = random(rng);
    let write = || {
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        writeln!(file, "{made}")?;
        file.sync_all()?;
        fs::File::open(data)?.sync_all()
    };
    write().map_err(BackupError::io(&path))?;
    Ok(made)
}

fn backup_id(taken_ms: u64, rng: &dyn Rng) -> String {
    let time = format_time(taken_ms).replace(['-', ':'], "");
    format!("{time}-{}", &random(rng)[..8])
}

fn random(rng: &dyn Rng) -> String {
    let mut bytes = [0; 8];
    rng.fill(&mut bytes);
    HEXLOWER.encode(&bytes)
}
