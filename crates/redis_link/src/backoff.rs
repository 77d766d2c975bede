//! How long to wait before connecting again.

use std::time::Duration;

use crate::node_id::NodeId;

const FIRST_MS: u64 = 100;
const LAST_MS: u64 = 2000;

/// Pauses that double, from 50 ms to 2 s. They differ between nodes, so that not all nodes reconnect
/// in the same moment.
pub struct Backoff {
    node: NodeId,
    tries: usize,
}

impl Backoff {
    pub fn new(node: NodeId) -> Self {
        Self { node, tries: 0 }
    }

    /// Call it when a connection works: the next pause is the shortest again.
    pub fn reset(&mut self) {
        self.tries = 0;
    }

    /// Waits, longer than the last time.
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.next()).await;
    }

    fn next(&mut self) -> Duration {
        let whole = (FIRST_MS << self.tries.min(10)).min(LAST_MS);
        // The node's id is random, so its bytes serve as jitter.
        let jitter = u64::from(self.node.0[self.tries % 16]);
        self.tries += 1;
        Duration::from_millis(whole / 2 + whole / 2 * jitter / 255)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_two_seconds_and_differ_between_nodes() {
        let pauses = |byte| {
            let mut backoff = Backoff::new(NodeId([byte; 16]));
            (0..100).map(|_| backoff.next().as_millis()).collect::<Vec<_>>()
        };
        assert_eq!(pauses(0)[..6], [50, 100, 200, 400, 800, 1000]);
        assert_eq!(pauses(255)[..6], [100, 200, 400, 800, 1600, 2000]);
        assert_eq!(pauses(255)[99], 2000);
    }
}
