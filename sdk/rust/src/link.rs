//! Keeps the client connected.
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::backoff::{AfterClose, Backoff, after_close, least_wait};
use crate::core::Core;
use crate::dial::Server;
use crate::error::Error;
use crate::events::State;
use crate::frames::{Limits, ServerFrame};
use crate::jobs::{AccountJobs, Jobs};
use crate::reason::Reason;
use crate::socket::{self, CloseStatus};
use crate::sync;
use crate::timing::{Timing, ms};
use crate::tokens::SignIn;

/// This many frames may wait for the core; more wait in the socket's buffer (backpressure).
const UNHANDLED_FRAMES_MAX: usize = 256;

/// The state of the reconnect loop.
pub(crate) struct Link {
    server: Arc<Server>,
    is_wanted: bool,
    is_online: bool,
    /// The number of the current attempt: callbacks of an abandoned one are ignored.
    attempt_number: u64,
    /// Frames to the socket of the current attempt. Dropping it ends the attempt.
    outgoing: Option<mpsc::UnboundedSender<String>>,
    /// When the next attempt starts, and the stale token it must replace.
    next: Option<(Instant, Option<String>)>,
    /// From then on the connection counts as stable, and the backoff is reset.
    stable_at: Option<Instant>,
    backoff: Backoff,
}

impl Link {
    pub(crate) fn new(server: Arc<Server>, timing: &Timing) -> Self {
        Self {
            server,
            is_wanted: false,
            is_online: false,
            attempt_number: 0,
            outgoing: None,
            next: None,
            stable_at: None,
            backoff: Backoff::new(timing),
        }
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        [self.next.as_ref().map(|(at, _)| *at), self.stable_at].into_iter().flatten().min()
    }
}

/// Opens one socket after the other, as close codes allow.
impl Core {
    pub(crate) fn start(&mut self) {
        // Without a sign-in every attempt would fail.
        if !self.link.is_wanted && self.sign_in.user_id().is_some() {
            self.link.is_wanted = true;
            self.attempt(None);
        }
    }

    /// Closes the connection and does not reconnect.
    pub(crate) fn stop(&mut self, state: State) {
        self.link.is_wanted = false;
        self.drop_connection();
        self.set_state(state);
    }

    /// Connects now instead of waiting for the backoff: the network is back, or the app is visible
    /// again.
    pub(crate) fn retry_now(&mut self) {
        if let Some((_, stale)) = self.link.next.take() {
            self.link.backoff.reset();
            self.attempt(stale);
        }
    }

    pub(crate) fn is_online(&self) -> bool {
        self.link.is_online
    }

    pub(crate) fn tick_link(&mut self) {
        let now = self.now;
        if self.link.stable_at.take_if(|at| *at <= now).is_some() {
            self.link.backoff.reset();
        }
        if let Some((_, stale)) = self.link.next.take_if(|(at, _)| *at <= now) {
            self.attempt(stale);
        }
    }

    fn attempt(&mut self, stale: Option<String>) {
        let Some(account) = &self.account else { return };
        self.link.attempt_number += 1;
        let (outgoing, frames) = mpsc::unbounded_channel();
        self.link.outgoing = Some(outgoing);
        let attempt = ConnectionAttempt {
            attempt_number: self.link.attempt_number,
            stale,
            account_jobs: account.jobs.clone(),
            jobs: self.jobs.clone(),
            sign_in: self.sign_in.clone(),
            server: self.link.server.clone(),
            timing: self.timing.clone(),
        };
        self.set_state(State::Connecting);
        tokio::spawn(attempt.run(frames));
    }

    fn on_ready(&mut self, limits: &Limits) {
        self.link.is_online = true;
        self.link.stable_at = Some(self.now + ms(self.timing.stable_ms));
        self.set_state(State::Online);
        if let (Some(account), Some(outgoing)) = (&mut self.account, &self.link.outgoing) {
            account.online(limits, outgoing.clone());
        }
    }

    fn on_frame(&mut self, attempt_number: u64, frame: ServerFrame) {
        if attempt_number != self.link.attempt_number {
            return;
        }
        match (frame, &mut self.account) {
            (ServerFrame::AuthOk { limits }, _) => self.on_ready(&limits),
            (frame, Some(account)) => account.dispatch(frame),
            _ => {}
        }
    }

    /// Handles an attempt that failed before there was a socket.
    fn on_failed(&mut self, attempt_number: u64, wait: Option<Duration>, stale: Option<String>) {
        if attempt_number == self.link.attempt_number {
            self.drop_connection();
            self.schedule_attempt(wait.unwrap_or_default(), stale);
        }
    }

    fn on_closed(&mut self, attempt_number: u64, (code, reason_text): CloseStatus, token: String) {
        if attempt_number != self.link.attempt_number {
            return;
        }
        self.drop_connection();
        match after_close(code) {
            AfterClose::Refresh => self.schedule_attempt(Duration::ZERO, Some(token)),
            AfterClose::Reconnect => self.schedule_attempt(least_wait(code), None),
            AfterClose::GiveUp => {
                let reason = Reason::of(&reason_text).unwrap_or(Reason::SessionInvalid);
                if reason.ends_session() {
                    self.sign_in.end(Some(reason));
                }
                self.on_session_ended(reason); // also if the sign-in is valid: the server refuses this client
            }
        }
    }

    fn schedule_attempt(&mut self, least: Duration, stale: Option<String>) {
        let wait = self.link.backoff.next(least);
        self.link.next = Some((self.now + wait, stale));
        self.set_state(State::Offline { retry_in: Some(wait) });
    }

    fn drop_connection(&mut self) {
        self.link.attempt_number += 1;
        (self.link.outgoing, self.link.next, self.link.stable_at) = (None, None, None);
        if std::mem::take(&mut self.link.is_online)
            && let Some(account) = &mut self.account
        {
            account.offline();
        }
    }
}

/// Forwards the frames of a connection to the core.
pub(crate) struct FrameForwarder {
    attempt_number: u64,
    jobs: Jobs,
    forwarded: usize,
}

impl FrameForwarder {
    pub(crate) async fn forward(&mut self, frame: ServerFrame) {
        let attempt_number = self.attempt_number;
        self.jobs.put(move |core| core.on_frame(attempt_number, frame));
        self.forwarded += 1;
        if self.forwarded.is_multiple_of(UNHANDLED_FRAMES_MAX) {
            self.jobs.call(|_| ()).await.ok(); // waits until the core has handled it
        }
    }
}

/// One connection attempt, from getting a token to the end of the connection.
struct ConnectionAttempt {
    attempt_number: u64,
    stale: Option<String>,
    account_jobs: AccountJobs,
    jobs: Jobs,
    sign_in: SignIn,
    server: Arc<Server>,
    timing: Arc<Timing>,
}

impl ConnectionAttempt {
    async fn run(self, mut outgoing: mpsc::UnboundedReceiver<String>) {
        // Nothing is written before the client is online, so `recv` returns only when the attempt
        // is dropped.
        let prepared = tokio::select! {
            _ = outgoing.recv() => return,
            prepared = self.prepare() => prepared,
        };
        let (attempt_number, jobs) = (self.attempt_number, self.jobs);
        let token = match prepared {
            Ok(token) => token,
            Err(error) => {
                let (wait, stale) = (error.retry_after(), self.stale);
                return jobs.put(move |core| core.on_failed(attempt_number, wait, stale));
            }
        };
        let opened = tokio::select! {
            _ = outgoing.recv() => return,
            opened = socket::open(&self.server, &self.timing) => opened,
        };
        let forwarder = FrameForwarder { attempt_number, jobs: jobs.clone(), forwarded: 0 };
        let ended = match opened {
            Ok(socket) => socket.run(&token, &mut outgoing, forwarder).await,
            Err(ended) => ended,
        };
        jobs.put(move |core| core.on_closed(attempt_number, ended, token));
    }

    /// Gets a token and, once, loads the conversations: without their heads a push could not be
    /// told from a gap.
    async fn prepare(&self) -> Result<String, Error> {
        let token = match &self.stale {
            Some(stale) => self.sign_in.renew(stale).await?,
            None => self.sign_in.token().await?,
        };
        if !self.account_jobs.call(|account| account.is_ready).await? {
            sync::load_conversations(&self.account_jobs, &self.sign_in).await?;
            self.account_jobs.call(|account| account.is_ready = true).await?;
        }
        Ok(token)
    }
}
