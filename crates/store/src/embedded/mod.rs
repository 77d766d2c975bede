//! The default engine: a commit log and LSM trees on the local disk, with a single committer.
//!
//! All writes go through one thread, so its order is the order. It takes everything that waits,
//! de-duplicates, assigns seqs, appends one entry to the log, syncs once, and publishes the batch to
//! the readers; then a second thread announces and answers while the first syncs the next batch.
//! Reads pass through neither. The trees flush their memtables behind all that; a commit waits for
//! a tree only while it installs a finished file. In reading order:
//!
//! - `options`, `folder`, `witness`, `disk`: the data folder and its lock, free space
//! - `keys`, `record`: every byte on disk
//! - `batch`, `segment`, `log`: the commit log and its recovery
//! - `engine`, `tree_files`: the LSM trees; `memtables`: what is not in their files yet;
//!   `unflushed_ids`, `flushed_ids`: how message ids are found
//! - `poison`: what stops the store; `quarantine`: damage that does not; `tables`, `compaction`: the
//!   trees' files, also when some cannot be read; `fail_points`: steps at which tests kill the process
//! - `sharded_map`, `record_cache`, `heads`, `members`, `recent_messages`: what is cached in memory
//! - `messages`, `conversations`, `groups`, `accounts`, `logins`, `documents`: one file per trait of the
//!   contract; `message_page`: reads around damage; `lost_ranges`: what a salvaged folder lacks
//! - `pending`: a batch in the making; `append`, `recall`, `change_group`, `folded_ids`: decisions
//!   that add to it
//! - `committer`, `announcer`: the two threads that commit and answer; `sweep`: cursors that are
//!   written behind
//! - `maintenance`: the two threads that flush and compact the trees; `pace`, `compaction_pace`: in
//!   small steps, with rests
//! - `item_records`, `export`, `import`: copying everything out of or into a folder
//! - `doctor`: examines a folder and salvages what is readable
//! - `log_pins`, `tree_files`, `snapshot`, `restore`: what a backup copies from an open store, and puts back
//! - `core`: the state that threads and readers share; `open`: opening a folder

mod accounts;
mod announcer;
mod append;
mod batch;
mod change_group;
mod committer;
mod compaction;
mod compaction_pace;
mod conversations;
mod core;
mod disk;
pub mod doctor;
mod documents;
mod engine;
mod export;
pub mod fail_points;
mod flushed_ids;
mod folded_ids;
mod folder;
mod groups;
mod heads;
mod import;
mod item_records;
mod keys;
mod log;
mod log_pins;
mod logins;
mod lost_ranges;
mod maintenance;
mod members;
mod memtables;
mod message_page;
mod messages;
mod open;
mod options;
mod pace;
mod pending;
mod poison;
mod quarantine;
mod recall;
mod recent_messages;
mod record;
mod record_cache;
mod restore;
mod segment;
mod sharded_map;
mod snapshot;
mod sweep;
mod tables;
#[cfg(test)]
mod tests;
mod tree_files;
mod unflushed_ids;
mod witness;

use std::future::ready;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use nexo_chat::store::{CommitListener, KnownDamage, Store, StoreError, StoreFuture};
use tokio::sync::oneshot;

use self::committer::{CommitRequest, Completion};
use self::core::Core;
use self::pending::Pending;
use self::poison::EngineFault;

pub use self::folder::OpenError;
pub(crate) use self::item_records::encode as encode_item;
pub use self::log_pins::LogPin;
pub use self::options::{FaultKind, Faults, LogClock, Options};
pub use self::restore::{FolderToRestore, segment_entries};
pub use self::snapshot::{
    FileContent, LogEntryAt, LogSegment, LogSnapshot, Snapshot, SnapshotFile,
};
pub use self::tree_files::TableChecksum;

/// About how many bytes a change to an account, a login or a member takes.
const CHANGE_BYTES: usize = 512;

/// Bytes of the writes that may wait; further ones are refused at once.
const QUEUE_BYTES_MAX: usize = 64 << 20;

fn queue_full() -> StoreError {
    StoreError::Unavailable("too many writes are waiting".into())
}

/// A store in a folder.
pub struct Embedded {
    core: Arc<Core>,
    queue: SyncSender<CommitRequest>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Embedded {
    /// Puts a write into the queue of the committer, now. The future waits for the result.
    fn submit<T: Send + 'static>(
        &self,
        bytes: usize,
        decide: impl FnOnce(&mut Pending<'_>) -> Result<T, EngineFault> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        if let Err(stopped) = self.core.poison.check() {
            return Box::pin(ready(Err(stopped)));
        }
        let core = &self.core;
        if let Err(no_room) = core.disk.check() {
            return Box::pin(ready(Err(no_room)));
        }
        if core.waiting_bytes.load(Ordering::Relaxed) > QUEUE_BYTES_MAX {
            return Box::pin(ready(Err(queue_full())));
        }
        let (sender, receiver) = oneshot::channel();
        let decide = Box::new(move |pending: &mut Pending<'_>| {
            let mark = pending.mark();
            let outcome = match decide(pending) {
                Ok(outcome) => Ok(outcome),
                // Refused alone: the other writes of the batch go on.
                Err(fault) if fault.is_damage() && pending.mark() == mark => {
                    Err(pending.core.refusal(&fault))
                }
                Err(fault) if fault.is_damage() => {
                    let half = format!("a write that met damage was half done: {fault}");
                    return Err(EngineFault::no_room(half)); // nothing of the batch is written
                }
                Err(fault) => {
                    // Set before the sender is dropped, so that the caller who notices can read why.
                    drop(pending.core.poison.set(&fault));
                    return Err(fault);
                }
            };
            // The caller may have dropped the future: that undoes nothing.
            Ok(Box::new(move || drop(sender.send(outcome))) as Completion)
        });
        core.waiting.fetch_add(1, Ordering::Relaxed);
        core.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let refused = match self.queue.try_send(CommitRequest::Write(decide, bytes)) {
            Ok(()) => {
                let core = Arc::clone(core);
                return Box::pin(async move {
                    receiver.await.unwrap_or_else(|_| Err(core.unavailable()))
                });
            }
            Err(TrySendError::Full(_)) => queue_full(),
            Err(TrySendError::Disconnected(_)) => core.unavailable(),
        };
        core.waiting.fetch_sub(1, Ordering::Relaxed);
        core.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        Box::pin(ready(Err(refused)))
    }

    /// Runs a short read on the calling thread.
    fn read_now<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Core) -> Result<T, EngineFault>,
    ) -> StoreFuture<'static, T> {
        Box::pin(ready(read(&self.core).map_err(|fault| self.core.refusal(&fault))))
    }

    /// Runs a read that may take long, on a thread that may block.
    fn read_blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Core) -> Result<T, EngineFault> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let core = Arc::clone(&self.core);
        Box::pin(async move {
            let reader = Arc::clone(&core);
            let outcome = match tokio::task::spawn_blocking(move || read(&reader)).await {
                Ok(outcome) => outcome,
                Err(error) if error.is_panic() => Err(EngineFault::new("a read panicked")),
                Err(error) => return Err(StoreError::Unavailable(Box::new(error))),
            };
            outcome.map_err(|fault| core.refusal(&fault))
        })
    }

    /// Asks the committer to end, and returns a receiver to wait for; `None` if it ended before.
    /// Blocks while the queue is full, until the committer takes its next batch.
    fn request_close(&self) -> Option<oneshot::Receiver<()>> {
        self.core.closing.store(true, Ordering::Relaxed);
        self.core.engine.hurry();
        let (sender, receiver) = oneshot::channel::<()>();
        // The receiver wakes when the sender is dropped.
        let completion = Box::new(move || drop(sender));
        self.queue.send(CommitRequest::Close(completion)).ok().map(|()| receiver)
    }

    fn join_threads(&self) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!(target: "nexo::store", "a thread of the store panicked");
            }
        }
    }
}

impl Drop for Embedded {
    /// Joins the threads, so that the folder is unlocked when this returns.
    fn drop(&mut self) {
        drop(self.request_close());
        self.join_threads();
    }
}

impl Store for Embedded {
    fn set_commit_listener(&self, listener: Arc<dyn CommitListener>) {
        if self.core.listener.set(listener).is_err() {
            tracing::warn!(target: "nexo::store", "a second listener for commits was ignored");
        }
    }

    fn health(&self) -> Result<(), StoreError> {
        self.core.poison.check()?;
        self.core.disk.health()
    }

    fn known_damage(&self) -> KnownDamage {
        self.core.engine.quarantine.known()
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        let ended = self.request_close();
        Box::pin(async move {
            if let Some(ended) = ended {
                drop(ended.await); // nothing is sent: the sender is dropped
            }
            self.core.poison.check()
        })
    }
}
