//! The memtables of the trees: the committer writes to them, the flusher writes them to files.
//!
//! The library holds the lock of a tree while it syncs the list of the tree's files, and while it
//! frees memtables, for tens of milliseconds. So the committer writes to the active memtables
//! directly, and what was flushed is kept here until no tree has it any more, and freed here.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lsm_tree::{AbstractTree, AnyTree, InternalValue, Memtable, SeqNo, ValueType};

use super::batch::Write;
use super::engine::{Slice, catch_panics, tables_folder};
use super::pace::{Pace, PacedTables};
use super::poison::EngineFault;

pub(crate) struct Memtables {
    /// The active one of each tree. Only the committer needs it.
    active: Mutex<Vec<Arc<Memtable>>>,
    /// Those that wait to be flushed, with the index of their tree, oldest first.
    sealed: Mutex<VecDeque<(usize, Arc<Memtable>)>>,
    /// Those that are in files, but old versions of the trees may still have them.
    flushed: Mutex<Vec<Arc<Memtable>>>,
}

impl Memtables {
    pub(crate) fn of(trees: &[AnyTree]) -> Self {
        let active = trees.iter().map(AbstractTree::active_memtable).collect();
        Self { active: Mutex::new(active), sealed: Mutex::default(), flushed: Mutex::default() }
    }

    /// The active memtables, to write to.
    pub(crate) fn writer(&self) -> MemtableWriter<'_> {
        MemtableWriter(lock(&self.active))
    }

    /// Seals the active memtables and starts new ones.
    pub(crate) fn seal(&self, trees: &[AnyTree]) {
        let mut active = lock(&self.active);
        for (index, tree) in trees.iter().enumerate() {
            if let Some(sealed) = tree.rotate_memtable() {
                active[index] = tree.active_memtable();
                lock(&self.sealed).push_back((index, sealed));
            }
        }
    }

    /// Writes the oldest sealed memtable to a file, durably. Returns `false` if there is none.
    pub(crate) fn flush_oldest(
        &self,
        trees: &[AnyTree],
        oldest_visible: SeqNo,
        pace: &Arc<Pace>,
    ) -> Result<bool, EngineFault> {
        let Some((index, memtable)) = lock(&self.sealed).front().cloned() else { return Ok(false) };
        let tree = &trees[index];
        let mut paced = PacedTables::begin(pace, &tables_folder(tree));
        catch_panics("write out", || {
            let records = needed(memtable.iter(), oldest_visible).map(|record| {
                paced.wrote(record.key.user_key.len() + record.value.len());
                Ok(record)
            });
            if let Some((tables, _)) = tree.flush_to_tables(records)? {
                tree.register_tables(&tables, None, None, &[memtable.id()], oldest_visible)?;
            }
            Ok(())
        })?;
        lock(&self.sealed).pop_front();
        lock(&self.flushed).push(memtable);
        Ok(true)
    }

    /// Frees the flushed memtables that no tree has any more.
    pub(crate) fn free_flushed(&self) {
        let is_ours_alone = |memtable: &mut Arc<Memtable>| Arc::strong_count(memtable) == 1;
        let unused: Vec<_> = lock(&self.flushed).extract_if(.., is_ours_alone).collect();
        drop(unused); // without the lock: it takes long
    }
}

/// The active memtables, locked.
pub(crate) struct MemtableWriter<'a>(MutexGuard<'a, Vec<Arc<Memtable>>>);

impl MemtableWriter<'_> {
    /// Inserts a record or a tombstone; returns about how many bytes it takes.
    pub(crate) fn write(&self, Write { keyspace, key, value }: Write, number: SeqNo) -> u64 {
        let record = match value {
            Some(value) => InternalValue::from_components(key, value, number, ValueType::Value),
            None => InternalValue::new_tombstone(key, number),
        };
        self.0[keyspace as usize].insert(record).0
    }
}

/// Leaves out the records that were overwritten before `oldest_visible`. Those of a key come newest
/// first.
fn needed(
    records: impl Iterator<Item = InternalValue>,
    oldest_visible: SeqNo,
) -> impl Iterator<Item = InternalValue> {
    // The last key of which everybody sees the record that was kept last.
    let mut settled: Option<Slice> = None;
    records.filter(move |record| {
        let key = &record.key;
        if settled.as_ref() == Some(&key.user_key) {
            return false;
        }
        if key.seqno < oldest_visible {
            settled = Some(key.user_key.clone());
        }
        true
    })
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_everybody_sees_as_overwritten_is_left_out() {
        let record =
            |key: &str, number| InternalValue::from_components(key, "", number, ValueType::Value);
        let records =
            [record("a", 9), record("a", 5), record("a", 4), record("b", 3), record("c", 2)];
        let kept = |oldest_visible| -> Vec<SeqNo> {
            needed(records.clone().into_iter(), oldest_visible).map(|it| it.key.seqno).collect()
        };
        assert_eq!(kept(10), [9, 3, 2]);
        assert_eq!(kept(9), [9, 5, 3, 2]);
        assert_eq!(kept(0), [9, 5, 4, 3, 2]);
    }
}
