//! Wall-clock time that does not go back while the node runs, for what must not become possible again when
//! somebody sets the clock back.

use std::sync::{Mutex, PoisonError};

use crate::clock::Clock;
use crate::ids::Millis;

#[derive(Debug, Default)]
pub(crate) struct SteadyTime {
    /// The latest time, and the ticks at that moment.
    latest: Mutex<Option<(Millis, Millis)>>,
}

impl SteadyTime {
    /// The wall clock's time; if the clock went back, the time it would show without that.
    pub(crate) fn now(&self, clock: &dyn Clock) -> Millis {
        let (now, ticks) = (clock.now(), clock.ticks());
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let expected = latest.map_or(now, |(then, at)| then.plus(ticks.since(at)));
        let steady = now.max(expected);
        *latest = Some((steady, ticks));
        steady
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::Boxed;

    #[derive(Default)]
    struct TwoClocks {
        wall: AtomicU64,
        ticks: AtomicU64,
    }

    impl Clock for TwoClocks {
        fn now(&self) -> Millis {
            Millis(self.wall.load(Ordering::Relaxed))
        }

        fn ticks(&self) -> Millis {
            Millis(self.ticks.load(Ordering::Relaxed))
        }

        fn sleep(&self, _ms: u64) -> Boxed<'static, ()> {
            Box::pin(std::future::ready(()))
        }
    }

    #[test]
    fn it_goes_on_by_ticks_when_the_clock_goes_back() {
        let (time, clock) = (SteadyTime::default(), TwoClocks::default());
        for (wall, ticks, expect) in [
            (1_000_000, 5, 1_000_000),
            (1_000_100, 105, 1_000_100),
            (900_000, 205, 1_000_200), // set back
            (900_700, 905, 1_000_900),
            (2_000_000, 1_000, 2_000_000), // set forward
        ] {
            clock.wall.store(wall, Ordering::Relaxed);
            clock.ticks.store(ticks, Ordering::Relaxed);
            assert_eq!(time.now(&clock), Millis(expect), "{wall}");
        }
    }
}
