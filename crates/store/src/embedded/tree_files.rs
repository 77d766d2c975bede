//! The files of the trees at one moment, held so that a backup can copy them.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use lsm_tree::{AbstractTree, AnyTree, Table};

use super::engine::Engine;
use super::keys::Keyspace;
use super::poison::EngineFault;
use super::tables::TREE_FILE;

/// How often a tree may change its list of files while we read it.
const TRIES_MAX: usize = 2_000;
const TRY_EVERY: Duration = Duration::from_millis(1);

/// The files of one tree, as one of its versions lists them.
pub(crate) struct TreeFiles {
    pub(crate) keyspace: Keyspace,
    /// The file that names the current version.
    pub(crate) current: Vec<u8>,
    /// The name and the content of the version's file.
    pub(crate) version: (String, Vec<u8>),
    /// A table file is deleted only when nobody holds its table any more.
    pub(crate) tables: Vec<Table>,
}

/// A table file: it never changes.
pub(crate) struct TableFile {
    pub(crate) path: PathBuf,
    /// The file's checksum as the tree knows it. Tells whether a file of this name is still the
    /// same: a tree may give the number of a deleted table again.
    pub(crate) checksum: u128,
}

impl TableFile {
    /// The name of the file: the number of the table.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

impl TreeFiles {
    pub(crate) fn tables(&self) -> impl Iterator<Item = TableFile> {
        self.tables.iter().map(|table| TableFile {
            path: table.path.to_path_buf(),
            checksum: table.checksum().into_u128(),
        })
    }
}

impl Engine {
    /// Returns the files of each tree. Trees are read one after the other: a later one may have
    /// flushed more, which a replay of the log evens out.
    pub(crate) fn files(&self) -> Result<Vec<TreeFiles>, EngineFault> {
        Keyspace::ALL.into_iter().map(|keyspace| files(keyspace, self.tree(keyspace))).collect()
    }
}

/// Reads without a lock, and again if the tree changed its list meanwhile.
fn files(keyspace: Keyspace, tree: &AnyTree) -> Result<TreeFiles, EngineFault> {
    let folder = &tree.tree_config().path;
    for _ in 0..TRIES_MAX {
        let version = tree.current_version();
        let tables = version.iter_tables().cloned().collect();
        let name = format!("v{}", version.id());
        let current = std::fs::read(folder.join(TREE_FILE));
        let listed = std::fs::read(folder.join(&name));
        if let (Ok(current), Ok(listed)) = (current, listed)
            && current.first_chunk().copied().map(u64::from_le_bytes) == Some(version.id())
        {
            return Ok(TreeFiles { keyspace, current, version: (name, listed), tables });
        }
        thread::sleep(TRY_EVERY);
    }
    Err(EngineFault::new(format!("cannot read the list of files of {}", keyspace.name())))
}
