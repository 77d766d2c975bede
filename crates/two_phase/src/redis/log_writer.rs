//! The one task that puts messages into the log. All waiting messages go together.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nexo_chat::ids::MessageId;
use nexo_redis_link::{Backoff, Pipeline, RedisLink, answer_within, script};
use redis::Value;
use tokio::sync::mpsc;

use super::RedisLogContext;
use super::scripts::PUT;
use crate::accepted::AcceptedMessage;
use crate::log::{LogUnavailable, PutCallback, PutOutcome};

/// The most messages of one script, and about how many bytes: Redis does nothing else meanwhile.
const BATCH: usize = 1000;
const BATCH_BYTES: usize = 2 << 20;

/// Puts that may wait. Retries count too; more are refused as if the shard were full.
pub(super) const QUEUE_MAX: usize = 262_144;

/// A message that waits to be put into the log.
pub(super) struct PutRequest {
    pub(super) shard: usize,
    /// The message of its conversation that must come before it, if one is not saved yet.
    pub(super) after: Option<MessageId>,
    pub(super) message: Arc<AcceptedMessage>,
    pub(super) callback: PutCallback,
}

/// Runs until the queue is closed.
pub(super) async fn run(context: Arc<RedisLogContext>, mut queue: mpsc::Receiver<PutRequest>) {
    let mut pause = Backoff::new(context.node());
    while connect_and_serve(&context, &mut queue, &mut pause).await.is_some() {}
}

/// Serves one connection, from connecting to the pause after its failure; `None` when the queue is
/// closed.
async fn connect_and_serve(
    context: &RedisLogContext,
    queue: &mut mpsc::Receiver<PutRequest>,
    pause: &mut Backoff,
) -> Option<()> {
    match fail_until(context, queue, connect(context)).await? {
        Ok(link) => {
            context.connection.set_connected(link);
            pause.reset();
            drop(context.record_shards().await); // on failure, the node with shard 0 does it
            serve(context, queue).await?;
        }
        Err(why) => context.connection.set_disconnected(&why),
    }
    fail_until(context, queue, pause.wait()).await
}

/// Fails all requests until a future is ready; `None` when the queue is closed.
async fn fail_until<T>(
    context: &RedisLogContext,
    queue: &mut mpsc::Receiver<PutRequest>,
    until: impl Future<Output = T>,
) -> Option<T> {
    let mut until = pin!(until);
    loop {
        tokio::select! {
            ready = &mut until => return Some(ready),
            request = queue.recv() => fail(context, [request?]),
        }
    }
}

async fn connect(context: &RedisLogContext) -> Result<RedisLink, String> {
    let limit = context.options.redis.connect_timeout;
    let connecting = async {
        let mut link = RedisLink::connect(&context.addresses.commands).await?;
        link.ping().await?;
        Ok(link)
    };
    answer_within(limit, connecting).await
}

/// Answers that the log is unavailable.
fn fail(context: &RedisLogContext, requests: impl IntoIterator<Item = PutRequest>) {
    let why = context.connection.health().err().unwrap_or_default();
    for PutRequest { callback, .. } in requests {
        callback(Err(LogUnavailable(why.clone())));
    }
}

/// Puts messages until Redis is away; `None` when the queue is closed.
async fn serve(context: &RedisLogContext, queue: &mut mpsc::Receiver<PutRequest>) -> Option<()> {
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            count = queue.recv_many(&mut batch, BATCH) => if count == 0 {
                return None;
            },
            _why = context.connection.wait_disconnected() => return Some(()),
        }
        let mut waiting = std::mem::take(&mut batch).into_iter().peekable();
        while waiting.peek().is_some() {
            let mut bytes = 0;
            let part = std::iter::from_fn(|| {
                let next = waiting.next_if(|_| bytes < BATCH_BYTES)?;
                bytes += next.message.bytes();
                Some(next)
            });
            put(context, part.collect()).await;
        }
    }
}

async fn put(context: &RedisLogContext, batch: Vec<PutRequest>) {
    if !context.may_put.load(Ordering::SeqCst) {
        return fail(context, batch); // not before the shards of an earlier run are known
    }
    let mut shards: BTreeMap<usize, Vec<PutRequest>> = BTreeMap::new();
    for request in batch {
        shards.entry(request.shard).or_default().push(request);
    }
    let mut pipeline = Pipeline::default();
    for (shard, requests) in &shards {
        let stream = context.keys.log(*shard);
        let mut cmd = script(PUT, &[&stream, &context.keys.open(*shard)]);
        cmd.arg(context.options.shard_max);
        for PutRequest { message, after, .. } in requests {
            cmd.arg(message.id.0.as_slice()).arg(message.fingerprint.0.as_slice());
            cmd.arg(context.codec.encode(message));
            cmd.arg(after.as_ref().map_or(&[][..], |id| &id.0));
        }
        pipeline.push(&stream, cmd);
    }
    match context.connection.run(pipeline).await {
        Ok(answers) => {
            for (requests, answer) in shards.into_values().zip(answers) {
                answer_all(context, requests, answer);
            }
        }
        // Whether the log has them is not known.
        Err(_) => shards.into_values().for_each(|requests| fail(context, requests)),
    }
}

/// Answers each request with its outcome.
fn answer_all(context: &RedisLogContext, requests: Vec<PutRequest>, answer: Value) {
    let answer = answer.extract_error();
    if answer.as_ref().is_err_and(|error| error.code() == Some("OOM")) {
        // Redis is full. Messages that wait in it can still be saved, which makes room.
        return requests.into_iter().for_each(|request| (request.callback)(Ok(PutOutcome::Full)));
    }
    let answer = answer.and_then(|answer| Ok(redis::from_redis_value(answer)?));
    let (length, letters): (u64, Vec<u8>) = match answer {
        Ok(reply) => reply,
        Err(error) => {
            // Redis answers, but cannot do this: a replica, or missing rights.
            context.connection.set_disconnected(&error.to_string());
            return fail(context, requests);
        }
    };
    for (PutRequest { callback, .. }, letter) in requests.into_iter().zip(letters) {
        callback(Ok(match letter {
            b'n' => PutOutcome::New { length },
            b'a' => PutOutcome::Again,
            b's' => PutOutcome::Saved,
            b'c' => PutOutcome::Conflict,
            b'l' => PutOutcome::Overtakes,
            _ => PutOutcome::Full,
        }));
    }
}
