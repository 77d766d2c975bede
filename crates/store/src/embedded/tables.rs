//! The table files of a tree, one by one: which of them cannot be read, and whether the list of them
//! is the one that was written.

use std::fs;
use std::io::{self, Write};
use std::ops::Bound;
use std::path::Path;

use lsm_tree::checksum::ChecksummedWriter;
use lsm_tree::{AbstractTree, AnyTree, Table};

use super::doctor::KeyGap;
use super::engine::Slice;
use super::keys::KeyRange;

/// Records of a table that are read to find out whether it is the damaged one.
const RECORDS_MAX: usize = 4096;

/// The file that every tree has; without it the library would silently create a new tree.
pub(crate) const TREE_FILE: &str = "current";

/// Returns the names of the tables that cannot be read in a range.
pub(crate) fn unreadable(tree: &AnyTree, range: &KeyRange) -> Vec<String> {
    let version = tree.current_version();
    let bounds = (slice(&range.0), slice(&range.1));
    let is_damaged = |table: &&Table| {
        let overlaps = table.metadata.key_range.overlaps_with_bounds(&(
            bounds.0.as_ref().map(AsRef::as_ref),
            bounds.1.as_ref().map(AsRef::as_ref),
        ));
        overlaps && table.range(bounds.clone()).take(RECORDS_MAX).any(|read| read.is_err())
    };
    version.iter_tables().filter(is_damaged).map(name).collect()
}

/// Whether every table of a tree can be read from its first to its last record.
pub(crate) fn are_readable(tree: &AnyTree) -> bool {
    tree.current_version()
        .iter_tables()
        .all(|table| table.scan().is_ok_and(|mut records| records.all(|read| read.is_ok())))
}

fn name(table: &Table) -> String {
    let path: &Path = &table.path;
    let parts: Vec<_> = path.iter().rev().take(3).map(|part| part.to_string_lossy()).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}

fn slice(bound: &Bound<Vec<u8>>) -> Bound<Slice> {
    bound.as_ref().map(|key| Slice::from(&key[..]))
}

/// Checks the list of a tree's tables against the checksum that was written with it. The library
/// does not, and a list with a wrong order would serve older versions of records.
pub(crate) fn check_list(tree: &Path) -> io::Result<()> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let current = fs::read(tree.join(TREE_FILE))?;
    let id = current.first_chunk().copied().map(u64::from_le_bytes);
    let written = current.get(8..24).and_then(|it| it.first_chunk()).copied();
    let (Some(id), Some(written)) = (id, written.map(u128::from_le_bytes)) else {
        return Err(invalid("the file `current` is too short"));
    };
    let list = fs::read(tree.join(format!("v{id}")))?;
    let mut hasher = ChecksummedWriter::new(io::sink());
    hasher.write_all(&list)?;
    if hasher.checksum().into_u128() != written {
        return Err(invalid("the list of tables has a wrong checksum"));
    }
    Ok(())
}

/// Returns the gaps in the tables of a tree: where blocks cannot be read.
pub(crate) fn gaps(tree: &AnyTree) -> Vec<KeyGap> {
    let mut gaps = Vec::new();
    for table in tree.current_version().iter_tables() {
        let (mut last, mut is_in_gap, mut failures) = (None, false, 0);
        for record in table.iter() {
            if let Ok(record) = record {
                let key = record.key.user_key;
                if is_in_gap {
                    gaps.push(KeyGap { after: last.take(), before: Some(key.clone()) });
                }
                (last, is_in_gap) = (Some(key), false);
                continue;
            }
            is_in_gap = true;
            failures += 1;
            // An index that cannot be loaded fails for ever.
            if failures > table.metadata.data_block_count {
                break;
            }
        }
        if is_in_gap {
            // The next greater key.
            let end = [&**table.metadata.key_range.max(), &[0]].concat();
            gaps.push(KeyGap { after: last, before: Some(end.into()) });
        }
    }
    gaps
}

/// Returns the keys of a gap that can be read from any table.
pub(crate) fn keys_in(tree: &AnyTree, gap: &KeyGap) -> Vec<Slice> {
    let bound = |key: &Option<Slice>| key.clone().map_or(Bound::Unbounded, Bound::Included);
    let range = (bound(&gap.after), bound(&gap.before));
    let mut keys = Vec::new();
    for table in tree.current_version().iter_tables() {
        let blocks = usize::try_from(table.metadata.data_block_count).unwrap_or(usize::MAX);
        let mut failures = 0;
        let read = table.range(range.clone()).take_while(|read| {
            failures += usize::from(read.is_err());
            failures <= blocks
        });
        keys.extend(read.flatten().map(|record| record.key.user_key));
    }
    keys
}
