//! The metrics of the bus.

use metrics::{Counter, Gauge, Histogram};

/// Handles, made once. The recorder must be installed before the bus is made.
pub(crate) struct Meters {
    /// 1 while commands and the subscription work, else 0.
    pub(crate) up: Gauge,
    /// Events published to other nodes, once per node.
    pub(crate) published: Counter,
    /// Events that other nodes may not have received.
    pub(crate) dropped: Counter,
    /// Payloads that failed the check of seal and sequence.
    pub(crate) refused: Counter,
    /// How often events of other nodes may have been lost.
    pub(crate) lost: Counter,
    pub(crate) payload_events: Histogram,
}

impl Meters {
    pub(crate) fn new() -> Self {
        Self {
            up: metrics::gauge!("nexo_bus_up"),
            published: metrics::counter!("nexo_bus_published_total"),
            dropped: metrics::counter!("nexo_bus_dropped_total"),
            refused: metrics::counter!("nexo_bus_refused_total"),
            lost: metrics::counter!("nexo_bus_lost_total"),
            payload_events: metrics::histogram!("nexo_bus_payload_events"),
        }
    }
}
