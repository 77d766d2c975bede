//! The damaged places of the stored data that were met so far: counted, logged once each, and shown
//! to the operator. What is damaged is found anew by reading, so nothing of this is stored.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use metrics::{Counter, Gauge};
use nexo_chat::store::KnownDamage;

use super::poison::EngineFault;

/// Places that are told apart; damage beyond them is only counted by its reads.
const PLACES_MAX: usize = 1024;
/// Places that an operator sees by name.
const EXAMPLES_MAX: usize = 20;
/// A damaged disk may have very many places: the log gets a line for the first few, then one a minute.
const LINES_AT_ONCE: usize = 20;
const LINE_EVERY: Duration = Duration::from_mins(1);

pub(crate) struct Quarantine {
    state: Mutex<QuarantineState>,
    reads: Counter,
    places: Gauge,
}

#[derive(Default)]
struct QuarantineState {
    places: BTreeSet<String>,
    last_line: Option<Instant>,
}

impl Default for Quarantine {
    fn default() -> Self {
        let places = metrics::gauge!("nexo_store_damaged_places");
        places.set(0.0);
        let reads = metrics::counter!("nexo_store_damaged_reads_total");
        Self { state: Mutex::default(), reads, places }
    }
}

impl Quarantine {
    fn state(&self) -> MutexGuard<'_, QuarantineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a read that met damage, and logs a place that was not known.
    pub(crate) fn note(&self, fault: &EngineFault) {
        self.reads.increment(1);
        let place = fault.to_string();
        let mut state = self.state();
        if state.places.len() >= PLACES_MAX || !state.places.insert(place) {
            return;
        }
        let count = state.places.len();
        #[allow(clippy::cast_precision_loss, reason = "there are at most PLACES_MAX")]
        self.places.set(count as f64);
        let may_log = state.last_line.is_none_or(|last| last.elapsed() >= LINE_EVERY);
        if count <= LINES_AT_ONCE || may_log {
            state.last_line = Some(Instant::now());
            drop(state);
            tracing::error!(
                target: "nexo::store",
                place = %fault,
                places = count,
                "stored data is damaged: what needs it is refused, everything else goes on; \
                 `nexo doctor` tells more",
            );
        }
    }

    pub(crate) fn known(&self) -> KnownDamage {
        let state = self.state();
        let examples = state.places.iter().take(EXAMPLES_MAX).cloned().collect();
        KnownDamage { places: state.places.len() as u64, examples }
    }
}
