//! The small beside the large, in turns: a shared machine's noise meets both.

use anyhow::Result;
use serde::Serialize;

/// Which of two things is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Small,
    Large,
}

/// What the same act costs with little and with much.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What is done.
    pub act: String,
    /// The small one.
    pub small: String,
    /// The large one.
    pub large: String,
    /// Microseconds with the small one, the median of the rounds.
    pub small_us: f64,
    /// Microseconds with the large one, the median of the rounds.
    pub large_us: f64,
    /// Large ÷ small, the median of the rounds' own ratios.
    pub ratio: f64,
}

/// Names of a comparison: the act, the small one, the large one.
pub(super) type Names = (&'static str, String, String);

/// Measures both sides in turns, after one turn of each that does not count.
pub(super) async fn in_turns(
    (act, small, large): Names,
    rounds: usize,
    mut measure: impl AsyncFnMut(Side) -> Result<f64>,
) -> Result<Comparison> {
    measure(Side::Small).await?;
    measure(Side::Large).await?;
    let mut pairs = Vec::with_capacity(rounds);
    for round in 0..rounds {
        // Whoever goes second finds a warmer machine, so they take turns at that too.
        let pair = if round % 2 == 0 {
            let small = measure(Side::Small).await?;
            (small, measure(Side::Large).await?)
        } else {
            let large = measure(Side::Large).await?;
            (measure(Side::Small).await?, large)
        };
        pairs.push(pair);
    }
    Ok(Comparison::of((act, small, large), &pairs))
}

impl Comparison {
    /// From pairs of microseconds, small and large, each taken at about the same time.
    pub(super) fn of((act, small, large): Names, pairs: &[(f64, f64)]) -> Self {
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

/// The middle one; of an even number the lower of the two.
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
