//! What is unanswered of one conversation.
use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::entry::Entry;
use crate::timing::{Timing, ms};

const LONGEST_SILENCE: Duration = ms(30_000);

/// An entry on its way.
pub(crate) struct Flight {
    pub(crate) entry: Entry,
    /// When it was written …
    written_at: Instant,
    /// … and as how manyeth; 0 if it is to be written (again).
    written_as: u64,
    /// How often on this connection.
    tries: u32,
}

/// What is unanswered of one conversation, in order. The foremost of it is on the wire.
pub(crate) struct Lane {
    pub(crate) flights: BTreeMap<u64, Flight>,
    window: usize,
    /// The server was busy: until it has saved one, it is given one at a time.
    is_careful: bool,
    silence: Duration,
    /// Rounds without any answer.
    pub(crate) silences: u32,
    /// Until when an answer has to come, and how long that was to wait.
    timer: Option<(Instant, Duration)>,
    /// The server is busy: until then nothing is written.
    paused: Option<Instant>,
    busy: Backoff,
}

impl Lane {
    pub(crate) fn new(timing: &Timing) -> Self {
        Self {
            flights: BTreeMap::new(),
            window: timing.send_window,
            is_careful: false,
            silence: ms(timing.silence_ms),
            silences: 0,
            timer: None,
            paused: None,
            busy: Backoff::new(timing),
        }
    }

    pub(crate) fn enter(&mut self, entry: Entry, now: Instant) {
        let order = entry.order;
        let flight = Flight { entry, written_at: now, written_as: 0, tries: 0 };
        self.flights.insert(order, flight);
    }

    /// What to write next, if the window has room.
    pub(crate) fn next(&self) -> Option<&Entry> {
        if self.paused.is_some() {
            return None;
        }
        let window = if self.is_careful { 1 } else { self.window };
        let mut foremost = self.flights.values().take(window);
        foremost.find(|flight| flight.written_as == 0).map(|flight| &flight.entry)
    }

    /// It went out, as the `count`th of all.
    pub(crate) fn written(&mut self, order: u64, count: u64, now: Instant) {
        if let Some(flight) = self.flights.get_mut(&order) {
            (flight.written_as, flight.written_at) = (count, now);
            flight.tries += 1;
        }
        self.listen();
    }

    /// Taken, not saved: the wait for that begins now.
    pub(crate) fn accepted(&mut self, order: u64, now: Instant) {
        self.silences = 0;
        if let Some(flight) = self.flights.get_mut(&order) {
            flight.written_at = now;
        }
    }

    /// A connection answers in order: what was written before this one and is not answered got lost,
    /// and goes again. Of one that was written twice nobody knows which time is answered, so it proves
    /// nothing.
    pub(crate) fn answered(&mut self, order: u64) {
        let Some(proof) = self.flights.get(&order).filter(|proof| proof.tries == 1) else { return };
        let written_as = proof.written_as;
        for flight in self.flights.values_mut().take(self.window) {
            if flight.written_as < written_as {
                flight.written_as = 0;
            }
        }
    }

    /// Everything is to be written again, in order.
    pub(crate) fn again(&mut self) {
        self.rest();
        for flight in self.flights.values_mut() {
            flight.written_as = 0;
        }
    }

    /// The same, on a connection that has heard nothing yet.
    pub(crate) fn anew(&mut self) {
        self.again();
        for flight in self.flights.values_mut() {
            flight.tries = 0;
        }
    }

    pub(crate) fn rest(&mut self) {
        (self.timer, self.paused) = (None, None);
    }

    /// The server is busy: everything goes again, later. It says so of everything that was on the wire,
    /// which is one refusal to us.
    pub(crate) fn pause(&mut self, least: Duration, now: Instant) {
        if self.paused.is_some() {
            return;
        }
        self.again();
        self.is_careful = true;
        self.paused = Some(now + self.busy.next(least));
    }

    /// It saved one: it has time again.
    pub(crate) fn saved(&mut self) {
        self.silences = 0;
        self.is_careful = false;
        self.busy.reset();
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        [self.paused, self.timer.map(|(at, _)| at)].into_iter().flatten().min()
    }

    /// Does what is due; whether there may be something to write. After a silence everything
    /// unanswered goes again, in order, and the next silence is longer.
    pub(crate) fn tick(&mut self, now: Instant) -> bool {
        let goes_on = self.paused.take_if(|at| *at <= now).is_some();
        let Some((_, patience)) = self.timer.take_if(|(at, _)| *at <= now) else { return goes_on };
        if self.oldest().is_some_and(|oldest| oldest + patience <= now) {
            self.silences = (self.silences + 1).min(10);
            self.again();
            return true;
        }
        self.listen();
        goes_on
    }

    fn listen(&mut self) {
        let Some(oldest) = self.oldest().filter(|_| self.timer.is_none()) else { return };
        let patience = self.silence.saturating_mul(1 << self.silences).min(LONGEST_SILENCE);
        self.timer = Some((oldest + patience, patience));
    }

    /// When the one was written that waits longest for an answer.
    fn oldest(&self) -> Option<Instant> {
        let mut foremost = self.flights.values().take(self.window);
        foremost.find(|flight| flight.written_as > 0).map(|flight| flight.written_at)
    }
}
