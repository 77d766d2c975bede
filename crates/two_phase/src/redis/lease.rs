//! The lease of a shard in Redis. Every read checks in the same script that this node still has the
//! lease.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nexo_chat::Boxed;
use nexo_redis_link::{RedisLink, answer_within, script};
use redis::{Cmd, Value};
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::scripts::{CLAIM_UNFINISHED, DEAD_LETTER, FINISH, READ, RENEW};
use super::{DEAD_MAX, PAGE_MAX, RedisLogContext, SAVED_MAX, parse};
use crate::log::{
    ConsumerGroup, LeaseLost, LogEntry, LogUnavailable, SaveOutcome, ShardDepth, ShardLease,
};
use crate::meters::Meters;

pub(super) struct RedisShardLease {
    context: Arc<RedisLogContext>,
    shard: usize,
    /// One for each consumer group: both read at the same time.
    readers: [Mutex<GroupReader>; 2],
}

/// How far a consumer group has read.
struct GroupReader {
    /// Where to continue claiming entries that an earlier owner read and did not finish; `None`
    /// once all are claimed.
    claim_cursor: Option<String>,
    /// The last entry received from Redis.
    last_received: String,
    /// The last entry of the stream, if the next read should wait for a new one.
    wait_after: Option<String>,
    /// A connection of its own, because `XREAD BLOCK` blocks all other commands on it.
    link: Option<RedisLink>,
}

impl From<LogUnavailable> for LeaseLost {
    fn from(unavailable: LogUnavailable) -> Self {
        Self(unavailable.0)
    }
}

impl ConsumerGroup {
    fn name(self) -> &'static str {
        match self {
            Self::Deliver => "deliver",
            Self::Save => "save",
        }
    }
}

impl RedisShardLease {
    pub(super) fn new(context: Arc<RedisLogContext>, shard: usize) -> Self {
        context.leases_held.fetch_add(1, Ordering::Relaxed);
        let start = || String::from("0-0");
        let reader = || GroupReader {
            claim_cursor: Some(start()),
            last_received: start(),
            wait_after: None,
            link: None,
        };
        Self { context, shard, readers: [Mutex::new(reader()), Mutex::new(reader())] }
    }

    fn stream(&self) -> String {
        self.context.keys.log(self.shard)
    }

    /// A script that does nothing but fail if this node does not have the lease.
    fn fenced(&self, code: &str) -> Cmd {
        let mut cmd = script(code, &[&self.stream(), &self.context.keys.owner(self.shard)]);
        cmd.arg(self.context.node().to_string());
        cmd
    }

    async fn query(&self, cmd: Cmd) -> Result<Value, LeaseLost> {
        Ok(self.context.connection.query(&self.stream(), cmd).await?)
    }

    async fn read(
        &self,
        group: ConsumerGroup,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<LogEntry>, LeaseLost> {
        let mut reader = self.readers[group as usize].lock().await;
        let max = self.context.page_size.load(Ordering::Relaxed).min(max);
        while let Some(from) = reader.claim_cursor.take() {
            let mut cmd = self.fenced(CLAIM_UNFINISHED);
            cmd.arg(group.name()).arg(from).arg(max);
            let (next, entries): (String, Value) = parse(self.query_page(cmd, max).await?)?;
            reader.claim_cursor = Some(next).filter(|next| next != "0-0");
            let entries = self.decode_entries(group, entries, &mut reader.last_received).await?;
            if !entries.is_empty() {
                return Ok(entries);
            }
        }
        // After a full batch there is more to read; after a smaller one, wait first.
        let mut has_waited = false;
        loop {
            if let Some(last) = reader.wait_after.take() {
                self.wait(&mut reader, &last, wait).await?;
                has_waited = true;
            }
            match self.read_new(group, max, &mut reader.last_received).await? {
                Ok(entries) => {
                    let last = entries.last().filter(|_| entries.len() < max);
                    reader.wait_after = last.map(|entry| entry.entry_id.clone());
                    return Ok(entries);
                }
                Err(end) => reader.wait_after = Some(end),
            }
            if has_waited {
                return Ok(Vec::new());
            }
        }
    }

    /// Reads new entries, or returns the id of the last entry of the stream.
    async fn read_new(
        &self,
        group: ConsumerGroup,
        max: usize,
        last_received: &mut String,
    ) -> Result<Result<Vec<LogEntry>, String>, LeaseLost> {
        let mut cmd = self.fenced(READ);
        cmd.arg(group.name()).arg(max).arg(&*last_received);
        match self.query_page(cmd, max).await? {
            entries @ Value::Array(_) => {
                Ok(Ok(self.decode_entries(group, entries, last_received).await?))
            }
            end => Ok(Err(parse(end)?)),
        }
    }

    /// Reads a page of entries. If it did not come in time, the next page is half as large.
    async fn query_page(&self, cmd: Cmd, max: usize) -> Result<Value, LeaseLost> {
        let answer = self.query(cmd).await;
        let page_size = if answer.is_ok() { (max * 2).min(PAGE_MAX) } else { (max / 2).max(1) };
        self.context.page_size.store(page_size, Ordering::Relaxed);
        answer
    }

    /// Waits until the stream has an entry after `end`.
    async fn wait(
        &self,
        reader: &mut GroupReader,
        end: &str,
        wait: Duration,
    ) -> Result<(), LeaseLost> {
        let limit = self.context.options.redis.connect_timeout;
        let link = match &mut reader.link {
            Some(link) => link,
            empty => {
                let connecting = RedisLink::connect(&self.context.addresses.commands);
                empty.insert(answer_within(limit, connecting).await.map_err(LeaseLost)?)
            }
        };
        let mut cmd = redis::cmd("XREAD");
        let block_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
        cmd.arg("COUNT").arg(1).arg("BLOCK").arg(block_ms);
        cmd.arg("STREAMS").arg(self.stream()).arg(end);
        answer_within(wait + limit, link.query(&cmd)).await.map(drop).map_err(LeaseLost)
    }

    /// Decodes entries. The `save` group moves those that no node of this system wrote to the dead
    /// letters.
    async fn decode_entries(
        &self,
        group: ConsumerGroup,
        value: Value,
        last_received: &mut String,
    ) -> Result<Vec<LogEntry>, LeaseLost> {
        let raw: Vec<Option<(String, Vec<Vec<u8>>)>> = parse(value)?;
        let mut entries = Vec::with_capacity(raw.len());
        for (entry_id, fields) in raw.into_iter().flatten() {
            let bytes = fields.into_iter().nth(1).unwrap_or_default();
            last_received.clone_from(&entry_id);
            match self.context.codec.decode(&bytes) {
                Ok(message) => entries.push(LogEntry { entry_id, message }),
                Err(_) if group == ConsumerGroup::Deliver => {}
                Err(error) => {
                    tracing::error!(
                        target: "nexo::two_phase",
                        shard = self.shard,
                        entry = entry_id,
                        why = %error,
                        "an entry of the log moves to the dead letters",
                    );
                    self.move_to_dead_letters(&entry_id, bytes, &error.to_string(), &[]).await?;
                    Meters::dead().increment(1);
                }
            }
        }
        Ok(entries)
    }

    async fn move_to_dead_letters(
        &self,
        entry_id: &str,
        bytes: Vec<u8>,
        why: &str,
        id: &[u8],
    ) -> Result<(), LeaseLost> {
        let keys = &self.context.keys;
        let (open, dead) = (keys.open(self.shard), keys.dead(self.shard));
        let mut cmd = script(DEAD_LETTER, &[&self.stream(), &open, &dead]);
        cmd.arg(entry_id).arg(bytes).arg(why).arg(self.context.node().to_string()).arg(DEAD_MAX);
        self.query(cmd.arg(id).clone()).await.map(drop)
    }

    async fn renew(&self, lease_ms: u64) -> Result<ShardDepth, LeaseLost> {
        let mut cmd = self.fenced(RENEW);
        cmd.arg(lease_ms);
        let (length, pending, pending_deliver) = parse(self.query(cmd).await?)?;
        if self.shard == 0 {
            // Redis may have lost it. If Redis has no memory for it now, a later renewal writes it.
            drop(self.context.record_shards().await);
        }
        Ok(ShardDepth { length, pending, pending_deliver })
    }
}

impl Drop for RedisShardLease {
    fn drop(&mut self) {
        self.context.leases_held.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ShardLease for RedisShardLease {
    fn renew_until_lost<'a>(
        &'a self,
        report: &'a (dyn Fn(ShardDepth) + Send + Sync),
    ) -> Boxed<'a, LeaseLost> {
        let lease = self.context.options.lease;
        let lease_ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        Box::pin(async move {
            loop {
                match self.renew(lease_ms).await {
                    Ok(depth) => report(depth),
                    Err(lost) => return lost,
                }
                sleep(lease / 4).await;
            }
        })
    }

    fn read_next(
        &self,
        group: ConsumerGroup,
        max: usize,
        wait: Duration,
    ) -> Boxed<'_, Result<Vec<LogEntry>, LeaseLost>> {
        Box::pin(self.read(group, max, wait))
    }

    fn acknowledge_delivered(&self, entries: Vec<LogEntry>) -> Boxed<'_, Result<(), LeaseLost>> {
        let mut cmd = redis::cmd("XACK");
        cmd.arg(self.stream()).arg(ConsumerGroup::Deliver.name());
        for entry in &entries {
            cmd.arg(&entry.entry_id);
        }
        Box::pin(async move { self.query(cmd).await.map(drop) })
    }

    fn finish(&self, entries: Vec<(LogEntry, SaveOutcome)>) -> Boxed<'_, Result<(), LeaseLost>> {
        let keys = &self.context.keys;
        let (log, open) = (self.stream(), keys.open(self.shard));
        let mut cmd = script(FINISH, &[&log, &open, &keys.saved(self.shard)]);
        cmd.arg(SAVED_MAX);
        for (entry, outcome) in &entries {
            let outcome = if *outcome == SaveOutcome::Saved { "+" } else { "-" };
            cmd.arg(&entry.entry_id).arg(entry.message.id.0.as_slice()).arg(outcome);
        }
        Box::pin(async move { self.query(cmd).await.map(drop) })
    }

    fn dead_letter(&self, entry: LogEntry, why: String) -> Boxed<'_, Result<(), LeaseLost>> {
        Box::pin(async move {
            let bytes = self.context.codec.encode(&entry.message);
            self.move_to_dead_letters(&entry.entry_id, bytes, &why, &entry.message.id.0).await
        })
    }
}
