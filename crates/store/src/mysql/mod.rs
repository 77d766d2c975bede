//! Messages in a MySQL-protocol database that many nodes share: MariaDB, MySQL 8 or TiDB.
//!
//! A message, a join, a leave and a recall lock the row of their conversation, so they have one
//! order whichever node they come through. Messages are stored many at a time. In reading order:
//!
//! - `options`, `schema`: how the database is reached, and its tables
//! - `fault`, `pool`, `sql`, `fields`, `row`, `group_rows`: errors, connections, statements, rows
//! - `transaction`: a transaction whose outcome can be found out after a lost answer
//! - `messages`, `conversations`, `groups`, `accounts`, `logins`, `documents`: one file per trait of the
//!   contract
//! - `write_queue`, `append_batch`: the writes that wait; `committer`: begins their transactions;
//!   `append`, `change_group`, `recall`: what is done under the lock of a conversation;
//!   `change_account`: what is done under the lock of a user
//! - `members`: rows of members; `cursor_writer`, `standings`: the tasks that move cursors and read
//!   standings, many at a time; `delivered`: cursors that are moved in memory first
//! - `nodes`, `maintenance`: which processes use the database; what is done every second
//! - `export`, `import`: copying everything out of or into the database
//! - `core`: the state that the tasks share; `known_users`: accounts that need not be asked for

mod accounts;
mod append;
mod append_batch;
mod change_account;
mod change_group;
mod committer;
mod conversations;
mod core;
mod cursor_writer;
mod delivered;
mod documents;
mod export;
pub(crate) mod fault;
mod fields;
mod group_rows;
mod groups;
mod import;
mod known_users;
mod logins;
mod maintenance;
mod members;
mod messages;
mod nodes;
mod options;
mod pool;
mod recall;
mod row;
mod schema;
mod sql;
mod standings;
mod transaction;
mod write_queue;

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nexo_chat::store::{CommitListener, Store, StoreError, StoreFuture};
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use self::committer::{Committer, ResultSender, WriteRequest};
use self::core::{Core, closed};
use self::cursor_writer::CursorRequest;
use self::nodes::NodeRole;
use self::pool::Pool;
use self::standings::StandingRequest;
use crate::archive::ArchiveError;

pub use self::options::MySqlOptions;
pub(crate) use self::pool::opts;

/// Bytes of the messages that may wait; further ones are refused at once.
const QUEUE_BYTES_MAX: usize = 64 << 20;
/// Requests that may wait in each queue; further ones are refused at once. No message counts less
/// than 256 bytes, so [`QUEUE_BYTES_MAX`] refuses messages before this does.
const QUEUE_MAX: usize = QUEUE_BYTES_MAX / 256;

/// A store in a database.
pub struct MySql {
    core: Arc<Core>,
    runtime: Handle,
    committer: mpsc::Sender<WriteRequest>,
    waiting_bytes: Arc<AtomicUsize>,
    cursor_writer: mpsc::Sender<CursorRequest>,
    standing_reader: mpsc::Sender<StandingRequest>,
    /// Stops [`maintenance::run`], which drops the sender it is given when it is done.
    stop_maintenance: mpsc::Sender<oneshot::Sender<()>>,
}

impl MySql {
    /// Connects to the database and migrates its tables to the newest version.
    pub async fn open(options: &MySqlOptions) -> Result<Arc<Self>, StoreError> {
        let core = Self::connect(options)?;
        schema::migrate(&core.pool).await?;
        let opened = Self::start(core, NodeRole::Serve, options).await;
        opened.map_err(|error| match error {
            ArchiveError::Store(error) => error,
            refused => StoreError::Unavailable(refused.into()),
        })
    }

    fn connect(options: &MySqlOptions) -> Result<Arc<Core>, StoreError> {
        let url = |error: mysql_async::UrlError| StoreError::Unavailable(error.into());
        let pool = Pool::new(options).map_err(url)?;
        Ok(Arc::new(Core::new(pool, options.patience)))
    }

    /// Acquires the lease of a node and starts the tasks, unless other nodes exclude this role.
    async fn start(
        core: Arc<Core>,
        role: NodeRole,
        options: &MySqlOptions,
    ) -> Result<Arc<Self>, ArchiveError> {
        let lease = nodes::acquire(&core, role).await?;
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let (committer, queue) = mpsc::channel(QUEUE_MAX);
        let transactions_max = options.committers.max(1);
        let commits =
            Committer::new(Arc::clone(&core), transactions_max, Arc::clone(&waiting_bytes));
        tokio::spawn(commits.run(queue));
        let (cursor_writer, queue) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(cursor_writer::run(Arc::clone(&core), queue));
        let (standing_reader, queue) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(standings::run(Arc::clone(&core), queue));
        let (stop_maintenance, stop) = mpsc::channel(1);
        tokio::spawn(maintenance::run(Arc::clone(&core), lease, stop));
        Ok(Arc::new(Self {
            core,
            runtime: Handle::current(),
            committer,
            waiting_bytes,
            cursor_writer,
            standing_reader,
            stop_maintenance,
        }))
    }

    /// Runs a read in a task of its own: dropping the future does not cancel it.
    fn spawn_read<T, F>(&self, work: impl FnOnce(Arc<Core>) -> F) -> StoreFuture<'static, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let task = self.runtime.spawn(work(Arc::clone(&self.core)));
        Box::pin(async move {
            task.await.unwrap_or_else(|error| Err(StoreError::Unavailable(error.into())))
        })
    }

    /// Runs a write in a task of its own, unless the store is closed.
    fn spawn_write<T, F>(&self, work: impl FnOnce(Arc<Core>) -> F) -> StoreFuture<'static, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        if self.core.closed.load(Ordering::SeqCst) {
            return Box::pin(ready(Err(closed())));
        }
        self.spawn_read(work)
    }

    /// Puts a write into the queue, now, and counts its bytes as waiting until
    /// the committer takes it. The future waits for the result. Refused if too much is waiting.
    fn submit<T: Send + 'static>(
        &self,
        bytes: usize,
        request: impl FnOnce(ResultSender<T>) -> WriteRequest,
    ) -> StoreFuture<'static, T> {
        if self.core.closed.load(Ordering::SeqCst) {
            return Box::pin(ready(Err(closed())));
        }
        if bytes > 0 && self.waiting_bytes.load(Ordering::Relaxed) > QUEUE_BYTES_MAX {
            return Box::pin(ready(Err(queue_full())));
        }
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        enqueue(&self.committer, request).unwrap_or_else(|refused| {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            Box::pin(ready(Err(refused)))
        })
    }

    /// Puts a request into the queue of the cursor writer, now.
    fn submit_cursor<T: Send + 'static>(
        &self,
        request: impl FnOnce(ResultSender<T>) -> CursorRequest,
    ) -> StoreFuture<'static, T> {
        if self.core.closed.load(Ordering::SeqCst) {
            return Box::pin(ready(Err(closed())));
        }
        let queued = enqueue(&self.cursor_writer, request);
        queued.unwrap_or_else(|refused| Box::pin(ready(Err(refused))))
    }

    /// Returns when every write that was queued before is done.
    async fn barrier(&self) {
        let (answer, done) = oneshot::channel();
        if self.committer.send(WriteRequest::Barrier(Arc::new(answer))).await.is_ok() {
            drop(done.await); // the committer drops the sender
        }
    }

    fn has_stopped_task(&self) -> bool {
        let is_closed = self.cursor_writer.is_closed() || self.standing_reader.is_closed();
        is_closed || self.committer.is_closed()
    }
}

/// Puts a request into a queue without waiting, and returns the future of its result.
fn enqueue<R, T: Send + 'static>(
    queue: &mpsc::Sender<R>,
    request: impl FnOnce(ResultSender<T>) -> R,
) -> Result<StoreFuture<'static, T>, StoreError> {
    let (answer, result) = oneshot::channel();
    queue.try_send(request(answer)).map_err(|refused| match refused {
        TrySendError::Full(_) => queue_full(),
        TrySendError::Closed(_) => closed(),
    })?;
    Ok(Box::pin(async move { result.await.unwrap_or_else(|_| Err(closed())) }))
}

fn queue_full() -> StoreError {
    StoreError::Unavailable("too many writes are waiting".into())
}

impl Store for MySql {
    fn set_commit_listener(&self, listener: Arc<dyn CommitListener>) {
        self.core.set_listener(listener);
    }

    fn health(&self) -> Result<(), StoreError> {
        let is_open = !self.core.closed.load(Ordering::SeqCst);
        if is_open && self.has_stopped_task() {
            return Err(StoreError::Poisoned("a part of the store has stopped".into()));
        }
        match self.core.pool.trouble() {
            Some(error) => Err(StoreError::Unavailable(error.into())),
            None => Ok(()),
        }
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.core.closed.store(true, Ordering::SeqCst);
        Box::pin(async move {
            // A task may have stopped before: its channel is closed, and that is fine too.
            let (answer, done) = oneshot::channel();
            if self.committer.send(WriteRequest::Close(answer)).await.is_ok() {
                drop(done.await);
            }
            let (answer, done) = oneshot::channel();
            if self.cursor_writer.send(CursorRequest::Close(answer)).await.is_ok() {
                drop(done.await);
            }
            let (answer, done) = oneshot::channel();
            if self.stop_maintenance.send(answer).await.is_ok() {
                drop(done.await);
            }
            Ok(())
        })
    }
}
