//! The metrics of an engine.

use metrics::{Counter, Gauge, Histogram};

/// Handles to the metrics, created once. A recorder must be installed before the store is opened.
pub(crate) struct Meters {
    /// Seconds from taking the first write of a batch until the batch was durable.
    pub(crate) commit_seconds: Histogram,
    /// New messages per batch.
    pub(crate) batch_messages: Histogram,
    pub(crate) saved: Counter,
    /// Appends that were duplicates.
    pub(crate) duplicates: Counter,
    /// Writes still waiting after the last batch was taken.
    pub(crate) queue: Gauge,
}

impl Meters {
    pub(crate) fn new() -> Self {
        Self {
            commit_seconds: metrics::histogram!("nexo_store_commit_seconds"),
            batch_messages: metrics::histogram!("nexo_store_batch_messages"),
            saved: metrics::counter!("nexo_store_saved_total"),
            duplicates: metrics::counter!("nexo_store_duplicates_total"),
            queue: metrics::gauge!("nexo_store_queue"),
        }
    }
}
