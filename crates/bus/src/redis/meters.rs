//! What the bus tells about itself.

use metrics::{Counter, Gauge, Histogram};

/// Handles to the metrics, made once. A recorder must be there before the bus.
pub(crate) struct Meters {
    /// One while other nodes can be told and heard, zero while they cannot.
    pub(crate) up: Gauge,
    /// Events published to other nodes, once per node.
    pub(crate) published: Counter,
    /// Events that other nodes may not have been told.
    pub(crate) dropped: Counter,
    /// Payloads that were not believed.
    pub(crate) refused: Counter,
    /// Times that events of others may have been missed here.
    pub(crate) lost: Counter,
    /// Events per payload.
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
