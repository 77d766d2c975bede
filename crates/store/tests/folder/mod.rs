//! Data folders for the tests of the embedded engine.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use nexo_chat::store::Store;
use nexo_store::conformance::Opener;
use nexo_store::{Embedded, Options};

/// Small, so that a test does not fill the machine's memory.
pub(crate) fn options() -> Options {
    Options { cache_bytes: 1 << 20, memtable_bytes: 1 << 20, ..Options::default() }
}

/// Copies a folder with everything in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
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
