//! Which nodes are alive.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nexo_redis_link::{NodeId, Pipeline};
use tokio::time::Instant;

use super::breaker::Breaker;
use super::keys::BusKeys;

/// How long a node that was seen alive counts as alive.
const CACHED_FOR: Duration = Duration::from_secs(1);

/// Caches for a moment which nodes are alive. Dead nodes are not cached: if a node that has just
/// come back still counted as dead, its routes would be removed.
#[derive(Default)]
pub(crate) struct LiveNodes {
    seen: Mutex<HashMap<NodeId, Instant>>,
}

impl LiveNodes {
    /// Returns those of the nodes that are alive, or nothing if Redis does not say.
    pub(crate) async fn filter_live(
        &self,
        breaker: &Breaker,
        keys: &BusKeys,
        mut nodes: HashSet<NodeId>,
        limit: Duration,
    ) -> Option<HashSet<NodeId>> {
        let unconfirmed = self.unconfirmed(&nodes);
        let mut pipeline = Pipeline::default();
        for node in &unconfirmed {
            pipeline.add_key("EXISTS", &keys.node(*node));
        }
        let answers = breaker.run(pipeline, limit).await?;
        let now = Instant::now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|_, at| now.duration_since(*at) < CACHED_FOR);
        for (node, answer) in unconfirmed.into_iter().zip(answers) {
            if answer == redis::Value::Int(0) {
                nodes.remove(&node);
            } else {
                seen.insert(node, now);
            }
        }
        Some(nodes)
    }

    fn unconfirmed(&self, nodes: &HashSet<NodeId>) -> Vec<NodeId> {
        let now = Instant::now();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh =
            |node: &NodeId| seen.get(node).is_some_and(|at| now.duration_since(*at) < CACHED_FOR);
        nodes.iter().copied().filter(|node| !is_fresh(node)).collect()
    }
}
