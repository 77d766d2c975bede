//! Rate limits by token buckets, one per key. Per node, in memory, bounded.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use crate::ids::Millis;

/// Upper bound of keys; full buckets are evicted first.
const KEYS_MAX: usize = 100_000;

#[derive(Debug)]
pub struct Throttle<K> {
    /// Tokens per millisecond; zero means no limit.
    rate: f64,
    burst: f64,
    buckets: Mutex<HashMap<K, Bucket>>,
}

/// The fill level at a time.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    tokens: f64,
    at: Millis,
}

impl Bucket {
    pub fn full(burst: f64, now: Millis) -> Self {
        Self { tokens: burst, at: now }
    }

    /// Takes one token if there is one, at `rate` tokens per millisecond and at most `burst`.
    pub fn take(&mut self, rate: f64, burst: f64, now: Millis) -> bool {
        self.take_many(1.0, rate, burst, now)
    }

    /// Returns a token.
    pub(crate) fn refund(&mut self, burst: f64) {
        self.tokens = (self.tokens + 1.0).min(burst);
    }

    /// Whether no token is missing.
    pub(crate) fn is_full(&self, rate: f64, burst: f64, now: Millis) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "no interval reaches 2⁵³ ms")]
        let refilled = self.tokens + now.since(self.at) as f64 * rate;
        refilled >= burst
    }

    fn take_many(&mut self, wanted: f64, rate: f64, burst: f64, now: Millis) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "no interval reaches 2⁵³ ms")]
        let refilled = self.tokens + now.since(self.at) as f64 * rate;
        self.tokens = refilled.min(burst);
        self.at = now;
        let enough = self.tokens >= wanted;
        if enough {
            self.tokens -= wanted;
        }
        enough
    }
}

impl<K: Hash + Eq> Throttle<K> {
    /// Allows `rate` per second and `burst` at once. A rate of zero means no limit.
    pub fn per_second(rate: u32, burst: u32) -> Self {
        Self {
            rate: f64::from(rate) / 1000.0,
            burst: f64::from(burst.max(1)),
            buckets: Mutex::new(HashMap::new()),
        }
    }

    /// Allows `rate` per minute, all of them at once. Zero means no limit.
    pub fn per_minute(rate: u32) -> Self {
        Self { rate: f64::from(rate) / 60_000.0, ..Self::per_second(1, rate) }
    }

    /// Allows `rate` per hour, all of them at once. Zero means no limit.
    pub fn per_hour(rate: u32) -> Self {
        Self { rate: f64::from(rate) / 3_600_000.0, ..Self::per_second(1, rate) }
    }

    /// Takes one token; `false` if none is left.
    pub fn take(&self, key: K, now: Millis) -> bool {
        self.with(key, now, |bucket, rate, burst| bucket.take(rate, burst, now))
    }

    /// Takes several tokens for an expensive operation, capped at a whole burst.
    pub fn take_many(&self, key: K, count: usize, now: Millis) -> bool {
        let wanted = f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        self.with(key, now, |bucket, rate, burst| {
            bucket.take_many(wanted.min(burst), rate, burst, now)
        })
    }

    fn with(&self, key: K, now: Millis, act: impl FnOnce(&mut Bucket, f64, f64) -> bool) -> bool {
        if self.rate == 0.0 {
            return true;
        }
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= KEYS_MAX && !buckets.contains_key(&key) {
            let (rate, burst) = (self.rate, self.burst);
            buckets.retain(|_, bucket| !bucket.is_full(rate, burst, now));
            if buckets.len() >= KEYS_MAX {
                buckets.clear(); // better than refusing every new key
            }
        }
        let bucket = buckets.entry(key).or_insert_with(|| Bucket::full(self.burst, now));
        act(bucket, self.rate, self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate() {
        let throttle = Throttle::per_second(10, 3);
        let taken = |at| throttle.take("k", Millis(at));
        assert_eq!([taken(0), taken(0), taken(0), taken(0)], [true, true, true, false]);
        assert_eq!([taken(100), taken(100)], [true, false]);
        assert!(throttle.take("other", Millis(100)));
        assert!(taken(10_000));
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing_and_takes_nothing() {
        let throttle = Throttle::per_second(10, 1);
        assert!(throttle.take("k", Millis(1000)));
        assert!(!throttle.take("k", Millis(0)));
        assert!(throttle.take("k", Millis(100)));
    }

    #[test]
    fn zero_is_no_limit() {
        let throttle = Throttle::per_second(0, 0);
        assert!((0..1000).all(|_| throttle.take("k", Millis(0))));
    }
}
