//! Keeping below a rate.
use std::time::Duration;

use tokio::time::Instant;

/// Keeps below a rate: the server ends connections that are too fast.
pub(crate) struct Pace {
    per_second: f64,
    left: f64,
    at: Instant,
}

impl Pace {
    pub(crate) fn new(now: Instant) -> Self {
        Self { per_second: 0.0, left: 0.0, at: now }
    }

    /// So many a second, zero for no limit. Stays a little below, since clocks and networks are not
    /// exact.
    pub(crate) fn limit(&mut self, per_second: u32, now: Instant) {
        let per_second = f64::from(per_second) * 0.9;
        if (per_second - self.per_second).abs() < f64::EPSILON {
            return;
        }
        *self = Self { per_second, left: per_second.max(1.0), at: now };
    }

    /// Takes one, or says how long until there is one.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        if self.per_second == 0.0 {
            return Ok(());
        }
        let earned = now.saturating_duration_since(self.at).as_secs_f64() * self.per_second;
        self.left = (self.left + earned).min(self.per_second.max(1.0));
        self.at = now;
        if self.left >= 1.0 {
            self.left -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - self.left) / self.per_second) + Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pace_is_kept_and_saves_up_for_a_second_at_most() {
        let mut pace = Pace::new(Instant::now());
        assert_eq!(pace.take(Instant::now()), Ok(()));
        pace.limit(10, Instant::now());
        let takes = |pace: &mut Pace| (0..20).filter(|_| pace.take(Instant::now()).is_ok()).count();
        assert_eq!(takes(&mut pace), 9);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(takes(&mut pace), 9);
        let wait = pace.take(Instant::now()).unwrap_err();
        tokio::time::advance(wait).await;
        assert_eq!(pace.take(Instant::now()), Ok(()));
    }
}
