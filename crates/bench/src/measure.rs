//! Histograms and rates.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::ledger::{Counters, Sample};
use crate::pace::nanos;

/// A pair brings its samples in lots, so that the lock is rarely met.
const LOT: usize = 64;

/// How long something took, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// How many were measured.
    pub count: u64,
    /// Half took no longer than this.
    pub p50_us: f64,
    /// Nine of ten took no longer.
    pub p90_us: f64,
    /// 99 of 100 took no longer.
    pub p99_us: f64,
    /// 999 of 1,000 took no longer.
    pub p999_us: f64,
    /// The slowest.
    pub max_us: f64,
    /// Quantiles and microseconds, from the middle to the slowest: for a plot.
    #[serde(skip)]
    pub curve: Vec<(f64, f64)>,
}

impl Percentiles {
    /// Of some times.
    pub(crate) fn of_times(times: impl IntoIterator<Item = Duration>) -> Result<Self> {
        let mut histogram = histogram()?;
        times.into_iter().for_each(|time| histogram.saturating_record(nanos(time)));
        Ok(Self::of(&histogram))
    }

    /// Of a histogram of nanoseconds.
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "2⁵³ ns are 104 days")]
        let us = |nanos: u64| nanos as f64 / 1000.0;
        let at = |quantile| us(histogram.value_at_quantile(quantile));
        Self {
            count: histogram.len(),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: us(histogram.max()),
            curve: curve(histogram.len()).map(|quantile| (quantile, at(quantile))).collect(),
        }
    }
}

/// Quantiles from one half to as near to one as so many samples tell, evenly on a logarithmic axis.
fn curve(count: u64) -> impl Iterator<Item = f64> {
    #[expect(clippy::cast_precision_loss, reason = "a place on an axis")]
    let finest = 1.0 / count.max(2) as f64;
    (0..)
        .map(|step| 0.5 * 0.8_f64.powi(step))
        .take_while(move |rest| *rest >= finest)
        .map(|rest| 1.0 - rest)
}

/// One phase of load.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Load {
    /// Messages per second asked for; none in a closed loop.
    pub rate_wanted: Option<u64>,
    /// Seconds measured.
    pub seconds: f64,
    /// ACK(saved) per second.
    pub saved_per_second: f64,
    /// Pushes per second.
    pub pushed_per_second: f64,
    /// Messages reported as delivered per second.
    pub delivered_per_second: f64,
    /// From when a message was due to its ACK(saved).
    pub saved: Percentiles,
    /// From when a message was due to its push at the receiver.
    pub pushed: Percentiles,
    /// From when a message was due to the receipt of its delivery.
    pub delivered: Percentiles,
    /// From when a group's message was due to its push at the last member.
    pub all: Percentiles,
    /// From when a message was due to its ACK(accepted).
    pub accepted: Percentiles,
    /// Processor seconds the server used while it was measured, if its process is known.
    pub cpu_seconds: Option<f64>,
    /// What came per second, in steps of [`Load::STEP_MS`]: for a plot.
    #[serde(skip)]
    pub over_time: Vec<f64>,
    /// What happened.
    pub counters: Counters,
}

impl Load {
    /// Milliseconds of a step of `over_time`.
    pub const STEP_MS: u64 = 250;

    /// Pushes per second of the server's processor time.
    pub fn pushed_per_core(&self) -> Option<f64> {
        let cores = self.cpu_seconds? / self.seconds;
        Some(self.pushed_per_second / cores).filter(|rate| rate.is_finite())
    }
}

/// A histogram of nanoseconds up to two hours, with three digits.
pub(crate) fn histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_max(7200 * 1_000_000_000, 3)?)
}

#[derive(Debug)]
struct Step {
    latency: Histogram<u64>,
    /// Those that came while it was measured, whenever they were due.
    arrived: Arrived,
}

/// What came, by steps of time.
#[derive(Debug, Default)]
struct Arrived {
    steps: Vec<u64>,
}

impl Arrived {
    fn count(&mut self, at: u64) {
        let step = usize::try_from(at / (Load::STEP_MS * 1_000_000)).unwrap_or(usize::MAX);
        if step >= self.steps.len() {
            self.steps.resize(step + 1, 0);
        }
        self.steps[step] += 1;
    }

    fn add(&mut self, other: &Self) {
        let length = self.steps.len().max(other.steps.len());
        self.steps.resize(length, 0);
        self.steps.iter_mut().zip(&other.steps).for_each(|(step, more)| *step += more);
    }

    /// Per second, of each step. The last step may be cut short, and is left out then.
    fn over_time(&self, nanos: u64) -> Vec<f64> {
        let whole = usize::try_from(nanos / (Load::STEP_MS * 1_000_000)).unwrap_or(usize::MAX);
        #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
        let rate = |count: &u64| *count as f64 * 1000.0 / Load::STEP_MS as f64;
        self.steps.iter().take(whole).map(rate).collect()
    }
}

impl Step {
    fn new() -> Result<Self> {
        Ok(Self { latency: histogram()?, arrived: Arrived::default() })
    }
}

/// All pairs' samples of one phase.
#[derive(Debug)]
pub(crate) struct Tally {
    measured: Range<u64>,
    /// By [`Way`].
    steps: Mutex<[Step; 5]>,
    /// For the progress bar: samples so far.
    seen: AtomicU64,
}

impl Tally {
    /// Measures what is due within a part of the phase.
    pub(crate) fn new(measured: Range<u64>) -> Result<Self> {
        let steps =
            Mutex::new([Step::new()?, Step::new()?, Step::new()?, Step::new()?, Step::new()?]);
        Ok(Self { measured, steps, seen: AtomicU64::new(0) })
    }

    /// Takes a pair's samples if there are enough of them.
    pub(crate) fn record_many(&self, samples: &mut Vec<Sample>) {
        if samples.len() >= LOT {
            self.record(samples);
        }
    }

    /// Takes a pair's samples.
    pub(crate) fn record(&self, samples: &mut Vec<Sample>) {
        self.seen.fetch_add(samples.len() as u64, Ordering::Relaxed);
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        for sample in samples.drain(..) {
            let step = &mut steps[sample.way as usize];
            if self.measured.contains(&sample.at) {
                step.arrived.count(sample.at - self.measured.start);
            }
            if self.measured.contains(&sample.due) {
                step.latency.saturating_record(sample.at.saturating_sub(sample.due));
            }
        }
    }

    /// Adds what another phase, at the same time, has measured.
    pub(crate) fn add(&mut self, other: Self) -> Result<()> {
        let steps = self.steps.get_mut().unwrap_or_else(PoisonError::into_inner);
        let others = other.steps.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (step, other) in steps.iter_mut().zip(others) {
            step.latency.add(&other.latency)?;
            step.arrived.add(&other.arrived);
        }
        Ok(())
    }

    /// Steps of messages so far: each is saved, pushed, and perhaps delivered.
    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// The phase is over.
    pub(crate) fn close(
        self,
        rate_wanted: Option<u64>,
        cpu_seconds: Option<f64>,
        counters: Counters,
    ) -> Load {
        let nanos = self.measured.end - self.measured.start;
        let seconds = Duration::from_nanos(nanos).as_secs_f64();
        let steps = self.steps.into_inner().unwrap_or_else(PoisonError::into_inner);
        #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
        let rate = |step: &Step| step.arrived.steps.iter().sum::<u64>() as f64 / seconds;
        Load {
            rate_wanted,
            seconds,
            saved_per_second: rate(&steps[0]),
            pushed_per_second: rate(&steps[1]),
            delivered_per_second: rate(&steps[2]),
            saved: Percentiles::of(&steps[0].latency),
            pushed: Percentiles::of(&steps[1].latency),
            delivered: Percentiles::of(&steps[2].latency),
            all: Percentiles::of(&steps[3].latency),
            accepted: Percentiles::of(&steps[4].latency),
            cpu_seconds,
            over_time: steps[1].arrived.over_time(nanos),
            counters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Way;

    #[test]
    fn percentiles_are_those_of_what_was_fed() {
        let mut histogram = histogram().unwrap();
        (1..=1000).for_each(|us| histogram.saturating_record(us * 1000));
        let found = Percentiles::of(&histogram);
        assert_eq!(found.count, 1000);
        let near = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 0.002;
        assert!(near(found.p50_us, 500.0) && near(found.p90_us, 900.0), "{found:?}");
        assert!(near(found.p99_us, 990.0) && near(found.p999_us, 999.0), "{found:?}");
        assert!(near(found.max_us, 1000.0), "{found:?}");
    }

    #[test]
    fn latency_is_of_what_was_due_and_rate_of_what_came() {
        let second = 1_000_000_000;
        let tally = Tally::new(second..3 * second).unwrap();
        let mut samples = vec![
            // Due in the warm-up, came while measured.
            Sample { way: Way::Saved, due: second / 2, at: second + 1 },
            Sample { way: Way::Saved, due: second, at: 2 * second },
            // Due while measured, came late: a stall at the end must show.
            Sample { way: Way::Saved, due: 2 * second, at: 5 * second },
            Sample { way: Way::Pushed, due: second, at: 2 * second },
        ];
        tally.record(&mut samples);
        let load = tally.close(None, None, Counters::default());
        assert!((load.saved_per_second - 1.0).abs() < 1e-9);
        assert!((load.pushed_per_second - 0.5).abs() < 1e-9);
        assert_eq!((load.saved.count, load.pushed.count, load.delivered.count), (2, 1, 0));
        assert!(load.saved.max_us > 2_990_000.0);
    }
}
