//! What can be watched. Handles are made once.

use metrics::{Counter, Histogram, counter, gauge, histogram};

use crate::log::Depth;

/// The metrics of two-phase acknowledgement.
pub(crate) struct Meters {
    /// Messages accepted.
    pub(crate) accepted: Counter,
    /// Messages saved the ordinary way because the log was away.
    pub(crate) fallen_back: Counter,
    /// Previews that other nodes could not be told of.
    pub(crate) deliver_fail: Counter,
    /// Messages the log did not take.
    pub(crate) publish_fail: Counter,
    /// Attempts to save that failed.
    pub(crate) save_fail: Counter,
    /// Messages that were found saved.
    pub(crate) dup_db: Counter,
    /// Messages that were accepted and refused when they were to be saved.
    pub(crate) refused: Counter,
    /// Messages put aside because they could not be saved.
    pub(crate) dead: Counter,
    /// Messages saved from memory because the log had lost them.
    pub(crate) rescued: Counter,
    /// Seconds from being accepted to being saved.
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
    /// What was put aside, for whoever has no other.
    pub(crate) fn dead() -> Counter {
        counter!("nexo_two_phase_dead_total")
    }

    /// How much waits in a shard that is looked after here.
    #[allow(clippy::cast_precision_loss, reason = "a backlog is bounded")]
    pub(crate) fn depth(shard: usize, depth: Depth) {
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
