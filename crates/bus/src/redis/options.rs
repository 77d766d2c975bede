//! The time limits and queue sizes of the bus over Redis.

use nexo_redis_link::{NodeId, RedisOptions, RedisOptionsError};

use std::time::Duration;

/// How the bus uses Redis.
#[derive(Clone, Debug)]
pub struct RedisBusOptions {
    pub redis: RedisOptions,
    /// Other nodes take this node for dead when it sent no heartbeat for this long.
    pub node_ttl: Duration,
    /// The interval between heartbeats. After three that did not come back on this node's own
    /// channel, the subscription counts as dead.
    pub heartbeat: Duration,
    /// Registrations and group subscriptions expire unless they are written again.
    pub route_ttl: Duration,
    /// How often they are written again.
    pub refresh: Duration,
    pub publish_timeout: Duration,
    /// The time limit of every other command. When it is over, Redis counts as away, so that only one
    /// caller waits.
    pub call_timeout: Duration,
    /// How many events may wait to be published, and how many bytes of them.
    pub queue_events: usize,
    pub queue_bytes: usize,
    /// The approximate size limit of a payload. A larger event has a payload of its own.
    pub payload_bytes: usize,
}

impl RedisBusOptions {
    /// The usual limits.
    pub fn new(redis: RedisOptions) -> Self {
        Self {
            redis,
            node_ttl: Duration::from_secs(10),
            heartbeat: Duration::from_secs(3),
            route_ttl: Duration::from_mins(1),
            refresh: Duration::from_secs(20),
            publish_timeout: Duration::from_millis(500),
            call_timeout: Duration::from_millis(250),
            queue_events: 65_536,
            queue_bytes: 64 << 20,
            payload_bytes: 1 << 20,
        }
    }

    /// Returns what is wrong with them, as far as that shows without connecting.
    pub fn check(&self) -> Result<(), RedisOptionsError> {
        self.redis.check()
    }

    pub(crate) fn node(&self) -> NodeId {
        self.redis.node
    }
}
