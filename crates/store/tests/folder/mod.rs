//! Data folders for the tests of the embedded engine.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use nexo_chat::store::Store;
use nexo_store::conformance::Opener;
use nexo_store::{Embedded, Options};

/// Small, so that a test does not fill the machine's memory.
pub(crate) fn options() -> Options {
    Options { cache_bytes: 1 << 20, memtable_bytes: 1 << 20, ..Options::default() }
}

/// Copies a folder with everything in it. If a store has it open, files may get other names meanwhile: then it starts
/// over.
pub(crate) fn copy(from: &Path, to: &Path) {
    while let Err(error) = try_copy(from, to) {
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
        fs::remove_dir_all(to).unwrap();
    }
}

fn try_copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            try_copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Opens stores in folders that are deleted at the end.
pub(crate) struct Folders(Mutex<Vec<tempfile::TempDir>>);

impl Folders {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(vec![tempfile::tempdir().unwrap()])))
    }
}

impl Opener for Folders {
    fn open(&self) -> Arc<dyn Store> {
        let folders = self.0.lock().unwrap();
        Embedded::open(folders.last().unwrap().path(), &options()).unwrap()
    }

    fn open_after_crash(&self) -> Arc<dyn Store> {
        // The copy is what is on disk; the open store does not use it.
        let mut folders = self.0.lock().unwrap();
        let found = tempfile::tempdir().unwrap();
        copy(folders.last().unwrap().path(), found.path());
        let store = Embedded::open(found.path(), &options()).unwrap();
        folders.push(found);
        store
    }
}
