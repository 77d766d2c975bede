//! The one task that keeps the connection for commands, and keeps this node alive in Redis.

use std::sync::Arc;

use redis::{RedisError, Value};
use tokio::time::{MissedTickBehavior, interval_at, timeout};

use super::backoff::Backoff;
use super::breaker::no_answer;
use super::link::{Link, Lot};
use super::node::Node;

/// Works until it is stopped.
pub(crate) async fn keep(node: Arc<Node>) {
    let mut pause = Backoff::new(node.id());
    loop {
        match reach(&node).await {
            Ok(link) => {
                node.renewal.after_absence(&node.own, || node.breaker.close(link));
                node.outgoing.wake();
                if stay(&node).await {
                    pause.reset();
                }
            }
            Err(why) => node.breaker.open(&why),
        }
        pause.wait().await;
    }
}

/// Connects and sees that it works, down to writing this node's own key.
async fn reach(node: &Node) -> Result<Link, String> {
    let limit = node.options.connect_timeout;
    let reached = timeout(limit, async {
        let mut link = Link::connect(&node.addresses.commands).await?;
        link.ping().await?;
        let answers = link.run(heartbeat(node)).await?;
        refused(answers).map_or(Ok(link), Err)
    });
    match reached.await {
        Ok(link) => link.map_err(|e| e.to_string()),
        Err(_) => Err(no_answer(limit)),
    }
}

/// Beats until the link is gone; whether it lasted for a while.
async fn stay(node: &Node) -> bool {
    let every = node.options.heartbeat;
    let mut tick = interval_at(tokio::time::Instant::now() + every, every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut has_lasted = false;
    loop {
        tokio::select! {
            () = node.breaker.opened() => return has_lasted,
            () = node.breaker.doubted() => {}
            _ = tick.tick() => has_lasted = true,
        }
        beat(node).await;
    }
}

/// Says that this node is there, and sees whether it counted as being there.
async fn beat(node: &Node) {
    let Some(joined) = node.breaker.link() else { return };
    let mut link = joined.link;
    let limit = node.options.publish_timeout;
    let beaten = match timeout(limit, link.run(heartbeat(node))).await {
        Ok(Ok(answers)) => {
            let was_forgotten = answers.first() == Some(&Value::Nil);
            refused(answers).map_or(Ok(was_forgotten), |error| Err(error.to_string()))
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(no_answer(limit)),
    };
    match beaten {
        Ok(false) => {}
        // Others took this node for dead, or everything was forgotten.
        Ok(true) => node.renewal.after_absence(&node.own, || {}),
        // It may answer, but not what is needed: a replica, no memory, another password.
        Err(why) => node.breaker.open(&why),
    }
}

/// Renews the node's key, telling what it was, and says something on this node's own channel.
fn heartbeat(node: &Node) -> Lot {
    let mut lot = Lot::default();
    let ttl_ms = u64::try_from(node.options.node_ttl.as_millis()).unwrap_or(u64::MAX);
    lot.add("SET", &node.names.node(node.id()), ("up", "PX", ttl_ms, "GET"));
    // No number: nobody reads more of it than that it came.
    if let Some(payload) = node.seal.close(node.id(), node.id(), 0, &[]) {
        lot.add("PUBLISH", &node.names.channel(node.id()), payload);
    }
    lot
}

/// The first thing Redis would not do.
fn refused(answers: impl IntoIterator<Item = Value>) -> Option<RedisError> {
    answers.into_iter().find_map(|answer| answer.extract_error().err())
}
