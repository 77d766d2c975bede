//! Finds missing messages and changes, by gaps and by comparing heads.
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use crate::account_state::AccountState;
use crate::backoff::Backoff;
use crate::clock;
use crate::conversation::Conversation;
use crate::error::Error;
use crate::frames::ClientFrame;
use crate::jobs::AccountJobs;
use crate::pull;
use crate::timing::{Timing, ms};
use crate::tokens::SignIn;

/// This many cursors fit into one frame with room to spare.
const CURSORS_MAX: usize = 500;
/// Up to this many new infos are loaded one by one.
const SINGLE_INFOS_MAX: usize = 3;

/// Whether missed messages were requested on this connection.
#[derive(PartialEq, Eq)]
enum ResendState {
    Offline,
    Pending,
    Requested,
}

/// What is missing, and when it is fetched.
pub(crate) struct Sync {
    resend_state: ResendState,
    /// A comparison of heads is running; and another one follows it.
    is_comparing: bool,
    compare_again: bool,
    /// Receipts were missed while offline. They are not pushed again; loading the infos brings
    /// them.
    receipts_missed: bool,
    last_active: Instant,
    /// When the infos of all conversations were loaded.
    pub(crate) infos_at: Option<Instant>,
    heads_at: Option<Instant>,
    quiet_at: Option<Instant>,
    /// Gaps that may close by themselves: until when, and the cursor of the conversation.
    waiting: HashMap<String, (Instant, (u64, u64))>,
    /// Gaps that are being pulled, and those to check again later.
    pulling: HashSet<String>,
    retry_at: HashMap<String, Instant>,
    backoff: Backoff,
    gap_delay: Duration,
    quiet_after: Duration,
    heads_every: Duration,
}

impl Sync {
    pub(crate) fn new(timing: &Timing, now: Instant) -> Self {
        Self {
            resend_state: ResendState::Offline,
            is_comparing: false,
            compare_again: false,
            receipts_missed: false,
            last_active: now,
            infos_at: None,
            heads_at: None,
            quiet_at: None,
            waiting: HashMap::new(),
            pulling: HashSet::new(),
            retry_at: HashMap::new(),
            backoff: Backoff::new(timing),
            gap_delay: ms(timing.gap_delay_ms),
            quiet_after: ms(timing.quiet_ms),
            heads_every: ms(timing.heads_every_ms),
        }
    }

    pub(crate) fn online(&mut self) {
        self.resend_state = ResendState::Pending;
    }

    pub(crate) fn offline(&mut self) {
        self.receipts_missed = true;
        (self.resend_state, self.compare_again) = (ResendState::Offline, false);
        (self.heads_at, self.quiet_at) = (None, None);
        self.waiting.clear();
    }

    fn is_online(&self) -> bool {
        self.resend_state != ResendState::Offline
    }

    /// Schedules a comparison of heads; the delay collects many calls into one.
    pub(crate) fn schedule_heads(&mut self, now: Instant) {
        if self.is_comparing {
            self.compare_again = self.is_online();
        } else if self.is_online() {
            self.heads_at = Some(now + self.gap_delay);
        }
    }

    /// Records activity: heads are compared once it has become quiet.
    pub(crate) fn note_activity(&mut self, now: Instant) {
        self.last_active = now;
        if self.is_online() {
            self.quiet_at.get_or_insert(now + self.quiet_after);
        }
    }

    /// Schedules a pull if messages or changes are missing.
    pub(crate) fn schedule_fill(&mut self, conversation: &Conversation, now: Instant) {
        let id = &conversation.id;
        let is_known = self.waiting.contains_key(id) || self.pulling.contains(id);
        if is_known || !self.is_online() || !conversation.has_begun || !conversation.is_behind() {
            return;
        }
        self.waiting.insert(id.clone(), (now + self.gap_delay, conversation.cursor()));
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        let gaps = self.waiting.values().map(|(at, _)| *at);
        gaps.chain(self.retry_at.values().copied()).chain(self.heads_at).chain(self.quiet_at).min()
    }

    fn check_quiet(&mut self, now: Instant) {
        if self.quiet_at.take_if(|at| *at <= now).is_none() {
            return;
        }
        let quiet_at = self.last_active + self.quiet_after;
        if quiet_at > now {
            self.quiet_at = Some(quiet_at);
        } else {
            self.schedule_heads(now);
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

impl AccountState {
    pub(crate) fn tick_sync(&mut self) {
        self.sync.check_quiet(self.now);
        if self.sync.heads_at.take_if(|at| *at <= self.now).is_some() {
            self.compare_heads();
        }
        let again = self.sync.retry_at.extract_if(|_, at| *at <= self.now);
        for id in again.map(|(id, _)| id).collect::<Vec<_>>() {
            self.schedule_fill(&id);
        }
        let waited = self.sync.waiting.extract_if(|_, (at, _)| *at <= self.now);
        for (id, (_, cursor)) in waited.collect::<Vec<_>>() {
            // Wait while a page is filling the gap.
            if self.conversations.get(&id).is_none_or(|one| one.cursor() != cursor) {
                self.schedule_fill(&id);
            } else {
                self.fill(id);
            }
        }
    }

    /// Catches up after each connection, in pages, from this device's own cursors.
    pub(crate) fn catch_up(&mut self) {
        self.compare_heads();
    }

    /// One comparison of heads at a time; the next one is scheduled when it is done.
    fn compare_heads(&mut self) {
        if self.sync.is_comparing {
            self.sync.compare_again = true;
            return;
        }
        self.sync.is_comparing = true;
        self.sync.heads_at = None;
        let (account_jobs, sign_in) = (self.jobs.clone(), self.sign_in.clone());
        tokio::spawn(async move {
            let outcome = refresh(&account_jobs, &sign_in).await;
            account_jobs.call(|account| account.on_heads_compared(outcome)).await.ok(); // the account may be closed by now
        });
    }

    fn on_heads_compared(&mut self, outcome: Result<(), Error>) {
        let wait = match outcome {
            Ok(()) => {
                self.sync.backoff.reset();
                self.sync.heads_every.mul_f64(0.8 + 0.4 * clock::random_fraction())
            }
            Err(error) => self.report_and_wait(error),
        };
        self.sync.is_comparing = false;
        if !self.sync.is_online() {
            return;
        }
        if std::mem::take(&mut self.sync.compare_again) {
            self.sync.schedule_heads(self.now);
        } else {
            self.sync.heads_at.get_or_insert(self.now + wait);
        }
    }

    fn schedule_fill(&mut self, id: &str) {
        if let Some(conversation) = self.conversations.get(id) {
            self.sync.schedule_fill(conversation, self.now);
        }
    }

    fn fill(&mut self, id: String) {
        let Some(at) = self.conversations.get(&id).map(Conversation::cursor) else { return };
        if !self.sync.is_online() || !self.sync.pulling.insert(id.clone()) {
            return;
        }
        let (account_jobs, sign_in) = (self.jobs.clone(), self.sign_in.clone());
        tokio::spawn(async move {
            let outcome = pull::fill(&account_jobs, &sign_in, &id).await;
            // The account may be closed by now.
            account_jobs.call(move |account| account.on_filled(id, at, outcome)).await.ok();
        });
    }

    fn on_filled(&mut self, id: String, at: (u64, u64), outcome: Result<(), Error>) {
        self.sync.pulling.remove(&id);
        let is_moved = self.conversations.get(&id).map(Conversation::cursor) != Some(at);
        let wait = match outcome {
            Err(error) => self.report_and_wait(error),
            Ok(()) if is_moved => Duration::ZERO,
            // The server did not return it; an immediate retry would not either.
            Ok(()) => self.sync.heads_every,
        };
        if wait.is_zero() {
            self.sync.backoff.reset();
            return self.schedule_fill(&id);
        }
        self.sync.retry_at.insert(id, self.now + wait);
    }

    /// Reports a permanent error to the app; returns how long to wait.
    fn report_and_wait(&mut self, error: Error) -> Duration {
        let wait = self.sync.wait_after(&error);
        if !error.is_passing() {
            self.listeners.emit_problem(error);
        }
        wait
    }

    /// Requests all missed messages once per connection, from this device's cursors. Returns
    /// whether it did.
    fn resend_if_new(&mut self) -> bool {
        if self.sync.resend_state != ResendState::Pending {
            return false;
        }
        self.sync.resend_state = ResendState::Requested;
        let behind = self.conversations.values().filter(|one| one.is_behind()).take(CURSORS_MAX);
        let last_seq = |one: &Conversation| one.arrived.last().to_string();
        let cursors: HashMap<&str, String> =
            behind.map(|one| (one.id.as_str(), last_seq(one))).collect();
        if !cursors.is_empty() {
            self.frame_sender.send(&ClientFrame::Resend { cursors });
        }
        true
    }

    /// Conversations whose info is not loaded or has changed.
    fn without_info(&self) -> Vec<String> {
        let all = self.conversations.values();
        let missing = all.filter(|one| one.has_begun && one.is_listed() && !one.details.has_info);
        missing.map(|one| one.id.clone()).collect()
    }

    /// Decides whether the infos of all conversations are loaded, which also brings missed receipts,
    /// and clears `receipts_missed` if so. Recent infos are not loaded again right after a reconnect:
    /// an unstable connection would load them each time. They follow once it is quiet.
    fn take_infos_due(&mut self, is_new: bool) -> bool {
        let is_old = self.sync.infos_at.is_none_or(|at| self.now - at > self.sync.heads_every);
        if is_new && !is_old {
            if self.sync.receipts_missed {
                self.sync.note_activity(self.now);
            }
            return false;
        }
        std::mem::take(&mut self.sync.receipts_missed) || is_new
    }
}

/// Loads the conversations before the first connection.
pub(crate) async fn load_conversations(
    account_jobs: &AccountJobs,
    sign_in: &SignIn,
) -> Result<(), Error> {
    pull::heads(account_jobs, sign_in, true).await?;
    pull::infos(account_jobs, sign_in).await
}

/// Compares heads and loads infos. The first time on a connection it also requests missed messages.
async fn refresh(account_jobs: &AccountJobs, sign_in: &SignIn) -> Result<(), Error> {
    pull::heads(account_jobs, sign_in, false).await?;
    let is_new = account_jobs.call(AccountState::resend_if_new).await?;
    if account_jobs.call(move |account| account.take_infos_due(is_new)).await? {
        let loaded = pull::infos(account_jobs, sign_in).await;
        if loaded.is_err() {
            account_jobs.call(|account| account.sync.receipts_missed = true).await?;
        }
        return loaded;
    }
    let without_info = account_jobs.call(|account| account.without_info()).await?;
    if without_info.len() > SINGLE_INFOS_MAX {
        return pull::infos(account_jobs, sign_in).await;
    }
    for id in without_info {
        pull::info(account_jobs, sign_in, id).await?;
    }
    Ok(())
}
