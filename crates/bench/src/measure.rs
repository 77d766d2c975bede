//! Histograms and rates.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::ledger::{Counters, Sample, Step};
use crate::schedule::nanos;
use crate::seconds::Seconds;

/// Tasks record their samples in batches of this size, so that they rarely contend for the lock.
const BATCH: usize = 64;

/// Percentiles of latencies, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// The number of samples.
    pub count: u64,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub max_us: f64,
    /// Quantiles and microseconds, from the median to the slowest, for a plot.
    #[serde(skip)]
    pub curve: Vec<(f64, f64)>,
}

impl Percentiles {
    pub(crate) fn of_times(times: impl IntoIterator<Item = Duration>) -> Result<Self> {
        let mut histogram = histogram()?;
        times.into_iter().for_each(|time| histogram.saturating_record(nanos(time)));
        Ok(Self::of(&histogram))
    }

    /// From a histogram of nanoseconds.
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

/// Quantiles from 0.5 to as near to 1 as `count` samples allow, evenly spaced on a logarithmic axis.
fn curve(count: u64) -> impl Iterator<Item = f64> {
    #[expect(clippy::cast_precision_loss, reason = "a position on an axis")]
    let finest = 1.0 / count.max(2) as f64;
    (0..)
        .map(|step| 0.5 * 0.8_f64.powi(step))
        .take_while(move |rest| *rest >= finest)
        .map(|rest| 1.0 - rest)
}

/// The figures of one phase of load.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Load {
    /// Messages per second asked for; none in a closed loop.
    pub rate_wanted: Option<u64>,
    pub seconds: f64,
    pub saved_per_second: f64,
    pub pushed_per_second: f64,
    /// Messages with a delivered receipt per second.
    pub delivered_per_second: f64,
    /// From when a message was due to its ACK(saved).
    pub saved: Percentiles,
    /// The same of the messages due in the second with the greatest p99.
    pub worst_second: Percentiles,
    /// From when a message was due to its push at the receiver.
    pub pushed: Percentiles,
    /// From when a message was due to its delivered receipt.
    pub delivered: Percentiles,
    /// From when a group's message was due to its push at the last member.
    pub all: Percentiles,
    /// From when a message was due to its ACK(accepted).
    pub accepted: Percentiles,
    /// Processor seconds the server used in the measured part, if its process is known.
    pub cpu_seconds: Option<f64>,
    /// Pushes per second, in steps of [`Load::STEP_MS`], for a plot.
    #[serde(skip)]
    pub over_time: Vec<f64>,
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
struct StepStats {
    latency: Histogram<u64>,
    /// Completed in the measured part, whenever they were due.
    arrivals: ArrivalCounts,
}

/// Counts by steps of time.
#[derive(Debug, Default)]
struct ArrivalCounts {
    steps: Vec<u64>,
}

impl ArrivalCounts {
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

    /// The rate of each step. Leaves out a last step that was cut short.
    fn over_time(&self, nanos: u64) -> Vec<f64> {
        let whole = usize::try_from(nanos / (Load::STEP_MS * 1_000_000)).unwrap_or(usize::MAX);
        #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
        let rate = |count: &u64| *count as f64 * 1000.0 / Load::STEP_MS as f64;
        self.steps.iter().take(whole).map(rate).collect()
    }
}

impl StepStats {
    fn new() -> Result<Self> {
        Ok(Self { latency: histogram()?, arrivals: ArrivalCounts::default() })
    }
}

/// Collects the samples of all tasks in one phase.
#[derive(Debug)]
pub(crate) struct Recorder {
    measured: Range<u64>,
    /// By [`Step`].
    steps: Mutex<[StepStats; 5]>,
    /// ACK(saved) by the second.
    seconds: Mutex<Seconds>,
    /// Samples so far, for the progress bar.
    seen: AtomicU64,
}

impl Recorder {
    /// `measured` is the part of the phase to measure.
    pub(crate) fn new(measured: Range<u64>) -> Result<Self> {
        let steps = Mutex::new([
            StepStats::new()?,
            StepStats::new()?,
            StepStats::new()?,
            StepStats::new()?,
            StepStats::new()?,
        ]);
        Ok(Self { measured, steps, seconds: Mutex::default(), seen: AtomicU64::new(0) })
    }

    /// Records a task's samples if there are enough for a batch.
    pub(crate) fn record_if_full(&self, samples: &mut Vec<Sample>) {
        if samples.len() >= BATCH {
            self.record(samples);
        }
    }

    /// Records a task's samples.
    pub(crate) fn record(&self, samples: &mut Vec<Sample>) {
        self.seen.fetch_add(samples.len() as u64, Ordering::Relaxed);
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seconds = self.seconds.lock().unwrap_or_else(PoisonError::into_inner);
        for sample in samples.drain(..) {
            let step = &mut steps[sample.step as usize];
            if self.measured.contains(&sample.at) {
                step.arrivals.count(sample.at - self.measured.start);
            }
            if self.measured.contains(&sample.due) {
                let latency = sample.at.saturating_sub(sample.due);
                step.latency.saturating_record(latency);
                if sample.step == Step::Saved {
                    seconds.record(sample.due - self.measured.start, latency);
                }
            }
        }
    }

    /// Adds the samples of another phase at the same time.
    pub(crate) fn add(&mut self, other: Self) -> Result<()> {
        let steps = self.steps.get_mut().unwrap_or_else(PoisonError::into_inner);
        let seconds = self.seconds.get_mut().unwrap_or_else(PoisonError::into_inner);
        seconds.add(&other.seconds.into_inner().unwrap_or_else(PoisonError::into_inner))?;
        let others = other.steps.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (step, other) in steps.iter_mut().zip(others) {
            step.latency.add(&other.latency)?;
            step.arrivals.add(&other.arrivals);
        }
        Ok(())
    }

    /// Samples so far; each message has several: saved, pushed, perhaps delivered.
    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// Ends the phase.
    pub(crate) fn close(
        self,
        rate_wanted: Option<u64>,
        cpu_seconds: Option<f64>,
        counters: Counters,
    ) -> Load {
        let nanos = self.measured.end - self.measured.start;
        let seconds = Duration::from_nanos(nanos).as_secs_f64();
        let steps = self.steps.into_inner().unwrap_or_else(PoisonError::into_inner);
        let worst_second =
            self.seconds.into_inner().unwrap_or_else(PoisonError::into_inner).worst();
        #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
        let rate = |step: &StepStats| step.arrivals.steps.iter().sum::<u64>() as f64 / seconds;
        Load {
            rate_wanted,
            seconds,
            saved_per_second: rate(&steps[0]),
            pushed_per_second: rate(&steps[1]),
            delivered_per_second: rate(&steps[2]),
            saved: Percentiles::of(&steps[0].latency),
            worst_second,
            pushed: Percentiles::of(&steps[1].latency),
            delivered: Percentiles::of(&steps[2].latency),
            all: Percentiles::of(&steps[3].latency),
            accepted: Percentiles::of(&steps[4].latency),
            cpu_seconds,
            over_time: steps[1].arrivals.over_time(nanos),
            counters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let recorder = Recorder::new(second..3 * second).unwrap();
        let mut samples = vec![
            // Due in the warm-up, completed in the measured part.
            Sample { step: Step::Saved, due: second / 2, at: second + 1 },
            Sample { step: Step::Saved, due: second, at: 2 * second },
            // Due in the measured part, completed late: a stall at the end must show.
            Sample { step: Step::Saved, due: 2 * second, at: 5 * second },
            Sample { step: Step::Pushed, due: second, at: 2 * second },
        ];
        recorder.record(&mut samples);
        let load = recorder.close(None, None, Counters::default());
        assert!((load.saved_per_second - 1.0).abs() < 1e-9);
        assert!((load.pushed_per_second - 0.5).abs() < 1e-9);
        assert_eq!((load.saved.count, load.pushed.count, load.delivered.count), (2, 1, 0));
        assert!(load.saved.max_us > 2_990_000.0);
    }
}
