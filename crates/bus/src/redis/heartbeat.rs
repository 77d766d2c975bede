//! The task that keeps the connection for commands and sends this node's heartbeat.

use std::sync::Arc;

use nexo_redis_link::{Backoff, Pipeline, RedisLink, answer_within};
use redis::{RedisError, Value};
use tokio::time::{MissedTickBehavior, interval_at};

use super::node::BusNode;

/// Runs until it is aborted.
pub(crate) async fn run(node: Arc<BusNode>) {
    let mut pause = Backoff::new(node.id());
    loop {
        match connect(&node).await {
            Ok(link) => {
                node.route_refresh
                    .request_after_absence(&node.local_routes, || node.breaker.close(link));
                node.publish_queue.wake();
                if beat_until_open(&node).await {
                    pause.reset();
                }
            }
            Err(why) => node.breaker.open(&why),
        }
        pause.wait().await;
    }
}

/// Connects, and checks the connection down to writing this node's own key.
async fn connect(node: &BusNode) -> Result<RedisLink, String> {
    let limit = node.options.redis.connect_timeout;
    let connecting = answer_within(limit, async {
        let mut link = RedisLink::connect(&node.addresses.commands).await?;
        link.ping().await?;
        let answers = link.run(heartbeat_commands(node)).await?;
        first_error(answers).map_or(Ok(link), Err)
    });
    connecting.await
}

/// Sends heartbeats until the breaker opens. Returns whether the link lasted for at least one of
/// them.
async fn beat_until_open(node: &BusNode) -> bool {
    let every = node.options.heartbeat;
    let mut tick = interval_at(tokio::time::Instant::now() + every, every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut has_lasted = false;
    loop {
        tokio::select! {
            () = node.breaker.wait_open() => return has_lasted,
            () = node.breaker.check_requested() => {}
            _ = tick.tick() => has_lasted = true,
        }
        beat(node).await;
    }
}

/// Sends one heartbeat, and notices if this node's key had expired.
async fn beat(node: &BusNode) {
    let Some(numbered) = node.breaker.link() else { return };
    let mut link = numbered.link;
    let limit = node.options.publish_timeout;
    let beat = answer_within(limit, async {
        let answers = link.run(heartbeat_commands(node)).await?;
        let was_forgotten = answers.first() == Some(&Value::Nil);
        first_error(answers).map_or(Ok(was_forgotten), Err)
    });
    match beat.await {
        Ok(false) => {}
        // The key had expired, so other nodes took this node for dead; or Redis lost its data.
        Ok(true) => node.route_refresh.request_after_absence(&node.local_routes, || {}),
        // Redis may answer and still refuse to write: a replica, no memory left, another password.
        Err(why) => node.breaker.open(&why),
    }
}

/// Renews the node's key, returning its old value, and publishes an empty payload on this node's
/// own channel, which shows that the subscription works.
fn heartbeat_commands(node: &BusNode) -> Pipeline {
    let mut pipeline = Pipeline::default();
    let ttl_ms = u64::try_from(node.options.node_ttl.as_millis()).unwrap_or(u64::MAX);
    pipeline.add("SET", &node.keys.node(node.id()), ("up", "PX", ttl_ms, "GET"));
    // Number 0: the subscriber ignores everything but the arrival.
    if let Some(payload) = node.codec.encode(node.id(), node.id(), 0, &[]) {
        pipeline.add("PUBLISH", &node.keys.channel(node.id()), payload);
    }
    pipeline
}

/// The first command that Redis refused.
fn first_error(answers: impl IntoIterator<Item = Value>) -> Option<RedisError> {
    answers.into_iter().find_map(|answer| answer.extract_error().err())
}
