//! The one task that owns the state.
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::backoff::Backoff;
use crate::desk::Desk;
use crate::events::{Ears, Event, State};
use crate::frames::ClientFrame;
use crate::jobs::{Inside, Job, Jobs};
use crate::link::Link;
use crate::reason::Reason;
use crate::storage::Keeper;
use crate::timing::{Timing, ms};
use crate::tokens::SignIn;

/// After a refresh that nobody answered the next one waits at least so long, and not much longer: the
/// server gives the same answer again for a minute only.
const RENEW_AGAIN: Duration = ms(500);
const RENEW_SPREAD: Duration = ms(1_000);
const RENEW_SPREAD_MAX: Duration = ms(5_000);
/// So many jobs are done before looking at the clock and telling the app what came of them.
const BATCH: usize = 256;

/// Everything a client knows. One task owns it and does one job after the other.
pub(crate) struct Core {
    pub(crate) jobs: Jobs,
    pub(crate) ears: Ears,
    pub(crate) timing: Arc<Timing>,
    pub(crate) sign_in: SignIn,
    pub(crate) link: Link,
    pub(crate) now: Instant,
    store: Keeper,
    keep: usize,
    state: watch::Sender<State>,
    /// What belongs to the person who is signed in.
    pub(crate) desk: Option<Desk>,
    /// Tells sign-ins apart.
    number: u64,
    renew_at: Option<Instant>,
    renewals: Backoff,
    is_closed: bool,
}

/// What a core needs from its client.
pub(crate) struct Parts {
    pub(crate) jobs: Jobs,
    pub(crate) ears: Ears,
    pub(crate) timing: Arc<Timing>,
    pub(crate) sign_in: SignIn,
    pub(crate) link: Link,
    pub(crate) store: Keeper,
    pub(crate) keep: usize,
    pub(crate) state: watch::Sender<State>,
}

impl Core {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { jobs, ears, timing, sign_in, link, store, keep, state } = parts;
        let (now, desk, renew_at) = (Instant::now(), None, None);
        let renewals = Backoff::between(RENEW_SPREAD, RENEW_SPREAD_MAX);
        let (number, is_closed) = (0, false);
        Self {
            jobs,
            ears,
            timing,
            sign_in,
            link,
            now,
            store,
            keep,
            state,
            desk,
            number,
            renew_at,
            renewals,
            is_closed,
        }
    }

    /// Does jobs, and what is due, until the client is closed.
    pub(crate) async fn run(mut self, mut jobs: mpsc::UnboundedReceiver<Job>) {
        while !self.is_closed {
            let due = self.due().unwrap_or_else(|| Instant::now() + ms(60_000));
            tokio::select! {
                job = jobs.recv() => {
                    self.look_at_the_clock();
                    let Some(job) = job else { break };
                    job(&mut self);
                    for _ in 0..BATCH {
                        let Ok(job) = jobs.try_recv() else { break };
                        job(&mut self);
                    }
                }
                () = sleep_until(due) => self.look_at_the_clock(),
            }
            self.tick();
        }
        self.ears.end();
    }

    /// Somebody is signed in.
    pub(crate) fn enter(&mut self, me: &str) {
        self.leave(State::Offline { retry_in: None });
        self.number += 1;
        let inside = Inside { jobs: self.jobs.clone(), number: self.number };
        let desk = Desk::new(me, self, inside, self.store.clone(), self.keep);
        self.desk.insert(desk).load();
        self.plan_renewal();
        self.start();
    }

    /// Nobody is.
    pub(crate) fn leave(&mut self, state: State) {
        if self.desk.is_some() {
            self.stop(state);
            self.desk = None;
        }
    }

    pub(crate) fn close(&mut self) {
        self.leave(State::Offline { retry_in: None });
        self.is_closed = true;
    }

    /// The desk of this sign-in, if it is still open.
    pub(crate) fn desk_of(&mut self, number: u64) -> Option<&mut Desk> {
        self.desk.as_mut().filter(|desk| desk.inside.number == number)
    }

    /// There is a newer token: an open socket should carry on with it.
    pub(crate) fn renewed(&mut self, token: &str) {
        if let Some(desk) = &self.desk {
            desk.wire.send(&ClientFrame::Reauth { token });
        }
        self.plan_renewal();
    }

    /// The sign-in is over.
    pub(crate) fn ended(&mut self, reason: Reason) {
        let is_kicked = reason == Reason::Kicked;
        let reason = Some(reason);
        self.stop(if is_kicked { State::Kicked } else { State::SignedOut { reason } });
    }

    pub(crate) fn tell_state(&self, state: State) {
        self.state.send_replace(state);
        self.ears.tell(&Event::State(state));
    }

    /// How it stands with the server, and whether somebody has signed in.
    pub(crate) fn standing(&self) -> (State, bool) {
        (*self.state.borrow(), self.desk.is_some())
    }

    fn look_at_the_clock(&mut self) {
        self.now = Instant::now();
        if let Some(desk) = &mut self.desk {
            desk.now = self.now;
        }
    }

    fn due(&self) -> Option<Instant> {
        let desk = self.desk.as_ref().and_then(Desk::due);
        [desk, self.link.due(), self.renew_at].into_iter().flatten().min()
    }

    fn tick(&mut self) {
        self.tick_link();
        if self.renew_at.take_if(|at| *at <= self.now).is_some() {
            self.renew();
        }
        if let Some(desk) = &mut self.desk {
            desk.tick();
        }
    }

    fn plan_renewal(&mut self) {
        self.renewals.reset();
        self.renew_at = self.sign_in.plan().map(|(wait, _)| self.now + wait);
    }

    fn renew(&mut self) {
        let Some((_, stale)) = self.sign_in.plan() else { return };
        let (sign_in, jobs) = (self.sign_in.clone(), self.jobs.clone());
        tokio::spawn(async move {
            if let Err(error) = sign_in.renew(&stale).await {
                let least = error.retry_after().unwrap_or_default().max(RENEW_AGAIN);
                jobs.put(move |core| core.renew_again(&stale, least));
            }
        });
    }

    fn renew_again(&mut self, stale: &str, least: Duration) {
        // Somebody may have signed in or out while we asked.
        if self.sign_in.is_current(stale) {
            self.renew_at = Some(self.now + self.renewals.next(least));
        }
    }
}
