//! The unanswered entries of one conversation.
use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::outbox_entry::OutboxEntry;
use crate::timing::{Timing, ms};

const ANSWER_TIMEOUT_MAX: Duration = ms(30_000);

/// An entry that waits for its answer.
pub(crate) struct PendingSend {
    pub(crate) entry: OutboxEntry,
    /// When it was written to the socket.
    written_at: Instant,
    /// Its number among all writes; 0 if it has to be written (again).
    write_number: u64,
    /// How often it was written on this connection.
    tries: u32,
}

/// The unanswered entries of one conversation, in order. The first `window` of them are on the
/// wire.
pub(crate) struct Lane {
    pub(crate) pending: BTreeMap<u64, PendingSend>,
    window: usize,
    /// After the server was busy: one entry at a time until one is saved.
    is_one_at_a_time: bool,
    answer_timeout: Duration,
    /// How often the answer timeout has passed in a row.
    pub(crate) silent_rounds: u32,
    /// When the answer is due, and the timeout used for that.
    timer: Option<(Instant, Duration)>,
    /// Set while the server is busy: nothing is written meanwhile.
    paused_until: Option<Instant>,
    busy_backoff: Backoff,
}

impl Lane {
    pub(crate) fn new(timing: &Timing) -> Self {
        Self {
            pending: BTreeMap::new(),
            window: timing.send_window,
            is_one_at_a_time: false,
            answer_timeout: ms(timing.silence_ms),
            silent_rounds: 0,
            timer: None,
            paused_until: None,
            busy_backoff: Backoff::new(timing),
        }
    }

    pub(crate) fn enter(&mut self, entry: OutboxEntry, now: Instant) {
        let order = entry.order;
        let send = PendingSend { entry, written_at: now, write_number: 0, tries: 0 };
        self.pending.insert(order, send);
    }

    /// The next entry to write, if the window has room.
    pub(crate) fn next(&self) -> Option<&OutboxEntry> {
        if self.paused_until.is_some() {
            return None;
        }
        let window = if self.is_one_at_a_time { 1 } else { self.window };
        let mut in_window = self.pending.values().take(window);
        in_window.find(|send| send.write_number == 0).map(|send| &send.entry)
    }

    /// Records that an entry was written, as number `count` of all writes.
    pub(crate) fn written(&mut self, order: u64, count: u64, now: Instant) {
        if let Some(send) = self.pending.get_mut(&order) {
            (send.write_number, send.written_at) = (count, now);
            send.tries += 1;
        }
        self.arm_timer();
    }

    /// The server accepted it: the wait for `saved` begins now.
    pub(crate) fn accepted(&mut self, order: u64, now: Instant) {
        self.silent_rounds = 0;
        if let Some(send) = self.pending.get_mut(&order) {
            send.written_at = now;
        }
    }

    /// A connection answers in order, so entries written before this one without an answer were
    /// lost and are written again. An entry that was written twice proves nothing: the answer may
    /// be to either write.
    pub(crate) fn answered(&mut self, order: u64) {
        let Some(proof) = self.pending.get(&order).filter(|proof| proof.tries == 1) else { return };
        let write_number = proof.write_number;
        for send in self.pending.values_mut().take(self.window) {
            if send.write_number < write_number {
                send.write_number = 0;
            }
        }
    }

    /// Marks every entry to be written again, in order.
    pub(crate) fn rewrite_all(&mut self) {
        self.clear_timers();
        for send in self.pending.values_mut() {
            send.write_number = 0;
        }
    }

    /// Marks every entry to be written again on a new connection.
    pub(crate) fn restart(&mut self) {
        self.rewrite_all();
        for send in self.pending.values_mut() {
            send.tries = 0;
        }
    }

    pub(crate) fn clear_timers(&mut self) {
        (self.timer, self.paused_until) = (None, None);
    }

    /// The server is busy: everything is written again later. It refuses every entry on the wire;
    /// the first refusal pauses the lane, the others are ignored.
    pub(crate) fn pause(&mut self, least: Duration, now: Instant) {
        if self.paused_until.is_some() {
            return;
        }
        self.rewrite_all();
        self.is_one_at_a_time = true;
        self.paused_until = Some(now + self.busy_backoff.next(least));
    }

    /// The server saved an entry: it is no longer busy.
    pub(crate) fn saved(&mut self) {
        self.silent_rounds = 0;
        self.is_one_at_a_time = false;
        self.busy_backoff.reset();
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        [self.paused_until, self.timer.map(|(at, _)| at)].into_iter().flatten().min()
    }

    /// Runs what is due; returns whether there may be something to write. If no answer came in time,
    /// all unanswered entries are written again in order, and the timeout doubles.
    pub(crate) fn tick(&mut self, now: Instant) -> bool {
        let resumed = self.paused_until.take_if(|at| *at <= now).is_some();
        let Some((_, timeout)) = self.timer.take_if(|(at, _)| *at <= now) else { return resumed };
        if self.oldest_written_at().is_some_and(|oldest| oldest + timeout <= now) {
            self.silent_rounds = (self.silent_rounds + 1).min(10);
            self.rewrite_all();
            return true;
        }
        self.arm_timer();
        resumed
    }

    fn arm_timer(&mut self) {
        let Some(oldest) = self.oldest_written_at().filter(|_| self.timer.is_none()) else {
            return;
        };
        let timeout =
            self.answer_timeout.saturating_mul(1 << self.silent_rounds).min(ANSWER_TIMEOUT_MAX);
        self.timer = Some((oldest + timeout, timeout));
    }

    /// When the entry was written that has waited longest for an answer.
    fn oldest_written_at(&self) -> Option<Instant> {
        let mut in_window = self.pending.values().take(self.window);
        in_window.find(|send| send.write_number > 0).map(|send| send.written_at)
    }
}
