//! Who may send when, and when it is over.
//!
//! One thread keeps the beat and wakes the pairs that have something due. The runtime's own timers
//! would do, but they round up to a millisecond, which is as much as what is to be measured.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;

use crate::options::PrivateOptions;

/// How long a pair that says nothing is believed to be alive after the grace.
const HOPE: Duration = Duration::from_secs(5);
/// How long duplicates are awaited after the last answer.
const SETTLE: Duration = Duration::from_millis(200);
/// Open loop: how late a pair may be woken.
const BEAT: Duration = Duration::from_micros(100);
/// Closed loop: pairs wake by themselves, only the end must be noticed.
const SLOW_BEAT: Duration = Duration::from_millis(10);
/// A pair whose answers do not come at all keeps no more than this under way.
const OPEN_WINDOW: u64 = 1024;
/// A sender waits for a receiver that is so many windows behind.
const PUSH_WINDOWS: u64 = 16;

/// The times of one phase, in nanoseconds since it began.
#[derive(Debug)]
pub(crate) struct Plan {
    began: Instant,
    measured: Range<u64>,
    /// How long answers are awaited after the last message.
    grace: u64,
    window: u64,
    rate: Option<u64>,
    pairs: Box<[AtomicWaker]>,
    finished: AtomicUsize,
}

impl Plan {
    /// A phase that begins now.
    pub(crate) fn begin(pairs: usize, rate: Option<u64>, options: &PrivateOptions) -> Self {
        let end = options.warmup + options.duration;
        Self {
            began: Instant::now(),
            measured: nanos(options.warmup)..nanos(end),
            grace: nanos(options.grace),
            window: if rate.is_some() { OPEN_WINDOW } else { options.window },
            rate,
            pairs: (0..pairs).map(|_| AtomicWaker::new()).collect(),
            finished: AtomicUsize::new(0),
        }
    }

    /// The time.
    pub(crate) fn now(&self) -> u64 {
        nanos(self.began.elapsed())
    }

    /// The part of the phase that is measured.
    pub(crate) fn measured(&self) -> Range<u64> {
        self.measured.clone()
    }

    /// When the pair's message number `count` of this phase is due, if it may be sent by `now` with
    /// so many unanswered and not pushed.
    pub(crate) fn may_send(
        &self,
        pair: usize,
        count: u64,
        now: u64,
        unanswered: u64,
        unpushed: u64,
    ) -> Option<u64> {
        let room = unanswered < self.window && unpushed < self.window * PUSH_WINDOWS;
        let due = match self.rate {
            None => now,
            Some(rate) => due(count * self.pairs.len() as u64 + pair as u64, rate),
        };
        // A message due before the end is sent even if it is late: leaving it out would hide
        // the stall that made it late.
        let in_time = due < self.measured.end;
        (room && due <= now && in_time).then_some(due)
    }

    /// Whether a pair is done.
    pub(crate) fn over(&self, now: u64, settled: bool) -> bool {
        let end = self.measured.end;
        now >= end + self.grace || (settled && now >= end + nanos(SETTLE))
    }

    /// Wakes this task when its pair has something due.
    pub(crate) fn wake(&self, pair: usize, waker: &Waker) {
        self.pairs[pair].register(waker);
    }

    /// A pair is done.
    pub(crate) fn finished(&self) {
        self.finished.fetch_add(1, Ordering::Relaxed);
    }

    /// Keeps the beat until all pairs are done; blocks its thread, but never for long after the
    /// end, even if a pair is gone without a word.
    pub(crate) fn beat(&self) {
        let mut next = 0;
        let last = self.measured.end + self.grace + nanos(HOPE);
        while self.finished.load(Ordering::Relaxed) < self.pairs.len() {
            let now = self.now();
            if now > last {
                return;
            }
            let sending = now < self.measured.end;
            match self.rate {
                Some(rate) if sending => {
                    while due(next, rate) <= now {
                        let pair = next % self.pairs.len() as u64;
                        self.pairs[usize::try_from(pair).unwrap_or_default()].wake();
                        next += 1;
                    }
                    std::thread::sleep(BEAT);
                }
                _ => {
                    if !sending {
                        self.pairs.iter().for_each(AtomicWaker::wake);
                    }
                    std::thread::sleep(SLOW_BEAT);
                }
            }
        }
    }
}

/// When the message of this number is due, counted over all pairs.
fn due(number: u64, rate: u64) -> u64 {
    let nanos = u128::from(number) * 1_000_000_000 / u128::from(rate);
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

/// A duration in nanoseconds; 584 years fit.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn plan(rate: Option<u64>) -> Plan {
        let options = PrivateOptions {
            warmup: Duration::from_secs(1),
            duration: Duration::from_secs(2),
            ..PrivateOptions::default()
        };
        Plan::begin(2, rate, &options)
    }

    #[test]
    fn a_closed_loop_sends_while_its_window_has_room() {
        let plan = plan(None);
        assert_eq!(plan.may_send(0, 0, 5, 7, 0), Some(5));
        assert_eq!(plan.may_send(0, 0, 5, 8, 0), None);
        assert_eq!(plan.may_send(0, 0, 5, 0, 8 * PUSH_WINDOWS), None);
        assert_eq!(plan.may_send(0, 0, 3 * SECOND, 0, 0), None);
    }

    #[test]
    fn an_open_loop_counts_from_when_it_was_due() {
        let plan = plan(Some(10));
        assert_eq!(plan.may_send(1, 0, SECOND / 20, 0, 0), None);
        assert_eq!(plan.may_send(1, 0, SECOND, 8, 8), Some(SECOND / 10));
        assert_eq!(plan.may_send(0, 2, SECOND, 8, 8), Some(SECOND * 4 / 10));
        // Late, but it was due before the end.
        assert_eq!(plan.may_send(0, 14, 4 * SECOND, 8, 8), Some(SECOND * 28 / 10));
        assert_eq!(plan.may_send(0, 15, 4 * SECOND, 8, 8), None);
    }

    #[test]
    fn it_ends_in_any_case() {
        let plan = plan(None);
        assert!(!plan.over(2 * SECOND, true));
        assert!(plan.over(4 * SECOND, true));
        assert!(!plan.over(4 * SECOND, false));
        assert!(plan.over(9 * SECOND, false));
    }
}
