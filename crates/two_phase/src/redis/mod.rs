//! A log in Redis Streams. It outlives nodes, and Redis itself as far as Redis keeps its data.
//!
//! Each shard is a stream with two consumer groups, `deliver` and `save`. One node at a time has
//! the lease of a shard, and every read checks that in the same script. The next owner claims the
//! entries that were read and not finished, and continues after them. Saved entries are deleted, so
//! the length of a stream is the number of waiting messages.
//!
//! - `keys`, `scripts`, `message_codec`: keys, atomic scripts, messages as bytes
//! - `connection`: the connection; `log_writer`: puts messages in; `lease`: reads and finishes them

mod connection;
mod keys;
mod lease;
mod log_writer;
mod message_codec;
mod scripts;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nexo_chat::Boxed;
use nexo_chat::ids::{ConversationId, MessageId};
use nexo_redis_link::{Addresses, NodeId, Pipeline, RedisOptions, RedisOptionsError, script};
use redis::Value;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::connection::LogConnection;
use self::keys::LogKeys;
use self::lease::RedisShardLease;
use self::log_writer::PutRequest;
use self::message_codec::MessageCodec;
use crate::accepted::{AcceptedMessage, shard_of};
use crate::log::{AcceptedLog, LogUnavailable, PutCallback, PutOutcome, ShardLease};

/// How long a command may take before Redis counts as away.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(1);
/// How many ids of saved messages a shard remembers, to answer retries.
const SAVED_MAX: usize = 50_000;
/// About how many dead letters a shard keeps.
const DEAD_MAX: usize = 10_000;

/// The most entries of one read.
const PAGE_MAX: usize = 5_000;

#[derive(Clone, Debug)]
pub struct RedisLogOptions {
    /// Where Redis is, and the prefix of keys.
    pub redis: RedisOptions,
    /// Whether new messages are accepted; else this node only saves those that are in the log.
    pub accepts: bool,
    /// How many shards new messages are spread over.
    pub shards: usize,
    /// The most messages that wait in one shard.
    pub shard_max: usize,
    /// How long a lease lasts without being renewed.
    pub lease: Duration,
}

struct RedisLogContext {
    options: RedisLogOptions,
    addresses: Addresses,
    keys: LogKeys,
    codec: MessageCodec,
    connection: LogConnection,
    /// Whether new messages may be put in by now.
    may_put: AtomicBool,
    is_leaving: AtomicBool,
    /// How many leases this node has.
    leases_held: AtomicUsize,
    /// The most entries of the next read: halved when a read did not come in time.
    page_size: AtomicUsize,
}

impl RedisLogContext {
    fn node(&self) -> NodeId {
        self.options.redis.node
    }

    /// Records the number of shards for nodes that start later, unless it is there.
    async fn record_shards(&self) -> Result<(), LogUnavailable> {
        if !self.may_put.load(Ordering::SeqCst) {
            return Ok(());
        }
        let key = self.keys.shards();
        let mut cmd = redis::cmd("SET");
        cmd.arg(&key).arg(self.options.shards).arg("NX");
        self.connection.query(&key, cmd).await.map(drop)
    }
}

/// A log in Redis.
pub struct RedisLog {
    context: Arc<RedisLogContext>,
    queue: mpsc::Sender<PutRequest>,
    /// Shards that have a worker. An earlier run may have had more shards.
    shards: AtomicUsize,
    /// Of these, workers acquire leases of shards below this number only.
    leasable_shards: AtomicUsize,
    task: Mutex<JoinSet<()>>,
}

impl RedisLog {
    /// Starts to connect and returns at once. All nodes have the same `key`. Must be called within
    /// a tokio runtime.
    pub fn connect(
        options: RedisLogOptions,
        key: [u8; 32],
    ) -> Result<Arc<Self>, RedisOptionsError> {
        let context = Arc::new(RedisLogContext {
            addresses: Addresses::new(&options.redis)?,
            keys: LogKeys::new(&options.redis.prefix),
            codec: MessageCodec::new(key),
            connection: LogConnection::new(COMMAND_TIMEOUT),
            may_put: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            leases_held: AtomicUsize::new(0),
            page_size: AtomicUsize::new(PAGE_MAX),
            options,
        });
        let (queue, requests) = mpsc::channel(log_writer::QUEUE_MAX);
        let mut task = JoinSet::new();
        task.spawn(log_writer::run(Arc::clone(&context), requests));
        let shards = AtomicUsize::new(context.options.shards);
        let leasable_shards = AtomicUsize::new(0);
        Ok(Arc::new(Self { context, queue, shards, leasable_shards, task: Mutex::new(task) }))
    }

    /// Waits up to `limit` until Redis can be reached. Returns whether it can.
    pub async fn wait_reachable(&self, limit: Duration) -> bool {
        timeout(limit, self.context.connection.wait_connected()).await.is_ok()
    }

    /// The number of shards that was recorded when messages were last accepted; `None` if none ever
    /// were. Of `shards_max` shards, those with waiting messages count too: while nodes restart one
    /// by one with fewer shards, others still use more.
    pub async fn recorded_shards(
        &self,
        shards_max: usize,
    ) -> Result<Option<usize>, LogUnavailable> {
        let (key, mut pipeline) = (self.context.keys.shards(), Pipeline::default());
        pipeline.add_key("GET", &key);
        for log in (0..shards_max).map(|shard| self.context.keys.log(shard)) {
            pipeline.add_key("XLEN", &log);
        }
        let mut answers = self.context.connection.run(pipeline).await?.into_iter();
        let recorded: Option<usize> = parse(answers.next().unwrap_or(Value::Nil))?;
        let lengths = answers.map(parse::<usize>).collect::<Result<Vec<_>, _>>()?;
        let in_use = lengths.iter().rposition(|length| *length > 0).map(|last| last + 1);
        Ok(recorded.max(in_use))
    }

    /// Allows messages to be put in, if new ones are accepted, and records the number of shards.
    pub async fn start_accepting(&self) -> Result<(), LogUnavailable> {
        if !self.context.options.accepts {
            return Ok(());
        }
        self.context.may_put.store(true, Ordering::SeqCst);
        let key = self.context.keys.shards();
        let mut cmd = redis::cmd("SET");
        cmd.arg(&key).arg(self.context.options.shards);
        self.context.connection.query(&key, cmd).await.map(drop)
    }

    /// Serves at least this many shards. Call it before the workers start.
    pub fn raise_shards(&self, shards: usize) {
        self.shards.fetch_max(shards, Ordering::Relaxed);
    }

    /// Lets workers acquire leases of shards below this number.
    pub fn set_leasable_shards(&self, shards: usize) {
        self.leasable_shards.store(shards, Ordering::Relaxed);
    }

    /// Waits until all messages that are in the log now are saved, which may be never.
    pub async fn wait_drained(&self) -> Result<(), LogUnavailable> {
        for shard in 0..self.shards() {
            let log = self.context.keys.log(shard);
            let range = |from: &str, to: &str, command: &str| {
                let mut cmd = redis::cmd(command);
                cmd.arg(&log).arg(from).arg(to).arg("COUNT").arg(1);
                cmd
            };
            let last = self.context.connection.query(&log, range("+", "-", "XREVRANGE")).await?;
            let last: Vec<(String, Vec<Vec<u8>>)> = parse(last)?;
            let Some((last, _)) = last.into_iter().next() else { continue };
            tracing::info!(target: "nexo::two_phase", shard, "saving messages that an earlier run accepted");
            loop {
                let first =
                    self.context.connection.query(&log, range("-", &last, "XRANGE")).await?;
                if parse::<Vec<Value>>(first)?.is_empty() {
                    break;
                }
                sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    }

    async fn try_acquire(&self, shard: usize) -> Result<bool, LogUnavailable> {
        let context = &self.context;
        let log = context.keys.log(shard);
        let mut cmd = script(scripts::ACQUIRE, &[&log, &context.keys.owner(shard)]);
        cmd.arg(context.node().to_string());
        cmd.arg(u64::try_from(context.options.lease.as_millis()).unwrap_or(u64::MAX));
        parse(context.connection.query(&log, cmd).await?)
    }
}

fn parse<T: redis::FromRedisValue>(value: Value) -> Result<T, LogUnavailable> {
    redis::from_redis_value(value).map_err(|error| LogUnavailable(error.to_string()))
}

impl AcceptedLog for RedisLog {
    fn shards(&self) -> usize {
        self.shards.load(Ordering::Relaxed)
    }

    fn put(&self, message: Arc<AcceptedMessage>, after: Option<MessageId>, callback: PutCallback) {
        let shard = shard_of(&message.draft.conversation, self.context.options.shards);
        match self.queue.try_send(PutRequest { shard, after, message, callback }) {
            Ok(()) => {}
            Err(TrySendError::Full(request)) => (request.callback)(Ok(PutOutcome::Full)),
            Err(TrySendError::Closed(request)) => {
                (request.callback)(Err(LogUnavailable("the server is going down".into())));
            }
        }
    }

    fn acquire_lease(&self, shard: usize) -> Boxed<'_, Box<dyn ShardLease>> {
        Box::pin(async move {
            loop {
                self.context.connection.wait_connected().await;
                // Nodes with fewer leases try first, so that nodes that start together share the
                // shards.
                let held = self.context.leases_held.load(Ordering::Relaxed);
                sleep(Duration::from_millis(50) * u32::try_from(held).unwrap_or(u32::MAX)).await;
                let is_leaving = self.context.is_leaving.load(Ordering::SeqCst);
                let is_leasable = shard < self.leasable_shards.load(Ordering::Relaxed);
                if is_leasable && !is_leaving && matches!(self.try_acquire(shard).await, Ok(true)) {
                    return Box::new(RedisShardLease::new(Arc::clone(&self.context), shard))
                        as Box<dyn ShardLease>;
                }
                sleep(self.context.options.lease / 8).await;
            }
        })
    }

    fn is_waiting<'a>(
        &'a self,
        conversation: &'a ConversationId,
        id: MessageId,
    ) -> Boxed<'a, Result<bool, LogUnavailable>> {
        Box::pin(async move {
            let shard = shard_of(conversation, self.context.options.shards);
            let log = self.context.keys.log(shard);
            let mut cmd = script(scripts::IS_WAITING, &[&log, &self.context.keys.open(shard)]);
            cmd.arg(id.0.as_slice());
            parse(self.context.connection.query(&log, cmd).await?)
        })
    }

    fn health(&self) -> Result<(), String> {
        self.context.connection.health()
    }

    fn leave(&self) -> Boxed<'_, ()> {
        Box::pin(async move {
            self.context.is_leaving.store(true, Ordering::SeqCst);
            for shard in 0..self.shards() {
                let owner = self.context.keys.owner(shard);
                let mut cmd = script(scripts::RELEASE, &[&owner]);
                cmd.arg(self.context.node().to_string());
                if self.context.connection.query(&owner, cmd).await.is_err() {
                    break; // others take over when the leases expire
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
