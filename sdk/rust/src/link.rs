//! Staying connected.
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
use crate::jobs::{Inside, Jobs};
use crate::reason::Reason;
use crate::socket::{self, Ended};
use crate::sync;
use crate::timing::{Timing, ms};
use crate::tokens::SignIn;

/// So many frames wait to be looked at; the others wait on the wire.
const AHEAD_MAX: usize = 256;

/// Where it stands with staying connected.
pub(crate) struct Link {
    server: Arc<Server>,
    is_wanted: bool,
    is_online: bool,
    /// Tells tries apart, so that one that was given up changes nothing.
    round: u64,
    /// To the socket, or to what becomes one; without it the try ends.
    line: Option<mpsc::UnboundedSender<String>>,
    /// The next try, and the token that is too old for it.
    next: Option<(Instant, Option<String>)>,
    /// From then on it was a good connection.
    stable: Option<Instant>,
    backoff: Backoff,
}

impl Link {
    pub(crate) fn new(server: Arc<Server>, timing: &Timing) -> Self {
        Self {
            server,
            is_wanted: false,
            is_online: false,
            round: 0,
            line: None,
            next: None,
            stable: None,
            backoff: Backoff::new(timing),
        }
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        [self.next.as_ref().map(|(at, _)| *at), self.stable].into_iter().flatten().min()
    }
}

/// Opens one socket after the other, as close codes allow.
impl Core {
    pub(crate) fn start(&mut self) {
        // Without a sign-in every try would fail.
        if !self.link.is_wanted && self.sign_in.user_id().is_some() {
            self.link.is_wanted = true;
            self.attempt(None);
        }
    }

    /// Ends the connection and stays away.
    pub(crate) fn stop(&mut self, state: State) {
        self.link.is_wanted = false;
        self.hang_up();
        self.tell_state(state);
    }

    /// The network is back, or somebody looks: tries now if it was waiting.
    pub(crate) fn hurry(&mut self) {
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
        if self.link.stable.take_if(|at| *at <= now).is_some() {
            self.link.backoff.reset();
        }
        if let Some((_, stale)) = self.link.next.take_if(|(at, _)| *at <= now) {
            self.attempt(stale);
        }
    }

    fn attempt(&mut self, stale: Option<String>) {
        let Some(desk) = &self.desk else { return };
        self.link.round += 1;
        let (line, said) = mpsc::unbounded_channel();
        self.link.line = Some(line);
        let visit = Visit {
            round: self.link.round,
            stale,
            inside: desk.inside.clone(),
            jobs: self.jobs.clone(),
            sign_in: self.sign_in.clone(),
            server: self.link.server.clone(),
            timing: self.timing.clone(),
        };
        self.tell_state(State::Connecting);
        tokio::spawn(visit.run(said));
    }

    fn ready(&mut self, limits: &Limits) {
        self.link.is_online = true;
        self.link.stable = Some(self.now + ms(self.timing.stable_ms));
        self.tell_state(State::Online);
        if let (Some(desk), Some(line)) = (&mut self.desk, &self.link.line) {
            desk.online(limits, line.clone());
        }
    }

    fn heard(&mut self, round: u64, frame: ServerFrame) {
        if round != self.link.round {
            return;
        }
        match (frame, &mut self.desk) {
            (ServerFrame::AuthOk { limits }, _) => self.ready(&limits),
            (frame, Some(desk)) => desk.hear(frame),
            _ => {}
        }
    }

    /// There was no socket.
    fn failed(&mut self, round: u64, wait: Option<Duration>, stale: Option<String>) {
        if round == self.link.round {
            self.hang_up();
            self.later(wait.unwrap_or_default(), stale);
        }
    }

    fn closed(&mut self, round: u64, (code, word): Ended, token: String) {
        if round != self.link.round {
            return;
        }
        self.hang_up();
        match after_close(code) {
            AfterClose::Refresh => self.later(Duration::ZERO, Some(token)),
            AfterClose::Reconnect => self.later(least_wait(code), None),
            AfterClose::GiveUp => {
                let reason = Reason::of(&word).unwrap_or(Reason::SessionInvalid);
                if reason.ends_session() {
                    self.sign_in.end(Some(reason));
                }
                self.ended(reason); // if the sign-in is good, the client is not
            }
        }
    }

    fn later(&mut self, least: Duration, stale: Option<String>) {
        let wait = self.link.backoff.next(least);
        self.link.next = Some((self.now + wait, stale));
        self.tell_state(State::Offline { retry_in: Some(wait) });
    }

    fn hang_up(&mut self) {
        self.link.round += 1;
        (self.link.line, self.link.next, self.link.stable) = (None, None, None);
        if std::mem::take(&mut self.link.is_online)
            && let Some(desk) = &mut self.desk
        {
            desk.offline();
        }
    }
}

/// Passes on what a connection hears.
pub(crate) struct Teller {
    round: u64,
    jobs: Jobs,
    told: usize,
}

impl Teller {
    pub(crate) async fn tell(&mut self, frame: ServerFrame) {
        let round = self.round;
        self.jobs.put(move |core| core.heard(round, frame));
        self.told += 1;
        if self.told.is_multiple_of(AHEAD_MAX) {
            self.jobs.ask(|_| ()).await.ok(); // waits until it was looked at
        }
    }
}

/// One try, from getting a token to the end of the connection.
struct Visit {
    round: u64,
    stale: Option<String>,
    inside: Inside,
    jobs: Jobs,
    sign_in: SignIn,
    server: Arc<Server>,
    timing: Arc<Timing>,
}

impl Visit {
    async fn run(self, mut line: mpsc::UnboundedReceiver<String>) {
        // Nobody writes before we are online, so that hearing something means that it is over.
        let prepared = tokio::select! {
            _ = line.recv() => return,
            prepared = self.prepare() => prepared,
        };
        let (round, jobs) = (self.round, self.jobs);
        let token = match prepared {
            Ok(token) => token,
            Err(error) => {
                let (wait, stale) = (error.retry_after(), self.stale);
                return jobs.put(move |core| core.failed(round, wait, stale));
            }
        };
        let opened = tokio::select! {
            _ = line.recv() => return,
            opened = socket::open(&self.server, &self.timing) => opened,
        };
        let teller = Teller { round, jobs: jobs.clone(), told: 0 };
        let ended = match opened {
            Ok(socket) => socket.talk(&token, &mut line, teller).await,
            Err(ended) => ended,
        };
        jobs.put(move |core| core.closed(round, ended, token));
    }

    /// A token, and once the conversations there are: pushes can then be told from holes.
    async fn prepare(&self) -> Result<String, Error> {
        let token = match &self.stale {
            Some(stale) => self.sign_in.renew(stale).await?,
            None => self.sign_in.token().await?,
        };
        if !self.inside.ask(|desk| desk.is_ready).await? {
            sync::first(&self.inside, &self.sign_in).await?;
            self.inside.ask(|desk| desk.is_ready = true).await?;
        }
        Ok(token)
    }
}
