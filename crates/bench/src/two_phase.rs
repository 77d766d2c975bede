//! The same load with and without two-phase acknowledgement, side by side.

use std::fmt;

use serde::Serialize;

use crate::measure::Load;
use crate::plot::PlottedPhase;
use crate::report::BenchReport;
use crate::table::{time, write_counters};

/// The modes of acknowledgement, and the settings of each.
pub const MODES: [(&str, &[(&str, &str)]); 3] = [
    ("off", &[]),
    ("on", &[("NEXO_TWO_PHASE__ENABLED", "true")]),
    (
        "deliver first",
        &[("NEXO_TWO_PHASE__ENABLED", "true"), ("NEXO_TWO_PHASE__DELIVER_BEFORE_SAVED", "true")],
    ),
];

/// The same load in each of [`MODES`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TwoPhaseReport {
    /// Messages per second asked for.
    pub rate: u64,
    /// The store, and the log of accepted messages.
    pub kept_in: String,
    /// In the order of [`MODES`].
    pub loads: Vec<Load>,
}

impl TwoPhaseReport {
    /// The share of messages not refused that were saved in the end.
    pub fn saved_share(load: &Load) -> f64 {
        let taken = load.counters.sent - load.counters.refused;
        #[expect(clippy::cast_precision_loss, reason = "a share needs no more digits")]
        let share = load.counters.saved as f64 / taken.max(1) as f64;
        share
    }
}

impl BenchReport for TwoPhaseReport {
    /// A server may refuse messages under overload; all others must be saved and arrive once.
    fn is_clean(&self) -> bool {
        self.loads.iter().all(|load| {
            let mut counters = load.counters.clone();
            counters.errors.remove("server_busy");
            counters.is_clean()
        })
    }

    fn plotted_phases(&self) -> Vec<PlottedPhase<'_>> {
        Vec::new()
    }
}

impl fmt::Display for TwoPhaseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "two-phase acknowledgement: {}/s wanted, {}\n", self.rate, self.kept_in)?;
        let heads =
            ["accepted p50", "p99", "saved p50", "p99", "seen p50", "p99", "saved/s", "saved"];
        write!(f, "  {:<14}", "")?;
        heads.iter().try_for_each(|head| write!(f, "{head:>13}"))?;
        writeln!(f)?;
        for ((name, _), load) in MODES.iter().zip(&self.loads) {
            write!(f, "  {name:<14}")?;
            for took in [&load.accepted, &load.saved, &load.pushed] {
                let [p50, p99] = [took.p50_us, took.p99_us].map(time);
                let (p50, p99) =
                    if took.count == 0 { ("–".into(), "–".into()) } else { (p50, p99) };
                write!(f, "{p50:>13}{p99:>13}")?;
            }
            let share = Self::saved_share(load) * 100.0;
            writeln!(f, "{:>13.0}{share:>11.2} %", load.saved_per_second)?;
        }
        for ((name, _), load) in MODES.iter().zip(&self.loads) {
            writeln!(f, "\n{name}")?;
            write_counters(f, &load.counters)?;
        }
        Ok(())
    }
}
