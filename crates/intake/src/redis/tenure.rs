//! A shard in Redis that this node looks after, as long as Redis says so: every read asks whether it
//! still does, in the same act.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nexo_bus::Link;
use nexo_chat::Boxed;
use redis::{Cmd, Value};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use super::line::script;
use super::scripts::{BURY, CLAIM, DONE, READ, STAY};
use super::{DEAD_MAX, Inner, PAGE_MAX, SAVED_MAX};
use crate::log::{Away, Depth, Entry, Fate, Lost, Role, Tenure};
use crate::meters::Meters;

/// One node's turn at a shard.
pub(super) struct Turn {
    inner: Arc<Inner>,
    shard: usize,
    /// One for each role: they wait at the same time.
    readers: [Mutex<Reader>; 2],
}

/// How far a role has come.
struct Reader {
    /// Where to go on claiming what others have left; `None` once all is claimed.
    claims_from: Option<String>,
    /// The last entry that came from Redis.
    came: String,
    /// The last entry there was, if it is time to wait for another.
    last: Option<String>,
    /// A connection of its own, to wait on.
    link: Option<Link>,
}

impl From<Away> for Lost {
    fn from(away: Away) -> Self {
        Self(away.0)
    }
}

impl Role {
    fn group(self) -> &'static str {
        match self {
            Self::Deliver => "deliver",
            Self::Save => "save",
        }
    }
}

impl Turn {
    pub(super) fn new(inner: Arc<Inner>, shard: usize) -> Self {
        inner.turns.fetch_add(1, Ordering::Relaxed);
        let start = || String::from("0-0");
        let reader =
            || Reader { claims_from: Some(start()), came: start(), last: None, link: None };
        Self { inner, shard, readers: [Mutex::new(reader()), Mutex::new(reader())] }
    }

    fn log(&self) -> String {
        self.inner.names.log(self.shard)
    }

    /// A script that does something only as long as this node looks after the shard.
    fn fenced(&self, code: &str) -> Cmd {
        let mut cmd = script(code, &[&self.log(), &self.inner.names.owner(self.shard)]);
        cmd.arg(self.inner.node().to_string());
        cmd
    }

    async fn ask(&self, cmd: Cmd) -> Result<Value, Lost> {
        Ok(self.inner.line.ask(&self.log(), cmd).await?)
    }

    async fn read(&self, role: Role, max: usize, wait: Duration) -> Result<Vec<Entry>, Lost> {
        let mut reader = self.readers[role as usize].lock().await;
        let max = self.inner.page.load(Ordering::Relaxed).min(max);
        while let Some(from) = reader.claims_from.take() {
            let mut cmd = self.fenced(CLAIM);
            cmd.arg(role.group()).arg(from).arg(max);
            let (next, entries): (String, Value) = parsed(self.ask_page(cmd, max).await?)?;
            reader.claims_from = Some(next).filter(|next| next != "0-0");
            let entries = self.entries(role, entries, &mut reader.came).await?;
            if !entries.is_empty() {
                return Ok(entries);
            }
        }
        // After a full batch there is more; after a smaller one, one waits first.
        let mut has_waited = false;
        loop {
            if let Some(last) = reader.last.take() {
                self.wait(&mut reader, &last, wait).await?;
                has_waited = true;
            }
            match self.read_new(role, max, &mut reader.came).await? {
                Ok(entries) => {
                    let last = entries.last().filter(|_| entries.len() < max);
                    reader.last = last.map(|entry| entry.place.clone());
                    return Ok(entries);
                }
                Err(end) => reader.last = Some(end),
            }
            if has_waited {
                return Ok(Vec::new());
            }
        }
    }

    /// What nobody has read, or where the log ends.
    async fn read_new(
        &self,
        role: Role,
        max: usize,
        came: &mut String,
    ) -> Result<Result<Vec<Entry>, String>, Lost> {
        let mut cmd = self.fenced(READ);
        cmd.arg(role.group()).arg(max).arg(&*came);
        match self.ask_page(cmd, max).await? {
            entries @ Value::Array(_) => Ok(Ok(self.entries(role, entries, came).await?)),
            end => Ok(Err(parsed(end)?)),
        }
    }

    /// Asks for a page of entries. One that is too large to come in time is smaller the next time.
    async fn ask_page(&self, cmd: Cmd, max: usize) -> Result<Value, Lost> {
        let answer = self.ask(cmd).await;
        let page = if answer.is_ok() { (max * 2).min(PAGE_MAX) } else { (max / 2).max(1) };
        self.inner.page.store(page, Ordering::Relaxed);
        answer
    }

    /// Waits until there is something after `end`, on a connection that nobody else needs.
    async fn wait(&self, reader: &mut Reader, end: &str, wait: Duration) -> Result<(), Lost> {
        let limit = self.inner.options.redis.connect_timeout;
        let link = match &mut reader.link {
            Some(link) => link,
            empty => {
                let connecting = Link::connect(&self.inner.addresses.commands);
                let link = timeout(limit, connecting).await;
                empty.insert(
                    link.map_err(|_| Lost("no connection".into()))?
                        .map_err(|error| failed(&error))?,
                )
            }
        };
        let mut cmd = redis::cmd("XREAD");
        let block_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
        cmd.arg("COUNT").arg(1).arg("BLOCK").arg(block_ms);
        cmd.arg("STREAMS").arg(self.log()).arg(end);
        let waited = timeout(wait + limit, link.ask(&cmd)).await;
        waited.map_err(|_| Lost("no answer".into()))?.map(drop).map_err(|error| failed(&error))
    }

    /// Reads entries; those that no node of ours wrote are put aside by whoever saves.
    async fn entries(
        &self,
        role: Role,
        value: Value,
        came: &mut String,
    ) -> Result<Vec<Entry>, Lost> {
        let raw: Vec<Option<(String, Vec<Vec<u8>>)>> = parsed(value)?;
        let mut entries = Vec::with_capacity(raw.len());
        for (place, fields) in raw.into_iter().flatten() {
            let bytes = fields.into_iter().nth(1).unwrap_or_default();
            came.clone_from(&place);
            match self.inner.seal.open(&bytes) {
                Ok(message) => entries.push(Entry { place, message }),
                Err(_) if role == Role::Deliver => {}
                Err(refusal) => {
                    tracing::error!(
                        target: "nexo::intake",
                        shard = self.shard,
                        entry = place,
                        why = %refusal,
                        "an entry of the log is put aside",
                    );
                    self.put_aside(&place, bytes, &refusal.to_string(), &[]).await?;
                    Meters::dead().increment(1);
                }
            }
        }
        Ok(entries)
    }

    async fn put_aside(
        &self,
        place: &str,
        bytes: Vec<u8>,
        why: &str,
        id: &[u8],
    ) -> Result<(), Lost> {
        let names = &self.inner.names;
        let (open, dead) = (names.open(self.shard), names.dead(self.shard));
        let mut cmd = script(BURY, &[&self.log(), &open, &dead]);
        cmd.arg(place).arg(bytes).arg(why).arg(self.inner.node().to_string()).arg(DEAD_MAX);
        self.ask(cmd.arg(id).clone()).await.map(drop)
    }

    async fn stay(&self, lease_ms: u64) -> Result<Depth, Lost> {
        let mut cmd = self.fenced(STAY);
        cmd.arg(lease_ms);
        let (length, pending, pending_deliver) = parsed(self.ask(cmd).await?)?;
        if self.shard == 0 {
            // Redis may have forgotten it. If there is no room for it, it is noted later.
            drop(self.inner.note_shards().await);
        }
        Ok(Depth { length, pending, pending_deliver })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.inner.turns.fetch_sub(1, Ordering::Relaxed);
    }
}

fn failed(error: &redis::RedisError) -> Lost {
    Lost(error.to_string())
}

fn parsed<T: redis::FromRedisValue>(value: Value) -> Result<T, Lost> {
    redis::from_redis_value(value).map_err(|error| Lost(error.to_string()))
}

impl Tenure for Turn {
    fn keep<'a>(&'a self, tell: &'a (dyn Fn(Depth) + Send + Sync)) -> Boxed<'a, Lost> {
        let lease = self.inner.options.lease;
        let lease_ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        Box::pin(async move {
            loop {
                match self.stay(lease_ms).await {
                    Ok(depth) => tell(depth),
                    Err(lost) => return lost,
                }
                sleep(lease / 4).await;
            }
        })
    }

    fn next(&self, role: Role, max: usize, wait: Duration) -> Boxed<'_, Result<Vec<Entry>, Lost>> {
        Box::pin(self.read(role, max, wait))
    }

    fn shown(&self, entries: Vec<Entry>) -> Boxed<'_, Result<(), Lost>> {
        let mut cmd = redis::cmd("XACK");
        cmd.arg(self.log()).arg(Role::Deliver.group());
        for entry in &entries {
            cmd.arg(&entry.place);
        }
        Box::pin(async move { self.ask(cmd).await.map(drop) })
    }

    fn done(&self, entries: Vec<(Entry, Fate)>) -> Boxed<'_, Result<(), Lost>> {
        let names = &self.inner.names;
        let (log, open) = (self.log(), names.open(self.shard));
        let mut cmd = script(DONE, &[&log, &open, &names.saved(self.shard)]);
        cmd.arg(SAVED_MAX);
        for (entry, fate) in &entries {
            let fate = if *fate == Fate::Saved { "+" } else { "-" };
            cmd.arg(&entry.place).arg(entry.message.id.0.as_slice()).arg(fate);
        }
        Box::pin(async move { self.ask(cmd).await.map(drop) })
    }

    fn bury(&self, entry: Entry, why: String) -> Boxed<'_, Result<(), Lost>> {
        Box::pin(async move {
            let bytes = self.inner.seal.close(&entry.message);
            self.put_aside(&entry.place, bytes, &why, &entry.message.id.0).await
        })
    }
}
