//! Measures small and large alternately, so that noise of a shared machine affects both.

use anyhow::Result;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    Small,
    Large,
}

/// The cost of the same operation at two scales.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The operation.
    pub act: String,
    /// Describes the small side.
    pub small: String,
    /// Describes the large side.
    pub large: String,
    /// Microseconds, the median of the rounds.
    pub small_us: f64,
    /// Microseconds, the median of the rounds.
    pub large_us: f64,
    /// Large ÷ small, the median of the rounds' own ratios.
    pub ratio: f64,
}

/// Names of a comparison: the operation, the small side, the large side.
pub(super) type ComparisonNames = (&'static str, String, String);

/// Measures both sides alternately, after a warm-up of each that does not count.
pub(super) async fn compare_alternating(
    (act, small, large): ComparisonNames,
    rounds: usize,
    mut measure: impl AsyncFnMut(Scale) -> Result<f64>,
) -> Result<Comparison> {
    measure(Scale::Small).await?;
    measure(Scale::Large).await?;
    let mut pairs = Vec::with_capacity(rounds);
    for round in 0..rounds {
        // The second measurement finds warmer caches, so the order alternates too.
        let pair = if round % 2 == 0 {
            let small = measure(Scale::Small).await?;
            (small, measure(Scale::Large).await?)
        } else {
            let large = measure(Scale::Large).await?;
            (measure(Scale::Small).await?, large)
        };
        pairs.push(pair);
    }
    Ok(Comparison::of((act, small, large), &pairs))
}

impl Comparison {
    /// From pairs of microseconds, small and large, each taken at about the same time.
    pub(super) fn of((act, small, large): ComparisonNames, pairs: &[(f64, f64)]) -> Self {
        Self {
            act: act.to_owned(),
            small,
            large,
            small_us: median(pairs.iter().map(|pair| pair.0)),
            large_us: median(pairs.iter().map(|pair| pair.1)),
            ratio: median(pairs.iter().map(|(small, large)| large / small)),
        }
    }
}

/// The median; of an even number the lower of the two in the middle.
pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_round_of_both_does_not_count() {
        let pairs = [(10.0, 11.0), (100.0, 110.0), (10.0, 11.0)];
        let names = ("send", "little".to_owned(), "much".to_owned());
        let found = Comparison::of(names, &pairs);
        assert!((found.small_us - 10.0).abs() < 1e-9 && (found.ratio - 1.1).abs() < 1e-9);
        assert!((median([3.0, 1.0].into_iter()) - 1.0).abs() < 1e-9);
        assert!(median([].into_iter()).abs() < 1e-9);
    }
}
