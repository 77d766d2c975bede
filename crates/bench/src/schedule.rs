//! When each task may send, and when a phase is over.
//!
//! One thread wakes the tasks that have a message due. The runtime's own timers round up to a
//! millisecond, which is as long as what is measured.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;

use crate::options::{Flow, Span};

/// How long after the grace period the timer waits for tasks that have not finished.
const HOPE: Duration = Duration::from_secs(5);
/// How long to wait for duplicates after the last answer.
const SETTLE: Duration = Duration::from_millis(200);
/// Open loop: how late a task may be woken.
const BEAT: Duration = Duration::from_micros(100);
/// Closed loop: sockets wake their tasks, and the timer only ends the phase.
const SLOW_BEAT: Duration = Duration::from_millis(10);
/// Open loop: messages one sender may have in flight when no answers come.
const OPEN_WINDOW: u64 = 1024;
/// A sender waits for receivers that are this many windows behind.
const PUSH_WINDOWS: u64 = 16;

/// The tasks of a phase; the first ones send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Participants {
    pub(crate) tasks: usize,
    pub(crate) senders: usize,
}

/// The times of one phase, in nanoseconds since it began.
#[derive(Debug)]
pub(crate) struct Schedule {
    began: Instant,
    measured: Range<u64>,
    /// How long to wait for answers after the last message.
    grace: u64,
    window: u64,
    rate: Option<SendRate>,
    senders: u64,
    tasks: Box<[AtomicWaker]>,
    finished: AtomicUsize,
}

impl Schedule {
    /// A phase that begins now.
    pub(crate) fn begin(participants: Participants, span: &Span, flow: &Flow) -> Self {
        let end = span.warmup + span.duration;
        let rate = flow.rate.map(|per_second| SendRate { per_second, burst: flow.burst });
        Self {
            began: Instant::now(),
            measured: nanos(span.warmup)..nanos(end),
            grace: nanos(span.grace),
            window: if rate.is_some() { OPEN_WINDOW } else { flow.window },
            rate,
            senders: participants.senders as u64,
            tasks: (0..participants.tasks).map(|_| AtomicWaker::new()).collect(),
            finished: AtomicUsize::new(0),
        }
    }

    /// Nanoseconds since the phase began.
    pub(crate) fn now(&self) -> u64 {
        nanos(self.began.elapsed())
    }

    /// The part of the phase that is measured.
    pub(crate) fn measured(&self) -> Range<u64> {
        self.measured.clone()
    }

    /// When message number `count` of this sender is due, if it may be sent by `now` with so many
    /// messages unanswered and not pushed.
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
            Some(rate) => rate.due(count * self.senders + pair as u64),
        };
        // Send a message that was due before the end even if it is late: skipping it would hide
        // the stall that made it late.
        let in_time = due < self.measured.end;
        (room && due <= now && in_time).then_some(due)
    }

    /// Whether a task is done.
    pub(crate) fn is_over(&self, now: u64, settled: bool) -> bool {
        let end = self.measured.end;
        now >= end + self.grace || (settled && now >= end + nanos(SETTLE))
    }

    /// Registers the waker of a task, to wake it when a message is due.
    pub(crate) fn register_waker(&self, pair: usize, waker: &Waker) {
        self.tasks[pair].register(waker);
    }

    /// Wakes a task whose window may have room again.
    pub(crate) fn wake_task(&self, pair: usize) {
        self.tasks[pair].wake();
    }

    pub(crate) fn task_finished(&self) {
        self.finished.fetch_add(1, Ordering::Relaxed);
    }

    /// Wakes tasks when their messages are due, until all tasks are done. Blocks its thread, but ends
    /// soon after the phase even if a task died.
    pub(crate) fn run_timer(&self) {
        let mut next = 0;
        let last = self.measured.end + self.grace + nanos(HOPE);
        while self.finished.load(Ordering::Relaxed) < self.tasks.len() {
            let now = self.now();
            if now > last {
                return;
            }
            let sending = now < self.measured.end;
            match self.rate {
                Some(rate) if sending => {
                    while rate.due(next) <= now {
                        let pair = next % self.senders;
                        self.tasks[usize::try_from(pair).unwrap_or_default()].wake();
                        next += 1;
                    }
                    std::thread::sleep(BEAT);
                }
                _ => {
                    if !sending {
                        self.tasks.iter().for_each(AtomicWaker::wake);
                    }
                    std::thread::sleep(SLOW_BEAT);
                }
            }
        }
    }
}

/// The send rate of an open loop.
#[derive(Clone, Copy, Debug)]
struct SendRate {
    per_second: u64,
    /// Messages that are due at the same time.
    burst: u64,
}

impl SendRate {
    /// When the message of this number, counted over all senders, is due.
    fn due(self, number: u64) -> u64 {
        let first = number - number % self.burst;
        let nanos = u128::from(first) * 1_000_000_000 / u128::from(self.per_second);
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

/// A duration in nanoseconds; 584 years fit.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn schedule(rate: Option<u64>) -> Schedule {
        burst(rate, 1)
    }

    fn burst(rate: Option<u64>, burst: u64) -> Schedule {
        let (warmup, duration) = (Duration::from_secs(1), Duration::from_secs(2));
        let span = Span { duration, warmup, ..Span::default() };
        Schedule::begin(
            Participants { tasks: 2, senders: 2 },
            &span,
            &Flow { rate, burst, ..Flow::default() },
        )
    }

    #[test]
    fn a_closed_loop_sends_while_its_window_has_room() {
        let schedule = schedule(None);
        assert_eq!(schedule.may_send(0, 0, 5, 7, 0), Some(5));
        assert_eq!(schedule.may_send(0, 0, 5, 8, 0), None);
        assert_eq!(schedule.may_send(0, 0, 5, 0, 8 * PUSH_WINDOWS), None);
        assert_eq!(schedule.may_send(0, 0, 3 * SECOND, 0, 0), None);
    }

    #[test]
    fn an_open_loop_counts_from_when_it_was_due() {
        let schedule = schedule(Some(10));
        assert_eq!(schedule.may_send(1, 0, SECOND / 20, 0, 0), None);
        assert_eq!(schedule.may_send(1, 0, SECOND, 8, 8), Some(SECOND / 10));
        assert_eq!(schedule.may_send(0, 2, SECOND, 8, 8), Some(SECOND * 4 / 10));
        // Late, but it was due before the end.
        assert_eq!(schedule.may_send(0, 14, 4 * SECOND, 8, 8), Some(SECOND * 28 / 10));
        assert_eq!(schedule.may_send(0, 15, 4 * SECOND, 8, 8), None);
    }

    #[test]
    fn a_burst_is_due_at_once() {
        let schedule = burst(Some(10), 4);
        assert_eq!(schedule.may_send(0, 1, 0, 0, 0), Some(0));
        assert_eq!(schedule.may_send(0, 2, SECOND / 3, 0, 0), None);
        assert_eq!(schedule.may_send(1, 3, SECOND, 0, 0), Some(SECOND * 4 / 10));
    }

    #[test]
    fn it_ends_in_any_case() {
        let schedule = schedule(None);
        assert!(!schedule.is_over(2 * SECOND, true));
        assert!(schedule.is_over(4 * SECOND, true));
        assert!(!schedule.is_over(4 * SECOND, false));
        assert!(schedule.is_over(9 * SECOND, false));
    }
}
