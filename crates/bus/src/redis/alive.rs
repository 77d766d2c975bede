//! Which nodes are there.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::breaker::Breaker;
use super::link::Lot;
use super::names::{Names, NodeId};

/// How long a node that was there is taken to be there still.
const TRUSTED: Duration = Duration::from_secs(1);

/// Remembers for a moment who is alive. Who is not is asked for each time: taking a node that has
/// just come back for dead would take its places away.
#[derive(Default)]
pub(crate) struct Alive {
    seen: Mutex<HashMap<NodeId, Instant>>,
}

impl Alive {
    /// Those of the nodes that are there; nothing if it cannot be known.
    pub(crate) async fn living(
        &self,
        breaker: &Breaker,
        names: &Names,
        mut nodes: HashSet<NodeId>,
        limit: Duration,
    ) -> Option<HashSet<NodeId>> {
        let unsure = self.unsure(&nodes);
        let mut lot = Lot::default();
        for node in &unsure {
            lot.ask("EXISTS", &names.node(*node));
        }
        let answers = breaker.run(lot, limit).await?;
        let now = Instant::now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|_, at| now.duration_since(*at) < TRUSTED);
        for (node, answer) in unsure.into_iter().zip(answers) {
            if answer == redis::Value::Int(0) {
                nodes.remove(&node);
            } else {
                seen.insert(node, now);
            }
        }
        Some(nodes)
    }

    fn unsure(&self, nodes: &HashSet<NodeId>) -> Vec<NodeId> {
        let now = Instant::now();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh =
            |node: &NodeId| seen.get(node).is_some_and(|at| now.duration_since(*at) < TRUSTED);
        nodes.iter().copied().filter(|node| !is_fresh(node)).collect()
    }
}
