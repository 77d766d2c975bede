//! The committer: takes the writes that wait and stores them, several transactions at once.
//!
//! A transaction costs almost the same with one message as with many. So one is not begun right after
//! the last, but a moment later, with what came meanwhile; and beside those that run only if enough
//! waits for it, or if they take long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nexo_chat::Reason;
use nexo_chat::ids::ConversationId;
use nexo_chat::model::Message;
use nexo_chat::store::{Appended, GroupOutcome, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::append::{self, AppendOutcome};
use super::append_batch::{AppendBatch, AppendWaiter};
use super::change_group::{self, GroupChangeRequest};
use super::core::Core;
use super::fault::SqlFault;
use super::recall::{self, RecallRequest};
use super::write_queue::{Work, WriteQueue};
use crate::prepared::Prepared;

/// Sends the result to the caller that waits for it.
pub(crate) type ResultSender<T> = oneshot::Sender<Result<T, StoreError>>;

pub(crate) enum WriteRequest {
    Append(Box<Prepared>, ResultSender<Appended>),
    /// Messages of one conversation that are stored together or not at all.
    AppendRun(Vec<Prepared>, ResultSender<Vec<Appended>>),
    ChangeGroup(GroupChangeRequest, ResultSender<Result<GroupOutcome, Reason>>),
    Recall(RecallRequest, ResultSender<Result<Arc<Message>, Reason>>),
    /// Dropped when everything before it is done.
    Barrier(Arc<oneshot::Sender<()>>),
    /// Ends the committer: everything before it is done, nothing after.
    Close(oneshot::Sender<()>),
}

impl WriteRequest {
    /// The conversation that is written, if it is one.
    pub(crate) fn conversation(&self) -> Option<&ConversationId> {
        match self {
            Self::Append(prepared, _) => Some(&prepared.draft.conversation),
            Self::AppendRun(run, _) => run.first().map(|first| &first.draft.conversation),
            Self::ChangeGroup(request, _) => Some(&request.conversation),
            Self::Recall(request, _) => Some(&request.conversation),
            Self::Barrier(_) | Self::Close(_) => None,
        }
    }
}

/// How long after the beginning of a transaction the next one is begun, unless enough waits. The
/// first message after a pause does not wait.
const PACE: Duration = Duration::from_millis(2);
/// Enough for a transaction of its own: another is begun for every so many requests that wait.
const ENOUGH: usize = 64;
/// A transaction that takes longer holds up no other.
const SLOW: Duration = Duration::from_millis(10);
/// Requests taken from the channel at a time.
const RECEIVE_MAX: usize = 1024;

pub(crate) struct Committer {
    shared: Shared,
    transactions_max: usize,
    waiting_bytes: Arc<AtomicUsize>,
    queue: WriteQueue,
    /// Transactions that run; each returns its conversations.
    running: JoinSet<Vec<ConversationId>>,
    /// When the last of them was begun.
    begun_at: Option<Instant>,
    /// Dropped when everything is done.
    closing: Option<oneshot::Sender<()>>,
}

impl Committer {
    pub(crate) fn new(
        core: Arc<Core>,
        transactions_max: usize,
        waiting_bytes: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            shared: Shared { core },
            transactions_max,
            waiting_bytes,
            queue: WriteQueue::default(),
            running: JoinSet::new(),
            begun_at: None,
            closing: None,
        }
    }

    /// Runs until it is closed or the store is dropped.
    pub(crate) async fn run(mut self, mut requests: mpsc::Receiver<WriteRequest>) {
        let mut received = Vec::with_capacity(RECEIVE_MAX);
        let mut is_open = true;
        loop {
            let begin_at = self.begin_due();
            if self.queue.is_idle() && (!is_open || self.closing.is_some()) {
                return;
            }
            tokio::select! {
                count = requests.recv_many(&mut received, RECEIVE_MAX), if is_open => {
                    is_open = count > 0;
                    received.drain(..).for_each(|request| self.receive(request));
                }
                Some(done) = self.running.join_next() => match done {
                    Ok(conversations) => self.queue.release(conversations),
                    // A bug: what its callers were promised is unknown, so the store stops.
                    Err(error) => {
                        tracing::error!(target: "nexo::store", %error, "a transaction failed");
                        return;
                    }
                },
                () = sleep_until(begin_at.unwrap_or_else(Instant::now)), if begin_at.is_some() => {}
                else => return,
            }
        }
    }

    fn receive(&mut self, request: WriteRequest) {
        match request {
            WriteRequest::Barrier(reached) => {
                self.queue.push_everywhere(|| WriteRequest::Barrier(Arc::clone(&reached)));
            }
            WriteRequest::Close(answer) => self.closing = Some(answer),
            request if self.closing.is_some() => drop(request), // its caller sees that it is closed
            request => self.queue.push(request),
        }
    }

    /// Begins the transactions that are due. Returns when the next one is, if that is only a matter
    /// of time.
    fn begin_due(&mut self) -> Option<Instant> {
        while self.queue.is_ready() && self.running.len() < self.transactions_max {
            let is_enough = self.queue.waiting() >= ENOUGH * self.running.len().max(1);
            if !is_enough && let Some(begun_at) = self.begun_at {
                let pause = if self.running.is_empty() { PACE } else { SLOW };
                if Instant::now() < begun_at + pause {
                    return Some(begun_at + pause);
                }
            }
            let (work, conversations) = self.queue.take()?;
            self.begun_at = Some(Instant::now());
            if let Work::Append(batch) = &work {
                self.waiting_bytes.fetch_sub(batch.bytes, Ordering::Relaxed);
            }
            let shared = self.shared.clone();
            self.running.spawn(async move {
                shared.write(work).await;
                conversations
            });
        }
        None
    }
}

/// What the transactions share.
#[derive(Clone)]
struct Shared {
    core: Arc<Core>,
}

impl Shared {
    /// Does the work and answers its callers, who may have dropped their futures: that undoes nothing.
    async fn write(&self, work: Work) {
        match work {
            Work::Append(batch) => {
                let began = Instant::now();
                self.store(batch).await;
                self.core.meters.commit_seconds.record(began.elapsed());
            }
            Work::Other(WriteRequest::ChangeGroup(request, answer)) => {
                drop(answer.send(change_group::change(&self.core, request).await));
            }
            Work::Other(WriteRequest::Recall(request, answer)) => {
                drop(answer.send(recall::recall(&self.core, request).await));
            }
            Work::Other(_) => {} // appends are batched, and the rest is for the committer
        }
    }

    /// Stores a batch. If one of its conversations cannot be stored, stores each on its own.
    async fn store(&self, batch: AppendBatch) {
        let first = &batch.drafts[0].draft.conversation;
        let is_one = batch.drafts.iter().all(|it| it.draft.conversation == *first);
        let done = append::append(&self.core, &batch.drafts).await;
        if let (false, Err(SqlFault::Retryable(_) | SqlFault::Damaged(_))) = (is_one, &done) {
            for part in batch.split_by_conversation() {
                self.answer(append::append(&self.core, &part.drafts).await, part.waiters);
            }
        } else {
            self.answer(done, batch.waiters);
        }
    }

    /// Announces what became durable, and answers the callers.
    fn answer(&self, done: Result<AppendOutcome, SqlFault>, waiters: Vec<AppendWaiter>) {
        match done {
            Ok(AppendOutcome { outcomes, events }) => {
                let meters = &self.core.meters;
                #[allow(clippy::cast_precision_loss, reason = "a batch is bounded")]
                meters.batch_messages.record(events.len() as f64);
                meters.saved.increment(events.len() as u64);
                let again = outcomes.iter().filter(|it| matches!(it, Appended::Duplicate(_)));
                meters.duplicates.increment(again.count() as u64);
                self.core.announce(&events);
                let mut outcomes = outcomes.into_iter();
                for waiter in waiters {
                    waiter.answer(&mut outcomes);
                }
            }
            Err(error) => {
                let error = error.to_string();
                tracing::warn!(target: "nexo::store", error, asked = waiters.len(), "not saved");
                for waiter in waiters {
                    waiter.fail(&error);
                }
            }
        }
    }
}
