//! The metrics of two-phase acknowledgement.

use metrics::{Counter, Histogram, counter, gauge, histogram};

use crate::log::ShardDepth;

/// Handles, made once.
pub(crate) struct Meters {
    pub(crate) accepted: Counter,
    /// Messages appended to the store directly because the log was unavailable.
    pub(crate) fallen_back: Counter,
    /// Previews that could not be sent to other nodes.
    pub(crate) deliver_fail: Counter,
    /// Messages the log did not accept.
    pub(crate) publish_fail: Counter,
    /// Attempts to save that failed.
    pub(crate) save_fail: Counter,
    /// Messages that were in the store already when they were to be saved.
    pub(crate) dup_db: Counter,
    /// Accepted messages that the store refused.
    pub(crate) refused: Counter,
    /// Messages moved to the dead letters.
    pub(crate) dead: Counter,
    /// Messages saved from memory because the log had lost them.
    pub(crate) rescued: Counter,
    /// Seconds from acceptance to saving.
    pub(crate) save_lag: Histogram,
}

impl Default for Meters {
    fn default() -> Self {
        let failure =
            |kind: &'static str| counter!("nexo_two_phase_failures_total", "kind" => kind);
        Self {
            accepted: counter!("nexo_two_phase_accepted_total"),
            fallen_back: counter!("nexo_two_phase_fallbacks_total"),
            deliver_fail: failure("deliver"),
            publish_fail: failure("publish"),
            save_fail: failure("save"),
            dup_db: counter!("nexo_two_phase_dup_db_total"),
            refused: counter!("nexo_two_phase_refused_total"),
            dead: Self::dead(),
            rescued: counter!("nexo_two_phase_rescued_total"),
            save_lag: histogram!("nexo_two_phase_save_lag_seconds"),
        }
    }
}

impl Meters {
    /// For code that has no other meter.
    pub(crate) fn dead() -> Counter {
        counter!("nexo_two_phase_dead_total")
    }

    /// The depth of a shard whose lease this node has.
    #[allow(clippy::cast_precision_loss, reason = "a backlog is bounded")]
    pub(crate) fn set_depth(shard: usize, depth: ShardDepth) {
        let shard = shard.to_string();
        gauge!("nexo_two_phase_stream_length", "shard" => shard.clone()).set(depth.length as f64);
        let groups = [("save", depth.pending), ("deliver", depth.pending_deliver)];
        for (group, pending) in groups {
            let gauge =
                gauge!("nexo_two_phase_pending", "shard" => shard.clone(), "group" => group);
            gauge.set(pending as f64);
        }
    }
}
