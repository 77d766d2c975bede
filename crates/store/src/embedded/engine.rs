//! The only file that knows the LSM tree. Replacing the tree or its log happens here alone.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use nexo_chat::store::Order;

use super::keys::{KeyRange, Space};
use super::options::{FaultKind, Faults, Options};
use super::poison::Fault;

/// Bytes as the tree hands them out.
pub(crate) type Bytes = fjall::Slice;

/// Keyspaces of small records fill slowly; without a smaller bound they would hold the journal
/// back for long, and with it the next start, which reads all of it again.
const SMALL_MEMTABLE_PART: u64 = 4;

/// Writes that happen together or not at all.
#[derive(Default)]
pub(crate) struct Batch(Vec<(Space, Vec<u8>, Option<Vec<u8>>)>);

impl Batch {
    pub(crate) fn put(&mut self, space: Space, key: Vec<u8>, value: Vec<u8>) {
        self.0.push((space, key, Some(value)));
    }

    /// Replaces what this batch would write under a key, or adds it.
    pub(crate) fn replace(&mut self, space: Space, key: Vec<u8>, value: Vec<u8>) {
        let known = |(s, k, _): &&mut (Space, Vec<u8>, Option<Vec<u8>>)| *s == space && *k == key;
        match self.0.iter_mut().rev().find(known) {
            Some(written) => written.2 = Some(value),
            None => self.put(space, key, value),
        }
    }

    pub(crate) fn delete(&mut self, space: Space, key: Vec<u8>) {
        self.0.push((space, key, None));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// How sure a commit is of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// On the disk when the commit returns.
    Synced,
    /// Handed to the operating system: outlives this process, not the machine.
    Buffered,
}

/// The open tree.
pub(crate) struct Engine {
    spaces: Vec<Keyspace>,
    db: Database,
    faults: Faults,
}

impl Engine {
    /// Makes a tree in a new folder.
    pub(crate) fn create(folder: &Path, options: &Options) -> Result<(), Fault> {
        guarded("create", || {
            let db = builder(folder, options).open()?;
            for space in Space::ALL {
                db.keyspace(space.name(), || keyspace_options(space, options))?;
            }
            db.persist(PersistMode::SyncAll)
        })
    }

    /// Opens a tree that [`Engine::create`] made.
    pub(crate) fn open(folder: &Path, options: &Options) -> Result<Self, Fault> {
        let db = guarded("open", || builder(folder, options).open())?;
        let mut spaces = Vec::new();
        for space in Space::ALL {
            // The tree drops a keyspace whose description it cannot find, and would make it anew.
            if !db.keyspace_exists(space.name()) {
                return Err(Fault::new(format!("the keyspace {} is missing", space.name())));
            }
            let open = || db.keyspace(space.name(), || keyspace_options(space, options));
            spaces.push(guarded("open a keyspace", open)?);
        }
        Ok(Self { spaces, db, faults: options.faults.clone() })
    }

    fn space(&self, space: Space) -> &Keyspace {
        &self.spaces[space as usize]
    }

    /// The value under a key.
    pub(crate) fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        guarded("read", || self.space(space).get(key))
    }

    /// Up to `limit` pairs of a range, in the given order, until their values exceed `bytes`.
    pub(crate) fn scan(
        &self,
        space: Space,
        range: KeyRange,
        limit: usize,
        order: Order,
        bytes: usize,
    ) -> Result<Vec<(Bytes, Bytes)>, Fault> {
        guarded("scan", || {
            let found = self.space(space).range(range);
            match order {
                Order::Ascending => collect(found, limit, bytes),
                Order::Descending => collect(found.rev(), limit, bytes),
            }
        })
    }

    /// The last pair of a range, by one reverse seek.
    pub(crate) fn last(
        &self,
        space: Space,
        range: KeyRange,
    ) -> Result<Option<(Bytes, Bytes)>, Fault> {
        Ok(self.scan(space, range, 1, Order::Descending, 0)?.pop())
    }

    /// Writes a batch. After an error it is unknown whether it will be there after a restart.
    pub(crate) fn commit(&self, batch: Batch, durability: Durability) -> Result<(), Fault> {
        let fault = self.faults.get();
        if fault == FaultKind::Write {
            return Err(Fault::new("cannot write: a test wants it so"));
        }
        guarded("write", || {
            let mode = match durability {
                Durability::Synced => PersistMode::SyncData,
                Durability::Buffered => PersistMode::Buffer,
            };
            let mut writes = fjall::OwnedWriteBatch::with_capacity(self.db.clone(), batch.0.len())
                .durability(Some(mode));
            for (space, key, value) in batch.0 {
                match value {
                    Some(value) => writes.insert(self.space(space), key, value),
                    None => writes.remove(self.space(space), key),
                }
            }
            writes.commit()
        })?;
        if fault == FaultKind::Sync && durability == Durability::Synced {
            return Err(Fault::new("cannot sync: a test wants it so"));
        }
        Ok(())
    }

    /// Makes everything written so far durable.
    pub(crate) fn sync(&self) -> Result<(), Fault> {
        guarded("sync", || self.db.persist(PersistMode::SyncAll))
    }
}

fn builder(folder: &Path, options: &Options) -> fjall::DatabaseBuilder<Database> {
    Database::builder(folder)
        .cache_size(options.cache_bytes)
        .max_journaling_size(options.journal_bytes_max.max(64 << 20))
}

fn keyspace_options(space: Space, options: &Options) -> KeyspaceCreateOptions {
    let memtable = match space {
        Space::Messages => options.memtable_bytes,
        _ => options.memtable_bytes / SMALL_MEMTABLE_PART,
    };
    KeyspaceCreateOptions::default().max_memtable_size(memtable)
}

fn collect(
    found: impl Iterator<Item = fjall::Guard>,
    limit: usize,
    bytes: usize,
) -> fjall::Result<Vec<(Bytes, Bytes)>> {
    let (mut pairs, mut left) = (Vec::new(), bytes);
    for guard in found.take(limit) {
        let pair = guard.into_inner()?;
        let size = pair.1.len();
        pairs.push(pair);
        if size > left {
            break;
        }
        left -= size;
    }
    Ok(pairs)
}

/// The tree answers some kinds of damage with a panic; here it becomes an error like the others.
fn guarded<T>(what: &str, act: impl FnOnce() -> fjall::Result<T>) -> Result<T, Fault> {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(fjall::Error::Poisoned)) => {
            Err(Fault::new(format!("cannot {what}: the disk refused a write; is it full?")))
        }
        Ok(Err(error)) => Err(Fault::new(format!("cannot {what}: {error}"))),
        Err(_) => Err(Fault::new(format!("cannot {what}: the tree panicked"))),
    }
}
