//! Reports: a table for people, JSON for programs.

use std::fmt;

use serde::Serialize;

use crate::baseline::{Baseline, Ratios};
use crate::endpoint::Endpoint;
use crate::group::FaultyReaderReport;
use crate::measure::Load;
use crate::options::{GroupOptions, PrivateOptions};
use crate::plot::{PlottedPhase, page};
use crate::table::{heads, step, time, write_load};

/// The report of a scenario.
pub trait BenchReport: fmt::Display + Serialize {
    /// Whether nothing was lost, repeated, reordered or refused.
    fn is_clean(&self) -> bool;

    /// The phases to plot.
    fn plotted_phases(&self) -> Vec<PlottedPhase<'_>>;

    /// The report as an HTML page with charts.
    fn to_page(&self) -> String {
        let text = self.to_string();
        let title = text.lines().next().unwrap_or_default();
        page(title, &self.plotted_phases(), &text)
    }

    /// The report as indented JSON.
    fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

/// All figures of messages sent. `Display` is the table, `Serialize` the JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadReport {
    /// The kind of load.
    pub name: String,
    /// The server's URL.
    pub target: String,
    /// Sockets in all.
    pub connections: usize,
    /// Members of the group, online or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<usize>,
    /// Messages a sender had in flight, in a closed loop.
    pub window: u64,
    /// Bytes of a message's text.
    pub size: usize,
    /// The load asked for.
    pub load: Load,
    /// Half of the load found, with `--baseline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half: Option<Load>,
    /// The same load again together with faulty readers, with `--beside`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Load>,
    /// The faulty readers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readers: Option<FaultyReaderReport>,
    /// What the machine does without the server, with `--baseline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// The run compared with the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratios: Option<Ratios>,
    #[serde(skip)]
    disk_batch: usize,
}

impl LoadReport {
    /// Private messages, without a baseline.
    pub(crate) fn private(name: &str, at: &Endpoint, options: &PrivateOptions, load: Load) -> Self {
        Self {
            name: name.to_owned(),
            target: at.address.clone(),
            connections: options.pair_count() * 2,
            members: None,
            window: options.flow.window,
            size: options.flow.size,
            load,
            half: None,
            beside: None,
            readers: None,
            baseline: None,
            ratios: None,
            disk_batch: options.disk_batch,
        }
    }

    /// A group, without a baseline.
    pub(crate) fn group(name: &str, at: &Endpoint, options: &GroupOptions, load: Load) -> Self {
        Self {
            connections: options.online() + options.readers.count(),
            members: Some(options.members + options.readers.count()),
            window: options.flow.window,
            size: options.flow.size,
            ..Self::private(name, at, &PrivateOptions::default(), load)
        }
    }

    /// Compares private messages with a baseline taken beside them.
    #[must_use]
    pub fn with_baseline(mut self, baseline: Baseline) -> Self {
        let half = self.half.as_ref();
        self.ratios = Some(Ratios::of(&self.load, half, &baseline, self.disk_batch));
        self.baseline = Some(baseline);
        self
    }

    /// Compares a group with a bare broadcast.
    #[must_use]
    pub fn with_broadcast(mut self, relay: Load) -> Self {
        self.ratios = Some(Ratios::of_group(&self.load, &relay));
        self.baseline = Some(Baseline { relay, relay_half: None, disk: Vec::new() });
        self
    }
}

impl BenchReport for LoadReport {
    /// The relay's phase counts too: a baseline that loses messages is no baseline.
    fn is_clean(&self) -> bool {
        let relay = self.baseline.as_ref().map(|baseline| &baseline.relay);
        let relay_half = self.baseline.as_ref().and_then(|it| it.relay_half.as_ref());
        let loads = [Some(&self.load), self.half.as_ref(), self.beside.as_ref(), relay, relay_half];
        let readers_clean = self.readers.as_ref().is_none_or(FaultyReaderReport::is_clean);
        readers_clean && loads.into_iter().flatten().all(|load| load.counters.is_clean())
    }

    fn plotted_phases(&self) -> Vec<PlottedPhase<'_>> {
        let relay = self.baseline.as_ref().map(|baseline| &baseline.relay);
        let relay_half = self.baseline.as_ref().and_then(|it| it.relay_half.as_ref());
        let phases = [
            (self.name.as_str(), Some(&self.load)),
            ("half the load", self.half.as_ref()),
            ("beside readers who misbehave", self.beside.as_ref()),
            ("bare relay", relay),
            ("bare relay at half the load", relay_half),
        ];
        let drawn = |(name, load): (_, Option<_>)| load.map(|load| PlottedPhase { name, load });
        phases.into_iter().filter_map(drawn).collect()
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {} connections, ", self.name, self.target, self.connections)?;
        if let Some(members) = self.members {
            write!(f, "{members} members, ")?;
        }
        writeln!(f, "texts of {} bytes", self.size)?;
        write_load(f, &self.name, self.window, &self.load)?;
        if let Some(half) = &self.half {
            write_load(f, "half the load", self.window, half)?;
        }
        if let Some(beside) = &self.beside {
            write_load(f, "beside readers who misbehave", self.window, beside)?;
        }
        if let Some(readers) = &self.readers {
            writeln!(f, "  {readers}")?;
        }
        if let Some(baseline) = &self.baseline {
            write_load(f, "bare relay", self.window, &baseline.relay)?;
            if let Some(relay) = &baseline.relay_half {
                write_load(f, "bare relay at half the load", self.window, relay)?;
            }
            write_disk(f, baseline)?;
        }
        if let Some(beside) = &self.beside {
            let p99 = |load: &Load| time(load.pushed.p99_us);
            let (without, with) = (p99(&self.load), p99(beside));
            writeln!(f, "\npushed p99 without and with these readers: {without}, {with}")?;
        }
        match &self.ratios {
            Some(ratios) => write_ratios(f, ratios),
            None => Ok(()),
        }
    }
}

fn write_disk(f: &mut fmt::Formatter<'_>, baseline: &Baseline) -> fmt::Result {
    if baseline.disk.is_empty() {
        return Ok(());
    }
    writeln!(f, "\nbare disk: append and one fdatasync per batch")?;
    heads(f)?;
    for it in &baseline.disk {
        step(f, &format!("batch {}", it.batch), Some(it.messages_per_second), &it.commit)?;
    }
    Ok(())
}

fn write_ratios(f: &mut fmt::Formatter<'_>, ratios: &Ratios) -> fmt::Result {
    writeln!(f)?;
    if let Some(ratio) = ratios.p1_throughput {
        writeln!(f, "P1 saved/s ÷ bare relay/s: {ratio:.2} (goal: at least 0.60)")?;
    }
    if let (Some(ratio), Some(batch)) = (ratios.p2_latency, ratios.disk_batch) {
        writeln!(
            f,
            "P2 ACK(saved) p99 at half the load ÷ bare disk p99 of batch {batch}: {ratio:.2} \
             (goal: at most 5.00)"
        )?;
    }
    if let Some(ratio) = ratios.p2_beside_relay {
        writeln!(f, "   the same ÷ the bare relay's p99 at the same rate: {ratio:.2}")?;
    }
    if let Some(ratio) = ratios.p3_fan_out {
        writeln!(f, "P3 pushed/s ÷ bare broadcast/s: {ratio:.2} (goal: at least 0.80)")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bare_disk::DiskRow;
    use crate::measure::Percentiles;

    fn load(rate: f64, p99_us: f64) -> Load {
        let saved = Percentiles { count: 9, p99_us, ..Percentiles::default() };
        Load { saved_per_second: rate, saved, seconds: 1.0, ..Load::default() }
    }

    fn report() -> LoadReport {
        let options = PrivateOptions::default();
        let mut report =
            LoadReport::private("messages", &Endpoint::at("here"), &options, load(300.0, 9.0));
        report.half = Some(load(150.0, 4000.0));
        let row = |batch, p99_us| DiskRow {
            batch,
            messages_per_second: 1.0,
            commit: Percentiles { p99_us, ..Percentiles::default() },
        };
        let disk = vec![row(1, 500.0), row(64, 1000.0), row(256, 2000.0)];
        report.with_baseline(Baseline { relay: load(400.0, 1.0), relay_half: None, disk })
    }

    #[test]
    fn ratios_are_taken_with_the_right_rows() {
        let ratios = report().ratios.unwrap();
        let wanted = Ratios {
            p1_throughput: Some(0.75),
            p2_latency: Some(4.0),
            p2_beside_relay: None,
            disk_batch: Some(64),
            p3_fan_out: None,
        };
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
}
