//! Exponential backoff.
use std::time::Duration;

use crate::clock;
use crate::timing::{Timing, ms};

/// Exponential backoff with full jitter, so that many clients spread out.
pub(crate) struct Backoff {
    base: Duration,
    max: Duration,
    tries: u32,
    random: fn() -> f64,
}

impl Backoff {
    pub(crate) fn new(timing: &Timing) -> Self {
        Self::between(ms(timing.backoff_base_ms), ms(timing.backoff_max_ms))
    }

    pub(crate) fn between(base: Duration, max: Duration) -> Self {
        Self { base, max, tries: 0, random: clock::random_fraction }
    }

    /// The next wait; at least `least`.
    pub(crate) fn next(&mut self, least: Duration) -> Duration {
        let bound = self.base.saturating_mul(1 << self.tries.min(30)).min(self.max);
        self.tries += 1;
        least + bound.mul_f64((self.random)())
    }

    pub(crate) fn reset(&mut self) {
        self.tries = 0;
    }
}

/// What to do after a close code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterClose {
    Reconnect,
    Refresh,
    GiveUp,
}

/// 41xx: refresh the token first. 44xx: do not reconnect. Anything else: reconnect with backoff.
pub(crate) fn after_close(code: u16) -> AfterClose {
    match code {
        4100..4200 => AfterClose::Refresh,
        4400..4500 => AfterClose::GiveUp,
        _ => AfterClose::Reconnect,
    }
}

/// The minimum wait after a close for exceeding a limit.
pub(crate) fn least_wait(code: u16) -> Duration {
    if matches!(code, 4029 | 4030) { ms(1000) } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::{Close, Reason};

    #[test]
    fn waits_double_up_to_a_bound_and_are_spread_between_nothing_and_it() {
        let timing = Timing { backoff_base_ms: 100, backoff_max_ms: 500, ..Timing::default() };
        let mut backoff = Backoff::new(&timing);
        backoff.random = || 1.0;
        let waits: Vec<Duration> = (0..5).map(|_| backoff.next(Duration::ZERO)).collect();
        assert_eq!(waits, [100, 200, 400, 500, 500].map(ms));
        backoff.random = || 0.0;
        assert_eq!(backoff.next(Duration::ZERO), Duration::ZERO);
        assert_eq!(backoff.next(ms(1000)), ms(1000));
        backoff.reset();
        backoff.random = || 0.5;
        assert_eq!(backoff.next(Duration::ZERO), ms(50));
    }

    #[test]
    fn chance_is_below_one() {
        let mut backoff = Backoff::new(&Timing::default());
        for _ in 0..100 {
            assert!(backoff.next(Duration::ZERO) < ms(30_000));
        }
    }

    #[test]
    fn every_reason_that_ends_a_connection_says_what_to_do_next() {
        for reason in Reason::ALL {
            let Close::Ends(code) = reason.close() else { continue };
            if reason.may_retry() {
                assert_eq!(after_close(code), AfterClose::Reconnect, "{reason}");
            }
        }
        assert_eq!(after_close(4100), AfterClose::Refresh);
        assert_eq!(after_close(4403), AfterClose::GiveUp);
        assert_eq!(after_close(4400), AfterClose::GiveUp);
        assert_eq!(after_close(1006), AfterClose::Reconnect);
        assert_eq!(least_wait(4029), ms(1000));
    }
}
