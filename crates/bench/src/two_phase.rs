//! What two-phase acknowledgement changes, side by side.

use std::fmt;

use serde::Serialize;

use crate::measure::Load;
use crate::plot::Drawn;
use crate::report::Outcome;
use crate::table::{time, write_counters};

/// The ways a server can be told to acknowledge.
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
pub struct TwoPhases {
    /// What was wanted of each.
    pub rate: u64,
    /// Where messages were kept, and where those that were accepted.
    pub kept_in: String,
    /// In the order of [`MODES`].
    pub loads: Vec<Load>,
}

impl TwoPhases {
    /// Of what the server took on, how much it had saved in the end.
    pub fn saved_share(load: &Load) -> f64 {
        let taken = load.counters.sent - load.counters.refused;
        #[expect(clippy::cast_precision_loss, reason = "a share needs no more digits")]
        let share = load.counters.saved as f64 / taken.max(1) as f64;
        share
    }
}

impl Outcome for TwoPhases {
    /// A server may refuse what is too much; whatever it took on is saved and arrives once.
    fn is_clean(&self) -> bool {
        self.loads.iter().all(|load| {
            let mut counters = load.counters.clone();
            counters.errors.remove("server_busy");
            counters.is_clean()
        })
    }

    fn drawn(&self) -> Vec<Drawn<'_>> {
        Vec::new()
    }
}

impl fmt::Display for TwoPhases {
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
