//! All figures of a run, as a table and as JSON.

use std::fmt;

use serde::Serialize;

use super::catch_up::MissedReport;
use super::compare::Comparison;
use super::crash::Crash;
use super::generate::Generated;
use super::start::Starts;
use crate::plot::PlottedPhase;
use crate::report::BenchReport;
use crate::table::{heads, step, time};

/// P5: the highest cost ratio of large to small.
const RATIO_MAX: f64 = 1.10;

/// All figures of a run. `Display` is the table, `Serialize` the JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GrowthReport {
    /// Messages in the large store.
    pub messages: u64,
    /// Ordinary conversations they are spread over.
    pub conversations: u64,
    /// Members of the large group.
    pub members: u64,
    pub rounds: usize,
    /// Bytes of the large store.
    pub bytes_on_disk: u64,
    /// How long generating took; absent if an earlier run generated the stores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generated: Option<Generated>,
    /// P5: small against large.
    pub comparisons: Vec<Comparison>,
    /// P6: how long starts take.
    pub starts: Starts,
    /// P7: catching up.
    pub missed: MissedReport,
    /// Whether messages acknowledged before kill -9 were found again.
    pub crash: Crash,
}

impl BenchReport for GrowthReport {
    /// No acknowledged message was lost, and every user who was offline got everything.
    fn is_clean(&self) -> bool {
        self.crash.lost == 0 && self.missed.is_complete()
    }

    fn plotted_phases(&self) -> Vec<PlottedPhase<'_>> {
        Vec::new()
    }
}

impl fmt::Display for GrowthReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "growth: {} messages in {} conversations and more, a group of {}, {} MiB on disk",
            self.messages,
            self.conversations,
            self.members,
            self.bytes_on_disk >> 20
        )?;
        match &self.generated {
            Some(generated) => write_generated(f, generated)?,
            None => writeln!(f, "  made by an earlier run")?,
        }
        self.write_comparisons(f)?;
        self.write_starts(f)?;
        self.write_missed(f)
    }
}

impl GrowthReport {
    fn write_comparisons(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nwith little and with much, in turns: medians of {} rounds", self.rounds)?;
        for it in &self.comparisons {
            let (small, large) = (precise(it.small_us), precise(it.large_us));
            write!(f, "  {:<40}{small:>11}{large:>11}  × {:.2}", it.act, it.ratio)?;
            writeln!(f, "   {} / {}", it.small, it.large)?;
        }
        let within = self.comparisons.iter().filter(|it| it.ratio <= RATIO_MAX).count();
        let all = self.comparisons.len();
        writeln!(f, "P5 cost does not grow: {within} of {all} (goal: each at most {RATIO_MAX:.2})")
    }

    fn write_starts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Starts { empty, stopped, killed } = &self.starts;
        writeln!(f, "\nstarts, from the process to 200 from /readyz")?;
        heads(f)?;
        step(f, "empty folder", None, empty)?;
        step(f, "after a stop", None, stopped)?;
        step(f, "after a kill", None, killed)?;
        let crash = &self.crash;
        writeln!(f, "  {} acknowledged before the kills, {} lost", crash.acknowledged, crash.lost)?;
        let slowest = time(stopped.max_us.max(killed.max_us));
        writeln!(f, "P6 ready after {slowest} or sooner (goal: at most 0.3 s)")
    }

    fn write_missed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let it = &self.missed;
        writeln!(f, "\n{} messages missed over {} conversations", it.messages, it.conversations)?;
        heads(f)?;
        step(f, "from connect", None, &it.took)?;
        if !it.is_complete() {
            writeln!(f, "  not everything came: {:?}", it.received)?;
        }
        writeln!(f, "  users {}, password {}", it.users.join(", "), it.password)?;
        let median = time(it.took.p50_us);
        write!(f, "P7 all of it after {median} (goal: at most 300 ms for 10,000 over 100)")
    }
}

fn write_generated(f: &mut fmt::Formatter<'_>, it: &Generated) -> fmt::Result {
    writeln!(f, "  written in {:.1} s, {:.0} messages per second", it.seconds, it.per_second)?;
    if let (Some(first), Some(last)) = (it.tenths.first(), it.tenths.last()) {
        writeln!(
            f,
            "  the first tenth: {:.0}/s, {:.1} µs of processor each; the last: {:.0}/s, {:.1} µs",
            first.per_second, first.cpu_us, last.per_second, last.cpu_us
        )?;
    }
    Ok(())
}

/// Microseconds, with decimals for small values.
fn precise(us: f64) -> String {
    if us < 100.0 { format!("{us:.2} µs") } else { time(us) }
}
