//! Finds what is missing, by holes and by comparing heads.
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::chance;
use crate::conversation::Conversation;
use crate::desk::Desk;
use crate::error::Error;
use crate::frames::ClientFrame;
use crate::jobs::Inside;
use crate::pull;
use crate::timing::{Timing, ms};
use crate::tokens::SignIn;

/// Cursors that fit into one frame with room to spare.
const CURSORS_MAX: usize = 500;
/// So many new names are asked for one by one.
const FEW: usize = 3;

/// The way to the server.
#[derive(PartialEq, Eq)]
enum Connection {
    Gone,
    /// It has not been asked yet for what is missing.
    New,
    Asked,
}

/// What is known to be missing, and when it will be looked for.
pub(crate) struct Sync {
    connection: Connection,
    /// Heads are being compared; and once more after that.
    is_asking: bool,
    asks_again: bool,
    /// Receipts came while nobody heard them. They are not told again; names bring them.
    owes_receipts: bool,
    last_active: Instant,
    /// When names were learned.
    pub(crate) names_at: Option<Instant>,
    heads: Option<Instant>,
    quiet: Option<Instant>,
    /// Holes that may close by themselves: until when, and where the conversation was.
    waiting: HashMap<String, (Instant, (u64, u64))>,
    /// Holes that are being pulled, and those to look at again later.
    pulling: HashSet<String>,
    again: HashMap<String, Instant>,
    backoff: Backoff,
    gap_delay: Duration,
    quiet_after: Duration,
    heads_every: Duration,
}

impl Sync {
    pub(crate) fn new(timing: &Timing, now: Instant) -> Self {
        Self {
            connection: Connection::Gone,
            is_asking: false,
            asks_again: false,
            owes_receipts: false,
            last_active: now,
            names_at: None,
            heads: None,
            quiet: None,
            waiting: HashMap::new(),
            pulling: HashSet::new(),
            again: HashMap::new(),
            backoff: Backoff::new(timing),
            gap_delay: ms(timing.gap_delay_ms),
            quiet_after: ms(timing.quiet_ms),
            heads_every: ms(timing.heads_every_ms),
        }
    }

    pub(crate) fn online(&mut self) {
        self.connection = Connection::New;
    }

    pub(crate) fn offline(&mut self) {
        self.owes_receipts = true;
        (self.connection, self.asks_again) = (Connection::Gone, false);
        (self.heads, self.quiet) = (None, None);
        self.waiting.clear();
    }

    fn is_online(&self) -> bool {
        self.connection != Connection::Gone
    }

    /// Heads are compared soon. Many may ask at once.
    pub(crate) fn ask_heads(&mut self, now: Instant) {
        if self.is_asking {
            self.asks_again = self.is_online();
        } else if self.is_online() {
            self.heads = Some(now + self.gap_delay);
        }
    }

    /// Something happened: when it has become quiet, heads are compared.
    pub(crate) fn active(&mut self, now: Instant) {
        self.last_active = now;
        if self.is_online() {
            self.quiet.get_or_insert(now + self.quiet_after);
        }
    }

    /// If there is a hole among the messages or the changes, it is pulled soon.
    pub(crate) fn hole(&mut self, conversation: &Conversation, now: Instant) {
        let id = &conversation.id;
        let is_known = self.waiting.contains_key(id) || self.pulling.contains(id);
        if is_known || !self.is_online() || !conversation.has_begun || !conversation.is_behind() {
            return;
        }
        self.waiting.insert(id.clone(), (now + self.gap_delay, conversation.place()));
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        let holes = self.waiting.values().map(|(at, _)| *at);
        holes.chain(self.again.values().copied()).chain(self.heads).chain(self.quiet).min()
    }

    fn hush(&mut self, now: Instant) {
        if self.quiet.take_if(|at| *at <= now).is_none() {
            return;
        }
        let quiet_at = self.last_active + self.quiet_after;
        if quiet_at > now {
            self.quiet = Some(quiet_at);
        } else {
            self.ask_heads(now);
        }
    }

    /// How long to wait after a failure.
    fn wait_after(&mut self, error: &Error) -> Duration {
        if error.is_passing() {
            self.backoff.next(error.retry_after().unwrap_or_default()).max(ms(1))
        } else {
            self.heads_every
        }
    }
}

impl Desk {
    pub(crate) fn tick_sync(&mut self) {
        self.sync.hush(self.now);
        if self.sync.heads.take_if(|at| *at <= self.now).is_some() {
            self.look();
        }
        let again = self.sync.again.extract_if(|_, at| *at <= self.now);
        for id in again.map(|(id, _)| id).collect::<Vec<_>>() {
            self.hole(&id);
        }
        let waited = self.sync.waiting.extract_if(|_, (at, _)| *at <= self.now);
        for (id, (_, place)) in waited.collect::<Vec<_>>() {
            // While a page of the server closes it there is nothing to do.
            if self.conversations.get(&id).is_none_or(|one| one.place() != place) {
                self.hole(&id);
            } else {
                self.fill(id);
            }
        }
    }

    /// After each connection: whatever happened meanwhile, in pages, each device from its own place.
    pub(crate) fn catch_up(&mut self) {
        self.look();
    }

    /// One look at the heads at a time; the next one is planned when it is done.
    fn look(&mut self) {
        if self.sync.is_asking {
            self.sync.asks_again = true;
            return;
        }
        self.sync.is_asking = true;
        self.sync.heads = None;
        let (inside, sign_in) = (self.inside.clone(), self.sign_in.clone());
        tokio::spawn(async move {
            let outcome = review(&inside, &sign_in).await;
            inside.ask(|desk| desk.looked(outcome)).await.ok(); // if nobody is left it is in vain
        });
    }

    fn looked(&mut self, outcome: Result<(), Error>) {
        let wait = match outcome {
            Ok(()) => {
                self.sync.backoff.reset();
                self.sync.heads_every.mul_f64(0.8 + 0.4 * chance::fraction())
            }
            Err(error) => self.problem(error),
        };
        self.sync.is_asking = false;
        if !self.sync.is_online() {
            return;
        }
        if std::mem::take(&mut self.sync.asks_again) {
            self.sync.ask_heads(self.now);
        } else {
            self.sync.heads.get_or_insert(self.now + wait);
        }
    }

    fn hole(&mut self, id: &str) {
        if let Some(conversation) = self.conversations.get(id) {
            self.sync.hole(conversation, self.now);
        }
    }

    fn fill(&mut self, id: String) {
        let Some(at) = self.conversations.get(&id).map(Conversation::place) else { return };
        if !self.sync.is_online() || !self.sync.pulling.insert(id.clone()) {
            return;
        }
        let (inside, sign_in) = (self.inside.clone(), self.sign_in.clone());
        tokio::spawn(async move {
            let outcome = pull::fill(&inside, &sign_in, &id).await;
            // If nobody is left it is in vain.
            inside.ask(move |desk| desk.filled(id, at, outcome)).await.ok();
        });
    }

    fn filled(&mut self, id: String, at: (u64, u64), outcome: Result<(), Error>) {
        self.sync.pulling.remove(&id);
        let is_moved = self.conversations.get(&id).map(Conversation::place) != Some(at);
        let wait = match outcome {
            Err(error) => self.problem(error),
            Ok(()) if is_moved => Duration::ZERO,
            // What the server does not give now it does not give in a moment either.
            Ok(()) => self.sync.heads_every,
        };
        if wait.is_zero() {
            self.sync.backoff.reset();
            return self.hole(&id);
        }
        self.sync.again.insert(id, self.now + wait);
    }

    /// What does not pass is the app's to know.
    fn problem(&mut self, error: Error) -> Duration {
        let wait = self.sync.wait_after(&error);
        if !error.is_passing() {
            self.ears.problem(error);
        }
        wait
    }

    /// Asks a new connection for everything that is missing, and says where each conversation is on
    /// this device. Whether it was new.
    fn resend_if_new(&mut self) -> bool {
        if self.sync.connection != Connection::New {
            return false;
        }
        self.sync.connection = Connection::Asked;
        let behind = self.conversations.values().filter(|one| one.is_behind()).take(CURSORS_MAX);
        let place = |one: &Conversation| one.arrived.last().to_string();
        let cursors: HashMap<&str, String> =
            behind.map(|one| (one.id.as_str(), place(one))).collect();
        if !cursors.is_empty() {
            self.wire.send(&ClientFrame::Resend { cursors });
        }
        true
    }

    /// Conversations whose names are new or have changed.
    fn nameless(&self) -> Vec<String> {
        let all = self.conversations.values();
        let nameless = all.filter(|one| one.has_begun && one.is_listed() && !one.about.is_known);
        nameless.map(|one| one.id.clone()).collect()
    }

    /// Whether everything is to be learned anew. It also tells how far others have received and read.
    /// A line that breaks often does not ask for it often: if names are young it has to hold until it
    /// is quiet.
    fn wants_names(&mut self, is_new: bool) -> bool {
        let is_old = self.sync.names_at.is_none_or(|at| self.now - at > self.sync.heads_every);
        if is_new && !is_old {
            if self.sync.owes_receipts {
                self.sync.active(self.now);
            }
            return false;
        }
        std::mem::take(&mut self.sync.owes_receipts) || is_new
    }
}

/// Before the first connection: the conversations there are.
pub(crate) async fn first(inside: &Inside, sign_in: &SignIn) -> Result<(), Error> {
    pull::heads(inside, sign_in, true).await?;
    pull::names(inside, sign_in).await
}

/// Compares, and learns names. The first time on a connection also asks for what is missing.
async fn review(inside: &Inside, sign_in: &SignIn) -> Result<(), Error> {
    pull::heads(inside, sign_in, false).await?;
    let is_new = inside.ask(Desk::resend_if_new).await?;
    if inside.ask(move |desk| desk.wants_names(is_new)).await? {
        let learned = pull::names(inside, sign_in).await;
        if learned.is_err() {
            inside.ask(|desk| desk.sync.owes_receipts = true).await?;
        }
        return learned;
    }
    let nameless = inside.ask(|desk| desk.nameless()).await?;
    if nameless.len() > FEW {
        return pull::names(inside, sign_in).await;
    }
    for id in nameless {
        pull::name(inside, sign_in, id).await?;
    }
    Ok(())
}
