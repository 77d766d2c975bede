//! What the doctor needs to read trees that the library may not be able to open.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;

use lsm_tree::{AbstractTree, InternalValue, SeqNo, SequenceNumberCounter};

use super::{Engine, Slice, caches, open_tree};
use crate::embedded::compaction::Compaction;
use crate::embedded::doctor::KeyGap;
use crate::embedded::keys::Keyspace;
use crate::embedded::options::Options;
use crate::embedded::pace::CommitCount;
use crate::embedded::tables;

impl Engine {
    /// Whether the library opens a tree; creates it if there is none.
    pub(crate) fn opens(folder: &Path, keyspace: Keyspace, options: &Options) -> bool {
        let numbers = SequenceNumberCounter::default();
        let (cache, files) = caches(options);
        let compaction = Compaction::new(0, &CommitCount::default());
        open_tree(folder, keyspace, &numbers, &cache, &files, &compaction).is_ok()
    }

    /// Puts a record with its own number into a tree, whatever its order.
    pub(crate) fn restore(&self, keyspace: Keyspace, record: InternalValue, first_number: SeqNo) {
        let number = record.key.seqno + first_number;
        if keyspace == Keyspace::MessageIds {
            self.flushed_ids.use_memtable();
        }
        let tree = self.tree(keyspace);
        if record.is_tombstone() {
            tree.remove(record.key.user_key, number);
        } else {
            tree.insert(record.key.user_key, record.value, number);
        }
        self.numbers.fetch_max(number + 1);
        self.visible.fetch_max(number + 1, Ordering::Release);
    }

    /// Returns the gaps of a tree's tables: keys whose records cannot be read.
    pub(crate) fn gaps(&self, keyspace: Keyspace) -> Vec<KeyGap> {
        tables::gaps(self.tree(keyspace))
    }

    /// Returns the keys of a gap that any table or the memtable has, sorted.
    pub(crate) fn keys_in(&self, keyspace: Keyspace, gap: &KeyGap) -> BTreeSet<Slice> {
        let tree = self.tree(keyspace);
        let memtable = tree.active_memtable();
        let in_memory = memtable.iter().map(|record| record.key.user_key);
        let mut keys: BTreeSet<Slice> = in_memory.filter(|key| gap.contains(key)).collect();
        keys.extend(tables::keys_in(tree, gap));
        keys
    }
}
