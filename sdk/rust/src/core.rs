//! The task that owns the state.
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use crate::account_state::AccountState;
use crate::backoff::Backoff;
use crate::events::{Event, Listeners, State};
use crate::frames::ClientFrame;
use crate::jobs::{AccountJobs, Job, Jobs};
use crate::link::Link;
use crate::reason::Reason;
use crate::storage::BestEffortStore;
use crate::timing::{Timing, ms};
use crate::tokens::SignIn;

/// The minimum wait after a refresh without an answer, plus a spread. Short, since the server
/// repeats the answer for a minute only.
const RENEW_RETRY_MIN: Duration = ms(500);
const RENEW_SPREAD: Duration = ms(1_000);
const RENEW_SPREAD_MAX: Duration = ms(5_000);
/// At most this many jobs run before time is read again and changes are emitted.
const JOBS_PER_TICK: usize = 256;

/// The state of a client. One task owns it and runs one job after the other.
pub(crate) struct Core {
    pub(crate) jobs: Jobs,
    pub(crate) listeners: Listeners,
    pub(crate) timing: Arc<Timing>,
    pub(crate) sign_in: SignIn,
    pub(crate) link: Link,
    pub(crate) now: Instant,
    store: BestEffortStore,
    keep: usize,
    state: watch::Sender<State>,
    /// The state of the signed-in user.
    pub(crate) account: Option<AccountState>,
    /// The number of the current sign-in.
    account_number: u64,
    renew_at: Option<Instant>,
    renewals: Backoff,
    is_closed: bool,
}

/// What a client gives to its core.
pub(crate) struct CoreParts {
    pub(crate) jobs: Jobs,
    pub(crate) listeners: Listeners,
    pub(crate) timing: Arc<Timing>,
    pub(crate) sign_in: SignIn,
    pub(crate) link: Link,
    pub(crate) store: BestEffortStore,
    pub(crate) keep: usize,
    pub(crate) state: watch::Sender<State>,
}

impl Core {
    pub(crate) fn new(parts: CoreParts) -> Self {
        let CoreParts { jobs, listeners, timing, sign_in, link, store, keep, state } = parts;
        let (now, account, renew_at) = (Instant::now(), None, None);
        let renewals = Backoff::between(RENEW_SPREAD, RENEW_SPREAD_MAX);
        let (account_number, is_closed) = (0, false);
        Self {
            jobs,
            listeners,
            timing,
            sign_in,
            link,
            now,
            store,
            keep,
            state,
            account,
            account_number,
            renew_at,
            renewals,
            is_closed,
        }
    }

    /// Runs jobs and what is due until the client is closed.
    pub(crate) async fn run(mut self, mut jobs: mpsc::UnboundedReceiver<Job>) {
        while !self.is_closed {
            let due = self.due().unwrap_or_else(|| Instant::now() + ms(60_000));
            tokio::select! {
                job = jobs.recv() => {
                    self.update_now();
                    let Some(job) = job else { break };
                    job(&mut self);
                    for _ in 0..JOBS_PER_TICK {
                        let Ok(job) = jobs.try_recv() else { break };
                        job(&mut self);
                    }
                }
                () = sleep_until(due) => self.update_now(),
            }
            self.tick();
        }
        self.listeners.close();
    }

    /// Opens the account of the signed-in user and connects.
    pub(crate) fn open_account(&mut self, me: &str) {
        self.close_account(State::Offline { retry_in: None });
        self.account_number += 1;
        let account_jobs =
            AccountJobs { jobs: self.jobs.clone(), account_number: self.account_number };
        let account = AccountState::new(me, self, account_jobs, self.store.clone(), self.keep);
        self.account.insert(account).load();
        self.schedule_renewal();
        self.start();
    }

    /// Closes the account and the connection.
    pub(crate) fn close_account(&mut self, state: State) {
        if self.account.is_some() {
            self.stop(state);
            self.account = None;
        }
    }

    pub(crate) fn close(&mut self) {
        self.close_account(State::Offline { retry_in: None });
        self.is_closed = true;
    }

    /// The account state of this sign-in, if it is still current.
    pub(crate) fn account_of(&mut self, number: u64) -> Option<&mut AccountState> {
        self.account.as_mut().filter(|account| account.jobs.account_number == number)
    }

    /// Called with a newer token, to reauthenticate the open socket.
    pub(crate) fn on_token_renewed(&mut self, token: &str) {
        if let Some(account) = &self.account {
            account.frame_sender.send(&ClientFrame::Reauth { token });
        }
        self.schedule_renewal();
    }

    /// Called when the sign-in has ended.
    pub(crate) fn on_session_ended(&mut self, reason: Reason) {
        let is_kicked = reason == Reason::Kicked;
        let reason = Some(reason);
        self.stop(if is_kicked { State::Kicked } else { State::SignedOut { reason } });
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.send_replace(state);
        self.listeners.emit(&Event::State(state));
    }

    /// The state, and whether there is an account.
    pub(crate) fn state_and_sign_in(&self) -> (State, bool) {
        (*self.state.borrow(), self.account.is_some())
    }

    fn update_now(&mut self) {
        self.now = Instant::now();
        if let Some(account) = &mut self.account {
            account.now = self.now;
        }
    }

    fn due(&self) -> Option<Instant> {
        let account = self.account.as_ref().and_then(AccountState::due);
        [account, self.link.due(), self.renew_at].into_iter().flatten().min()
    }

    fn tick(&mut self) {
        self.tick_link();
        if self.renew_at.take_if(|at| *at <= self.now).is_some() {
            self.renew();
        }
        if let Some(account) = &mut self.account {
            account.tick();
        }
    }

    fn schedule_renewal(&mut self) {
        self.renewals.reset();
        self.renew_at = self.sign_in.next_renewal().map(|(wait, _)| self.now + wait);
    }

    fn renew(&mut self) {
        let Some((_, stale)) = self.sign_in.next_renewal() else { return };
        let (sign_in, jobs) = (self.sign_in.clone(), self.jobs.clone());
        tokio::spawn(async move {
            if let Err(error) = sign_in.renew(&stale).await {
                let least = error.retry_after().unwrap_or_default().max(RENEW_RETRY_MIN);
                jobs.put(move |core| core.retry_renewal(&stale, least));
            }
        });
    }

    fn retry_renewal(&mut self, stale: &str, least: Duration) {
        // The user may have signed in or out during the request.
        if self.sign_in.is_current(stale) {
            self.renew_at = Some(self.now + self.renewals.next(least));
        }
    }
}
