//! Writes what can be derived from intact records, and nothing else.

use std::fs;
use std::path::Path;

use super::check::{self, DerivedRecords};
use super::report::Report;
use super::snapshot::{LEFTOVERS, Snapshot};
use crate::archive::ArchiveError;
use crate::embedded::Embedded;
use crate::embedded::folder::OpenError;
use crate::embedded::keys::Keyspace;
use crate::embedded::options::Options;

/// Records written at a time.
const BATCH_RECORDS: usize = 1024;

/// Repairs a folder, and returns a sentence for each thing that was done. Every step is an ordinary commit, so a
/// crash leaves a folder that opens.
pub async fn repair(
    path: &Path,
    options: &Options,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<Vec<String>, ArchiveError> {
    let mut snapshot = Snapshot::open(path, progress)?;
    let (_, derived): (Report, DerivedRecords) = check::check(&mut snapshot, progress);
    drop(snapshot); // and with it the lock
    let mut done = Vec::new();
    for name in LEFTOVERS {
        let leftover = path.join(name);
        if !leftover.exists() {
            continue;
        }
        let removed = if leftover.is_dir() {
            fs::remove_dir_all(&leftover)
        } else {
            fs::remove_file(&leftover)
        };
        removed.map_err(|source| OpenError::Io { path: leftover, source })?;
        done.push(format!("Removed {name}, which an interrupted start left behind."));
    }
    if derived.0.is_empty() {
        return Ok(done);
    }
    progress("writing");
    let store = Embedded::open(path, options)?;
    for keyspace in Keyspace::ALL {
        let of_keyspace = derived.0.iter().filter(|(of, ..)| *of == keyspace);
        let records: Vec<(Vec<u8>, Vec<u8>)> =
            of_keyspace.map(|(_, key, value)| (key.clone(), value.clone())).collect();
        for batch in records.chunks(BATCH_RECORDS) {
            let batch = batch.to_vec();
            let write = store.submit(0, move |pending| {
                for (key, value) in &batch {
                    pending.effects().batch.put(keyspace, key, value);
                }
                Ok(())
            });
            write.await?;
        }
        if !records.is_empty() {
            done.push(format!("Wrote {} records of `{}`.", records.len(), keyspace.name()));
        }
    }
    nexo_chat::store::Store::close(&*store).await?;
    Ok(done)
}
