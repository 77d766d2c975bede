//! A log in Redis Streams: it outlives nodes, and Redis itself as far as Redis keeps its data.
//!
//! Each shard is a stream with two consumer groups, `deliver` and `save`. One node at a time looks
//! after a shard; it holds a lease, and every read asks in the same act whether that is still so.
//! Another one that takes over claims what was read and not finished, and goes on after it. What is
//! saved is deleted, so the length of a stream is what waits.
//!
//! - `names`, `scripts`, `seal`: keys, what is done in one act, messages as bytes
//! - `line`: the connection; `acceptor`: puts messages in; `tenure`: reads and finishes them

mod acceptor;
mod line;
mod names;
mod scripts;
mod seal;
mod tenure;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nexo_bus::{Addresses, BadOptions, Lot, NodeId, RedisOptions};
use nexo_chat::Boxed;
use nexo_chat::ids::{ConversationId, MessageId};
use redis::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::acceptor::Asked;
use self::line::{Line, script};
use self::names::Names;
use self::seal::Seal;
use self::tenure::Turn;
use crate::accepted::{Accepted, shard};
use crate::log::{Away, Log, Tenure, Told};

/// How many saved messages a shard remembers, to tell a retry that it is saved.
const SAVED_MAX: usize = 50_000;
/// About how many messages are kept that could not be saved.
const DEAD_MAX: usize = 10_000;

/// Entries that are read at a time, at most.
const PAGE_MAX: usize = 5_000;

/// Where the log is and how large it may be.
#[derive(Clone, Debug)]
pub struct RedisLogOptions {
    /// Where Redis is, and what keys begin with.
    pub redis: RedisOptions,
    /// Whether messages are put in; else only what is there is looked after.
    pub accepts: bool,
    /// How many shards new messages are spread over.
    pub shards: usize,
    /// Messages that may wait in one of them.
    pub shard_max: usize,
    /// How long a node that is silent looks after its shards.
    pub lease: Duration,
}

struct Inner {
    options: RedisLogOptions,
    addresses: Addresses,
    names: Names,
    seal: Seal,
    line: Line,
    /// Whether messages are put in by now.
    may_put: AtomicBool,
    is_leaving: AtomicBool,
    /// Shards looked after here.
    turns: AtomicUsize,
    /// Entries that may be read at a time: as many as come in time.
    page: AtomicUsize,
}

impl Inner {
    fn node(&self) -> NodeId {
        self.options.redis.node
    }

    /// Lets nodes that start later know how many shards there are to look after.
    async fn note_shards(&self) -> Result<(), Away> {
        if !self.may_put.load(Ordering::SeqCst) {
            return Ok(());
        }
        let key = self.names.shards();
        let mut cmd = redis::cmd("SET");
        cmd.arg(&key).arg(self.options.shards).arg("NX");
        self.line.ask(&key, cmd).await.map(drop)
    }
}

/// A log in Redis.
pub struct RedisLog {
    inner: Arc<Inner>,
    queue: mpsc::UnboundedSender<Asked>,
    /// Shards that are looked after: also those of an earlier, larger number.
    shards: AtomicUsize,
    /// Those of them that are known to be there.
    tended: AtomicUsize,
    task: Mutex<JoinSet<()>>,
}

impl RedisLog {
    /// Starts to connect, and returns at once. All nodes have the same `key`. Must be called within
    /// a tokio runtime.
    pub fn connect(options: RedisLogOptions, key: [u8; 32]) -> Result<Arc<Self>, BadOptions> {
        let inner = Arc::new(Inner {
            addresses: Addresses::new(&options.redis)?,
            names: Names::new(&options.redis.prefix),
            seal: Seal::new(key),
            line: Line::new(options.redis.publish_timeout * 2),
            may_put: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            turns: AtomicUsize::new(0),
            page: AtomicUsize::new(PAGE_MAX),
            options,
        });
        let (queue, asked) = mpsc::unbounded_channel();
        let mut task = JoinSet::new();
        task.spawn(acceptor::work(Arc::clone(&inner), asked));
        let shards = AtomicUsize::new(inner.options.shards);
        let tended = AtomicUsize::new(0);
        Ok(Arc::new(Self { inner, queue, shards, tended, task: Mutex::new(task) }))
    }

    /// Waits until Redis can be reached, for a while.
    pub async fn reached(&self, limit: Duration) -> bool {
        timeout(limit, self.inner.line.is_open()).await.is_ok()
    }

    /// How many shards there were when messages were last accepted; `None` if none ever was. Of
    /// `shards_max`, those count too in which something waits: while nodes come back one by one
    /// with fewer, others still use more.
    pub async fn recorded(&self, shards_max: usize) -> Result<Option<usize>, Away> {
        let (key, mut lot) = (self.inner.names.shards(), Lot::default());
        let ask = |command: &str, key: &str| {
            let mut cmd = redis::cmd(command);
            cmd.arg(key);
            cmd
        };
        lot.push(&key, ask("GET", &key));
        for log in (0..shards_max).map(|shard| self.inner.names.log(shard)) {
            lot.push(&log, ask("XLEN", &log));
        }
        let mut answers = self.inner.line.run(lot).await?.into_iter();
        let recorded: Option<usize> = parsed(answers.next().unwrap_or(Value::Nil))?;
        let lengths = answers.map(parsed::<usize>).collect::<Result<Vec<_>, _>>()?;
        let in_use = lengths.iter().rposition(|length| *length > 0).map(|last| last + 1);
        Ok(recorded.max(in_use))
    }

    /// From now on messages are put in, if any are accepted; notes how many shards they are in.
    pub async fn begin(&self) -> Result<(), Away> {
        if !self.inner.options.accepts {
            return Ok(());
        }
        self.inner.may_put.store(true, Ordering::SeqCst);
        let key = self.inner.names.shards();
        let mut cmd = redis::cmd("SET");
        cmd.arg(&key).arg(self.inner.options.shards);
        self.inner.line.ask(&key, cmd).await.map(drop)
    }

    /// Looks after as many shards as there are or were. To be said before the workers start.
    pub fn look_after(&self, shards: usize) {
        self.shards.fetch_max(shards, Ordering::Relaxed);
    }

    /// So many of them are there, as is known by now.
    pub fn tend_to(&self, shards: usize) {
        self.tended.store(shards, Ordering::Relaxed);
    }

    /// Waits until everything is saved that is in the log now. It may never be.
    pub async fn drained(&self) -> Result<(), Away> {
        for shard in 0..self.shards() {
            let log = self.inner.names.log(shard);
            let range = |from: &str, to: &str, command: &str| {
                let mut cmd = redis::cmd(command);
                cmd.arg(&log).arg(from).arg(to).arg("COUNT").arg(1);
                cmd
            };
            let last = self.inner.line.ask(&log, range("+", "-", "XREVRANGE")).await?;
            let last: Vec<(String, Vec<Vec<u8>>)> = parsed(last)?;
            let Some((last, _)) = last.into_iter().next() else { continue };
            tracing::info!(target: "nexo::intake", shard, "saving what was accepted before");
            loop {
                let first = self.inner.line.ask(&log, range("-", &last, "XRANGE")).await?;
                if parsed::<Vec<Value>>(first)?.is_empty() {
                    break;
                }
                sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    }

    async fn take(&self, shard: usize) -> Result<bool, Away> {
        let inner = &self.inner;
        let log = inner.names.log(shard);
        let mut cmd = script(scripts::TAKE, &[&log, &inner.names.owner(shard)]);
        cmd.arg(inner.node().to_string());
        cmd.arg(u64::try_from(inner.options.lease.as_millis()).unwrap_or(u64::MAX));
        parsed(inner.line.ask(&log, cmd).await?)
    }
}

fn parsed<T: redis::FromRedisValue>(value: Value) -> Result<T, Away> {
    redis::from_redis_value(value).map_err(|error| Away(error.to_string()))
}

impl Log for RedisLog {
    fn shards(&self) -> usize {
        self.shards.load(Ordering::Relaxed)
    }

    fn put(&self, message: Arc<Accepted>, after: Option<MessageId>, told: Told) {
        let shard = shard(&message.draft.conversation, self.inner.options.shards);
        if let Err(refused) = self.queue.send(Asked { shard, after, message, told }) {
            (refused.0.told)(Err(Away("the server is going down".into())));
        }
    }

    fn tend(&self, shard: usize) -> Boxed<'_, Box<dyn Tenure>> {
        Box::pin(async move {
            loop {
                self.inner.line.is_open().await;
                // Whoever has fewer comes first, so that nodes that start together share them.
                let held = self.inner.turns.load(Ordering::Relaxed);
                sleep(Duration::from_millis(50) * u32::try_from(held).unwrap_or(u32::MAX)).await;
                let is_leaving = self.inner.is_leaving.load(Ordering::SeqCst);
                let is_there = shard < self.tended.load(Ordering::Relaxed);
                if is_there && !is_leaving && matches!(self.take(shard).await, Ok(true)) {
                    return Box::new(Turn::new(Arc::clone(&self.inner), shard)) as Box<dyn Tenure>;
                }
                sleep(self.inner.options.lease / 8).await;
            }
        })
    }

    fn is_open<'a>(
        &'a self,
        conversation: &'a ConversationId,
        id: MessageId,
    ) -> Boxed<'a, Result<bool, Away>> {
        Box::pin(async move {
            let shard = shard(conversation, self.inner.options.shards);
            let log = self.inner.names.log(shard);
            let mut cmd = script(scripts::IS_OPEN, &[&log, &self.inner.names.open(shard)]);
            cmd.arg(id.0.as_slice());
            parsed(self.inner.line.ask(&log, cmd).await?)
        })
    }

    fn health(&self) -> Result<(), String> {
        self.inner.line.health()
    }

    fn leave(&self) -> Boxed<'_, ()> {
        Box::pin(async move {
            self.inner.is_leaving.store(true, Ordering::SeqCst);
            for shard in 0..self.shards() {
                let owner = self.inner.names.owner(shard);
                let mut cmd = script(scripts::LEAVE, &[&owner]);
                cmd.arg(self.inner.node().to_string());
                if self.inner.line.ask(&owner, cmd).await.is_err() {
                    break; // others take over when the leases are over
                }
            }
            let mut task = {
                let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::take(&mut *task)
            };
            task.shutdown().await;
        })
    }
}
