//! Latencies by the second: a stall that percentiles of a long run do not show.

use anyhow::Result;
use hdrhistogram::Histogram;

use crate::measure::Percentiles;

const NANOS: u64 = 1_000_000_000;

/// Histograms of the messages that were due in each second.
#[derive(Debug, Default)]
pub(crate) struct Seconds(Vec<Histogram<u64>>);

impl Seconds {
    /// Records a latency. Both in nanoseconds, `due` from the beginning.
    pub(crate) fn record(&mut self, due: u64, latency: u64) {
        let second = usize::try_from(due / NANOS).unwrap_or(usize::MAX);
        while self.0.len() <= second {
            let Ok(histogram) = histogram() else { return };
            self.0.push(histogram);
        }
        self.0[second].saturating_record(latency);
    }

    /// Adds those of another phase at the same time.
    pub(crate) fn add(&mut self, other: &Self) -> Result<()> {
        while self.0.len() < other.0.len() {
            self.0.push(histogram()?);
        }
        for (second, other) in self.0.iter_mut().zip(&other.0) {
            second.add(other)?;
        }
        Ok(())
    }

    /// The second with the greatest p99.
    pub(crate) fn worst(&self) -> Percentiles {
        let p99 = |second: &&Histogram<u64>| second.value_at_quantile(0.99);
        self.0.iter().max_by_key(p99).map(Percentiles::of).unwrap_or_default()
    }
}

/// Up to a minute with two digits: there is one for each second.
fn histogram() -> Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1000, 60 * NANOS, 2)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_second_is_the_one_with_the_stall() {
        let mut seconds = Seconds::default();
        for step in 0..30 {
            let is_stalled = step / 10 == 1;
            seconds.record(step * NANOS / 10, if is_stalled { 50_000_000 } else { 1_000_000 });
        }
        let worst = seconds.worst();
        assert_eq!(worst.count, 10);
        assert!((worst.p50_us / 50_000.0 - 1.0).abs() < 0.02, "{worst:?}");
        let mut sum = Seconds::default();
        sum.add(&seconds).unwrap();
        assert_eq!(sum.worst(), worst);
    }
}
