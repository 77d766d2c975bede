//! The one task that puts messages into the log: everything that waits goes together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nexo_bus::{Backoff, Link, Lot};
use nexo_chat::ids::MessageId;
use redis::Value;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Inner;
use super::line::script;
use super::scripts::PUT;
use crate::accepted::Accepted;
use crate::log::{Away, Put, Told};

/// Messages put together at most, and about how many bytes: Redis does nothing else meanwhile.
const BATCH: usize = 1000;
const LOT_BYTES: usize = 2 << 20;

/// A message on its way into the log.
pub(super) struct Asked {
    pub(super) shard: usize,
    /// The message that must come before it, if one of its conversation is on its way.
    pub(super) after: Option<MessageId>,
    pub(super) message: Arc<Accepted>,
    pub(super) told: Told,
}

/// Works until nobody is left to ask.
pub(super) async fn work(inner: Arc<Inner>, mut queue: mpsc::UnboundedReceiver<Asked>) {
    let mut pause = Backoff::new(inner.node());
    loop {
        let mut reaching = Box::pin(reach(&inner));
        let reached = loop {
            tokio::select! {
                reached = &mut reaching => break reached,
                asked = queue.recv() => match asked {
                    Some(asked) => refuse(&inner, [asked]),
                    None => return,
                },
            }
        };
        match reached {
            Ok(link) => {
                inner.line.open(link);
                pause.reset();
                drop(inner.note_shards().await); // in vain, it is noted by whoever has the first shard
                if serve(&inner, &mut queue).await.is_none() {
                    return;
                }
            }
            Err(why) => inner.line.close(&why),
        }
        let mut waiting = Box::pin(pause.wait());
        loop {
            tokio::select! {
                () = &mut waiting => break,
                asked = queue.recv() => match asked {
                    Some(asked) => refuse(&inner, [asked]),
                    None => return,
                },
            }
        }
    }
}

async fn reach(inner: &Inner) -> Result<Link, String> {
    let limit = inner.options.redis.connect_timeout;
    let reached = timeout(limit, async {
        let mut link = Link::connect(&inner.addresses.commands).await?;
        link.ping().await?;
        Ok::<_, redis::RedisError>(link)
    });
    match reached.await {
        Ok(link) => link.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer in {} ms", limit.as_millis())),
    }
}

/// Whoever put something is told that the log is away.
fn refuse(inner: &Inner, asked: impl IntoIterator<Item = Asked>) {
    let why = inner.line.health().err().unwrap_or_default();
    for Asked { told, .. } in asked {
        told(Err(Away(why.clone())));
    }
}

/// Puts what comes until Redis is away; `None` when nobody is left to ask.
async fn serve(inner: &Inner, queue: &mut mpsc::UnboundedReceiver<Asked>) -> Option<()> {
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            count = queue.recv_many(&mut batch, BATCH) => if count == 0 {
                return None;
            },
            _why = inner.line.is_closed() => return Some(()),
        }
        let mut waiting = std::mem::take(&mut batch).into_iter().peekable();
        while waiting.peek().is_some() {
            let mut bytes = 0;
            let lot = std::iter::from_fn(|| {
                let next = waiting.next_if(|_| bytes < LOT_BYTES)?;
                bytes += next.message.bytes();
                Some(next)
            });
            put(inner, lot.collect()).await;
        }
    }
}

async fn put(inner: &Inner, batch: Vec<Asked>) {
    if !inner.may_put.load(Ordering::SeqCst) {
        return refuse(inner, batch); // first it has to be known what is left of an earlier run
    }
    let mut shards: BTreeMap<usize, Vec<Asked>> = BTreeMap::new();
    for asked in batch {
        shards.entry(asked.shard).or_default().push(asked);
    }
    let mut lot = Lot::default();
    for (shard, asked) in &shards {
        let log = inner.names.log(*shard);
        let mut cmd = script(PUT, &[&log, &inner.names.open(*shard)]);
        cmd.arg(inner.options.shard_max);
        for Asked { message, after, .. } in asked {
            cmd.arg(message.id.0.as_slice()).arg(message.fingerprint.0.as_slice());
            cmd.arg(inner.seal.close(message));
            cmd.arg(after.as_ref().map_or(&[][..], |id| &id.0));
        }
        lot.push(&log, cmd);
    }
    match inner.line.run(lot).await {
        Ok(answers) => {
            for (asked, answer) in shards.into_values().zip(answers) {
                tell(inner, asked, answer);
            }
        }
        // Whether they are in the log is not known.
        Err(_) => shards.into_values().for_each(|asked| refuse(inner, asked)),
    }
}

/// Tells everybody what became of their message.
fn tell(inner: &Inner, asked: Vec<Asked>, answer: Value) {
    let answer = answer.extract_error();
    if answer.as_ref().is_err_and(|error| error.code() == Some("OOM")) {
        // What waits there can still be saved, and makes room.
        return asked.into_iter().for_each(|asked| (asked.told)(Ok(Put::Full)));
    }
    let answer = answer.and_then(|answer| Ok(redis::from_redis_value(answer)?));
    let (length, letters): (u64, Vec<u8>) = match answer {
        Ok(told) => told,
        Err(error) => {
            // It answers, but not what is needed: a replica, other rights.
            inner.line.close(&error.to_string());
            return refuse(inner, asked);
        }
    };
    for (Asked { told, .. }, letter) in asked.into_iter().zip(letters) {
        told(Ok(match letter {
            b'n' => Put::New { length },
            b'a' => Put::Again,
            b's' => Put::Saved,
            b'c' => Put::Conflict,
            b'l' => Put::Overtakes,
            _ => Put::Full,
        }));
    }
}
