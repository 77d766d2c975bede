//! Writes an object into a folder in small steps, each synced. One sync of a large file would hold up the syncs of the
//! log, if both are on the same disk.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::error::BackupError;
use crate::transfer::Transfer;

const STEP_BYTES: usize = 256 << 10;

/// Writes everything from a reader to a new file, durably: it is there as a whole, or not at all.
pub(crate) async fn write(
    path: &Path,
    reader: &mut (dyn Read + Send),
    hasher: &mut blake3::Hasher,
    transfer: &Transfer,
) -> Result<(), BackupError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(BackupError::io(folder))?;
    let draft = draft_of(path);
    if let Err(error) = write_draft(&draft, reader, hasher, transfer).await {
        if let Err(left) = fs::remove_file(&draft) {
            tracing::debug!(target: "nexo::backup", %left, "an unfinished file is left");
        }
        return Err(error);
    }
    let named = fs::rename(&draft, path).and_then(|()| File::open(folder)?.sync_all());
    named.map_err(BackupError::io(path))
}

/// A name that lists of the repository leave out: `object_store` has such names for its own drafts.
fn draft_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push("#1");
    name.into()
}

async fn write_draft(
    draft: &Path,
    reader: &mut (dyn Read + Send),
    hasher: &mut blake3::Hasher,
    transfer: &Transfer,
) -> Result<(), BackupError> {
    let mut file = File::create(draft).map_err(BackupError::io(draft))?;
    let mut step = Vec::with_capacity(STEP_BYTES);
    loop {
        step.clear();
        let read = reader.take(STEP_BYTES as u64).read_to_end(&mut step);
        if read.map_err(BackupError::io(draft))? == 0 {
            return Ok(());
        }
        transfer.pace(step.len()).await?;
        hasher.update(&step);
        file.write_all(&step).and_then(|()| file.sync_data()).map_err(BackupError::io(draft))?;
    }
}
