//! Figures as a text table.

use std::fmt;

use crate::ledger::Counters;
use crate::measure::{Load, Percentiles};

/// One phase: its load, its rates and latencies, its counters.
pub(crate) fn write_load(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    window: u64,
    load: &Load,
) -> fmt::Result {
    match load.rate_wanted {
        Some(rate) => write!(f, "\n{name}: open loop, {rate}/s wanted")?,
        None => write!(f, "\n{name}: closed loop, window {window}")?,
    }
    write!(f, ", {} s measured", load.seconds)?;
    match (load.cpu_seconds, load.pushed_per_core()) {
        (Some(cpu), Some(rate)) => {
            let cores = cpu / load.seconds;
            writeln!(f, ", {cores:.2} cores used, {rate:.0} pushed/s per core")?;
        }
        _ => writeln!(f)?,
    }
    heads(f)?;
    for (name, rate, took) in rows(load) {
        step(f, name, rate, took)?;
    }
    write_counters(f, &load.counters)
}

/// The steps that have samples. Reaching the last member of a group has no rate of its own.
pub(crate) fn rows(load: &Load) -> Vec<(&'static str, Option<f64>, &Percentiles)> {
    let all = [
        ("ACK(accepted)", None, &load.accepted),
        ("ACK(saved)", Some(load.saved_per_second), &load.saved),
        ("  worst second", None, &load.worst_second),
        ("pushed", Some(load.pushed_per_second), &load.pushed),
        ("delivered", Some(load.delivered_per_second), &load.delivered),
        ("to the last", None, &load.all),
    ];
    all.into_iter().filter(|(_, _, took)| took.count > 0).collect()
}

/// A row of percentiles.
pub(crate) fn step(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    rate: Option<f64>,
    took: &Percentiles,
) -> fmt::Result {
    let times = [took.p50_us, took.p90_us, took.p99_us, took.p999_us, took.max_us].map(time);
    let [p50, p90, p99, p999, max] = times;
    let rate = rate.map_or(String::new(), |rate| format!("{rate:.0}"));
    row(f, &[name.to_owned(), rate, p50, p90, p99, p999, max])
}

/// The column heads.
pub(crate) fn heads(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    row(f, &["", "per second", "p50", "p90", "p99", "p99.9", "max"].map(str::to_owned))
}

fn row(f: &mut fmt::Formatter<'_>, cells: &[String; 7]) -> fmt::Result {
    let [name, rate, times @ ..] = cells;
    write!(f, "  {name:<14}{rate:>12}")?;
    times.iter().try_for_each(|time| write!(f, "{time:>11}"))?;
    writeln!(f)
}

/// The counters, faults in a line of their own.
pub(crate) fn write_counters(f: &mut fmt::Formatter<'_>, it: &Counters) -> fmt::Result {
    write!(f, "  {} sent, {} saved, {} pushed", it.sent, it.saved, it.pushed)?;
    match it.receipts {
        0 => writeln!(f)?,
        receipts => writeln!(f, ", {} delivered by {receipts} receipts", it.delivered)?,
    }
    writeln!(
        f,
        "  {} lost, {} duplicates, {} reordered by seq, {} by sender, {} wrong ids, \
         {} unanswered, {} undelivered, {} refused, {} unexpected",
        it.lost,
        it.duplicates,
        it.reordered_by_seq,
        it.reordered_by_sender,
        it.wrong_ids,
        it.unanswered,
        it.undelivered,
        it.refused,
        it.unexpected
    )?;
    it.errors.iter().try_for_each(|(reason, count)| writeln!(f, "  error: {count} × {reason}"))
}

/// Microseconds, in the unit that reads best.
pub(crate) fn time(us: f64) -> String {
    match us {
        us if us < 1000.0 => format!("{us:.0} µs"),
        us if us < 100_000.0 => format!("{:.2} ms", us / 1000.0),
        us => format!("{:.2} s", us / 1_000_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_well() {
        assert_eq!(time(12.3), "12 µs");
        assert_eq!(time(1234.0), "1.23 ms");
        assert_eq!(time(1_234_000.0), "1.23 s");
    }
}
