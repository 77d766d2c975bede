//! What is printed: a table for people, JSON for programs.

use std::fmt;

use serde::Serialize;

use crate::baseline::{Baseline, Ratios};
use crate::ledger::Counters;
use crate::measure::{Load, Percentiles};
use crate::options::PrivateOptions;

/// All figures of a run. `Display` is the table, `Serialize` the JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// What was loaded.
    pub name: String,
    /// Where it was.
    pub target: String,
    /// Sockets in all.
    pub connections: usize,
    /// Messages a sender had under way, in a closed loop.
    pub window: u64,
    /// Bytes of a message's text.
    pub size: usize,
    /// The load asked for.
    pub load: Load,
    /// Half of the load found, with `--baseline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half: Option<Load>,
    /// What the machine does by itself, with `--baseline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// The run compared with the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratios: Option<Ratios>,
    #[serde(skip)]
    disk_batch: usize,
}

impl Report {
    /// A run without a baseline.
    pub(crate) fn new(name: &str, target: &str, options: &PrivateOptions, load: Load) -> Self {
        Self {
            name: name.to_owned(),
            target: target.to_owned(),
            connections: options.pair_count() * 2,
            window: options.window,
            size: options.size,
            load,
            half: None,
            baseline: None,
            ratios: None,
            disk_batch: options.disk_batch,
        }
    }

    /// Compares the run with a baseline taken beside it.
    #[must_use]
    pub fn with_baseline(mut self, baseline: Baseline) -> Self {
        let half = self.half.as_ref();
        self.ratios = Some(Ratios::of(&self.load, half, &baseline, self.disk_batch));
        self.baseline = Some(baseline);
        self
    }

    /// Whether nothing was lost, repeated, reordered or refused in any phase. The relay's phase is
    /// one of them: a baseline that loses messages is no baseline.
    pub fn is_clean(&self) -> bool {
        let relay = self.baseline.as_ref().map(|baseline| &baseline.relay);
        let loads = [Some(&self.load), self.half.as_ref(), relay];
        loads.into_iter().flatten().all(|load| load.counters.is_clean())
    }

    /// The report as JSON, for people's eyes too.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} at {}: {} connections, texts of {} bytes",
            self.name, self.target, self.connections, self.size
        )?;
        write_load(f, &self.name, self.window, &self.load)?;
        if let Some(half) = &self.half {
            write_load(f, "half the load", self.window, half)?;
        }
        if let Some(baseline) = &self.baseline {
            write_load(f, "bare relay", self.window, &baseline.relay)?;
            write_disk(f, baseline)?;
        }
        match &self.ratios {
            Some(ratios) => write_ratios(f, ratios),
            None => Ok(()),
        }
    }
}

fn write_load(f: &mut fmt::Formatter<'_>, name: &str, window: u64, load: &Load) -> fmt::Result {
    match load.rate_wanted {
        Some(rate) => write!(f, "\n{name}: open loop, {rate}/s wanted")?,
        None => write!(f, "\n{name}: closed loop, window {window}")?,
    }
    writeln!(f, ", {} s measured", load.seconds)?;
    heads(f)?;
    step(f, "ACK(saved)", load.saved_per_second, &load.saved)?;
    step(f, "pushed", load.pushed_per_second, &load.pushed)?;
    step(f, "delivered", load.delivered_per_second, &load.delivered)?;
    write_counters(f, &load.counters)
}

fn step(f: &mut fmt::Formatter<'_>, name: &str, rate: f64, took: &Percentiles) -> fmt::Result {
    let times = [took.p50_us, took.p90_us, took.p99_us, took.p999_us, took.max_us].map(time);
    let [p50, p90, p99, p999, max] = times;
    row(f, &[name.to_owned(), format!("{rate:.0}"), p50, p90, p99, p999, max])
}

fn heads(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    row(f, &["", "per second", "p50", "p90", "p99", "p99.9", "max"].map(str::to_owned))
}

fn row(f: &mut fmt::Formatter<'_>, cells: &[String; 7]) -> fmt::Result {
    let [name, rate, times @ ..] = cells;
    write!(f, "  {name:<12}{rate:>12}")?;
    times.iter().try_for_each(|time| write!(f, "{time:>11}"))?;
    writeln!(f)
}

fn write_counters(f: &mut fmt::Formatter<'_>, it: &Counters) -> fmt::Result {
    writeln!(
        f,
        "  {} sent, {} saved, {} pushed, {} delivered by {} receipts",
        it.sent, it.saved, it.pushed, it.delivered, it.receipts
    )?;
    writeln!(
        f,
        "  {} lost, {} duplicates, {} reordered by seq, {} by sender, {} unanswered, \
         {} undelivered, {} refused, {} unexpected",
        it.lost,
        it.duplicates,
        it.reordered_by_seq,
        it.reordered_by_sender,
        it.unanswered,
        it.undelivered,
        it.refused,
        it.unexpected
    )?;
    it.errors.iter().try_for_each(|(reason, count)| writeln!(f, "  error: {count} × {reason}"))
}

fn write_disk(f: &mut fmt::Formatter<'_>, baseline: &Baseline) -> fmt::Result {
    writeln!(f, "\nbare disk: append and one fdatasync per batch")?;
    heads(f)?;
    for it in &baseline.disk {
        step(f, &format!("batch {}", it.batch), it.messages_per_second, &it.commit)?;
    }
    Ok(())
}

fn write_ratios(f: &mut fmt::Formatter<'_>, ratios: &Ratios) -> fmt::Result {
    writeln!(f)?;
    if let Some(ratio) = ratios.p1_throughput {
        writeln!(f, "P1 saved/s ÷ bare relay/s: {ratio:.2} (goal: at least 0.50)")?;
    }
    if let (Some(ratio), Some(batch)) = (ratios.p2_latency, ratios.disk_batch) {
        writeln!(
            f,
            "P2 ACK(saved) p99 at half the load ÷ bare disk p99 of batch {batch}: {ratio:.2} \
             (goal: at most 5.00)"
        )?;
    }
    Ok(())
}

/// Microseconds, in the unit that reads best.
fn time(us: f64) -> String {
    match us {
        us if us < 1000.0 => format!("{us:.0} µs"),
        us if us < 100_000.0 => format!("{:.2} ms", us / 1000.0),
        us => format!("{:.2} s", us / 1_000_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bare_disk::DiskRow;

    fn load(rate: f64, p99_us: f64) -> Load {
        let saved = Percentiles { count: 9, p99_us, ..Percentiles::default() };
        Load { saved_per_second: rate, saved, seconds: 1.0, ..Load::default() }
    }

    fn report() -> Report {
        let options = PrivateOptions::default();
        let mut report = Report::new("private messages", "here", &options, load(300.0, 9.0));
        report.half = Some(load(150.0, 4000.0));
        let row = |batch, p99_us| DiskRow {
            batch,
            messages_per_second: 1.0,
            commit: Percentiles { p99_us, ..Percentiles::default() },
        };
        let disk = vec![row(1, 500.0), row(64, 1000.0), row(256, 2000.0)];
        report.with_baseline(Baseline { relay: load(400.0, 1.0), disk })
    }

    #[test]
    fn ratios_are_taken_with_the_right_rows() {
        let ratios = report().ratios.unwrap();
        let wanted =
            Ratios { p1_throughput: Some(0.75), p2_latency: Some(4.0), disk_batch: Some(64) };
        assert_eq!(ratios, wanted);
    }

    #[test]
    fn json_holds_the_figures() {
        let json: serde_json::Value = serde_json::from_str(&report().to_json().unwrap()).unwrap();
        assert_eq!(json["load"]["saved_per_second"], 300.0);
        assert_eq!(json["half"]["saved"]["p99_us"], 4000.0);
        assert_eq!(json["load"]["counters"]["lost"], 0);
        assert_eq!(json["baseline"]["disk"][1]["batch"], 64);
        assert_eq!(json["ratios"]["p1_throughput"], 0.75);
    }

    #[test]
    fn the_table_names_faults_and_goals() {
        let mut report = report();
        assert!(report.is_clean());
        report.load.counters.lost = 3;
        report.load.counters.errors.insert("RATE_LIMITED".to_owned(), 2);
        let table = report.to_string();
        assert!(table.contains("3 lost") && table.contains("2 × RATE_LIMITED"), "{table}");
        assert!(table.contains("P1") && table.contains("batch 64: 4.00"), "{table}");
        assert!(!report.is_clean());
    }

    #[test]
    fn times_read_well() {
        assert_eq!(time(12.3), "12 µs");
        assert_eq!(time(1234.0), "1.23 ms");
        assert_eq!(time(1_234_000.0), "1.23 s");
    }
}
