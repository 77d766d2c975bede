//! A store in one file.
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::storage::{Store, with_prefix};

/// The file is compacted when it has this many stale lines.
const STALE_MAX: usize = 10_000;

/// A persistent store: one file, a line for every change. When it is opened, and now and then, a
/// compacted file is written beside it and renamed over it, so that it is always whole.
pub struct FileStore {
    path: PathBuf,
    state: Mutex<FileState>,
}

struct FileState {
    values: BTreeMap<String, Value>,
    file: File,
    lines: usize,
}

/// A line of the file; without a value the key is deleted.
#[derive(Serialize, Deserialize)]
struct Record<Key, Value> {
    key: Key,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
}

impl FileStore {
    /// Opens or creates the store in this file.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let mut values = BTreeMap::new();
        for line in text.lines() {
            // A torn last line is left by a process that was killed, and is ignored.
            let Ok(Record { key, value }) = serde_json::from_str::<Record<String, Value>>(line)
            else {
                continue;
            };
            match value {
                Some(value) => values.insert(key, value),
                None => values.remove(&key),
            };
        }
        let file = rewrite(&path, &values)?;
        let lines = values.len();
        Ok(Self { path, state: Mutex::new(FileState { values, file, lines }) })
    }

    fn state(&self) -> MutexGuard<'_, FileState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, state: &mut FileState, key: &str, value: Option<&Value>) -> io::Result<()> {
        state.lines += 1;
        if state.lines > state.values.len() * 2 + STALE_MAX {
            state.file = rewrite(&self.path, &state.values)?;
            state.lines = state.values.len();
            return Ok(());
        }
        state.file.write_all(record_line(key, value)?.as_bytes())
    }
}

impl Store for FileStore {
    fn get(&self, key: &str) -> io::Result<Option<Value>> {
        Ok(self.state().values.get(key).cloned())
    }

    fn set(&self, key: &str, value: &Value) -> io::Result<()> {
        let mut state = self.state();
        state.values.insert(key.to_owned(), value.clone());
        self.append(&mut state, key, Some(value))
    }

    fn delete(&self, key: &str) -> io::Result<()> {
        let mut state = self.state();
        if state.values.remove(key).is_none() {
            return Ok(());
        }
        self.append(&mut state, key, None)
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<(String, Value)>> {
        Ok(with_prefix(&self.state().values, prefix))
    }
}

fn record_line(key: &str, value: Option<&Value>) -> io::Result<String> {
    Ok(serde_json::to_string(&Record { key, value })? + "\n")
}

fn rewrite(path: &Path, values: &BTreeMap<String, Value>) -> io::Result<File> {
    let mut lines = String::new();
    for (key, value) in values {
        lines += &record_line(key, Some(value))?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    // The file holds the sign-in: only its owner may read it.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    file.write_all(lines.as_bytes())?;
    file.sync_data()?;
    fs::rename(&beside, path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(store: &FileStore, prefix: &str) -> Vec<String> {
        store.list(prefix).unwrap().into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn what_is_kept_is_there_after_a_restart_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.store");
        let store = FileStore::open(&path).unwrap();
        for key in ["b/2", "b/1", "a", "c"] {
            store.set(key, &key.into()).unwrap();
        }
        store.delete("c").unwrap();
        drop(store);
        let store = FileStore::open(&path).unwrap();
        assert_eq!(keys(&store, "b/"), ["b/1", "b/2"]);
        assert_eq!(keys(&store, ""), ["a", "b/1", "b/2"]);
    }

    #[test]
    fn a_torn_last_line_costs_only_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.store");
        FileStore::open(&path).unwrap().set("a", &1.into()).unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"key\":\"b\",\"val").unwrap();
        let store = FileStore::open(&path).unwrap();
        assert_eq!(keys(&store, ""), ["a"]);
        store.set("c", &3.into()).unwrap();
        assert_eq!(keys(&FileStore::open(&path).unwrap(), ""), ["a", "c"]);
    }

    #[test]
    fn the_file_does_not_grow_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.store");
        let store = FileStore::open(&path).unwrap();
        for number in 0..3 * STALE_MAX {
            store.set("a", &number.into()).unwrap();
        }
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= STALE_MAX + 2, "{lines} lines");
        let last = FileStore::open(&path).unwrap().get("a").unwrap();
        assert_eq!(last, Some((3 * STALE_MAX - 1).into()));
    }
}
