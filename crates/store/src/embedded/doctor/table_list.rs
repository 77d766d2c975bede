//! The list of a tree's tables, read without opening the tree.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use lsm_tree::checksum::ChecksummedWriter;

use crate::embedded::tables::{self, TREE_FILE};

/// A table as the list names it.
#[derive(Clone, Debug)]
pub(crate) struct ListedTable {
    pub(crate) id: u64,
    pub(crate) checksum: u128,
    /// Added to the numbers of its records.
    pub(crate) first_number: u64,
}

impl ListedTable {
    pub(crate) fn path(&self, tree: &Path) -> PathBuf {
        tree.join("tables").join(self.id.to_string())
    }

    /// Whether the file is what was written.
    pub(crate) fn is_sound(&self, tree: &Path) -> io::Result<bool> {
        let mut hasher = ChecksummedWriter::new(io::sink());
        io::copy(&mut fs::File::open(self.path(tree))?, &mut hasher)?;
        Ok(hasher.checksum().into_u128() == self.checksum)
    }
}

/// Reads the list; each inner list is a sorted run.
pub(crate) fn read(tree: &Path) -> io::Result<Vec<Vec<ListedTable>>> {
    tables::check_list(tree)?;
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let current = fs::read(tree.join(TREE_FILE))?;
    let id = current.first_chunk().copied().map(u64::from_le_bytes).ok_or_else(invalid)?;
    let path = tree.join(format!("v{id}"));
    let list = sfa::Reader::new(&path).map_err(|_| invalid())?;
    let section = list.toc().section(b"tables").ok_or_else(invalid)?;
    let mut bytes = Vec::new();
    section.buf_reader(&path)?.read_to_end(&mut bytes)?;
    parse(&bytes).ok_or_else(invalid)
}

fn parse(mut bytes: &[u8]) -> Option<Vec<Vec<ListedTable>>> {
    let mut runs = Vec::new();
    let levels = take::<1>(&mut bytes)?[0];
    for _ in 0..levels {
        for _ in 0..take::<1>(&mut bytes)?[0] {
            let mut run = Vec::new();
            for _ in 0..u32::from_le_bytes(take(&mut bytes)?) {
                let id = u64::from_le_bytes(take(&mut bytes)?);
                take::<1>(&mut bytes)?; // the kind of checksum
                let checksum = u128::from_le_bytes(take(&mut bytes)?);
                let first_number = u64::from_le_bytes(take(&mut bytes)?);
                run.push(ListedTable { id, checksum, first_number });
            }
            runs.push(run);
        }
    }
    Some(runs)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}
