//! A token bucket.
use std::time::Duration;

use tokio::time::Instant;

/// A token bucket that stays below the server's limits: it closes connections that exceed them.
pub(crate) struct RateLimiter {
    per_second: f64,
    available: f64,
    refilled_at: Instant,
}

impl RateLimiter {
    pub(crate) fn new(now: Instant) -> Self {
        Self { per_second: 0.0, available: 0.0, refilled_at: now }
    }

    /// Sets the rate per second; zero is no limit. It uses 90 % of it, since clocks and networks
    /// are not exact.
    pub(crate) fn set_rate(&mut self, per_second: u32, now: Instant) {
        let per_second = f64::from(per_second) * 0.9;
        if (per_second - self.per_second).abs() < f64::EPSILON {
            return;
        }
        *self = Self { per_second, available: per_second.max(1.0), refilled_at: now };
    }

    /// Takes one token, or returns how long until there is one.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        if self.per_second == 0.0 {
            return Ok(());
        }
        let earned =
            now.saturating_duration_since(self.refilled_at).as_secs_f64() * self.per_second;
        self.available = (self.available + earned).min(self.per_second.max(1.0));
        self.refilled_at = now;
        if self.available >= 1.0 {
            self.available -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - self.available) / self.per_second)
            + Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pace_is_kept_and_saves_up_for_a_second_at_most() {
        let mut pace = RateLimiter::new(Instant::now());
        assert_eq!(pace.take(Instant::now()), Ok(()));
        pace.set_rate(10, Instant::now());
        let takes =
            |pace: &mut RateLimiter| (0..20).filter(|_| pace.take(Instant::now()).is_ok()).count();
        assert_eq!(takes(&mut pace), 9);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(takes(&mut pace), 9);
        let wait = pace.take(Instant::now()).unwrap_err();
        tokio::time::advance(wait).await;
        assert_eq!(pace.take(Instant::now()), Ok(()));
    }
}
