//! A committer: takes the writes that wait in its queue, in order, and stores them.
//!
//! A conversation always has the same committer, so its writes are done in the order in which they
//! were queued. Several committers work at once, each in its own transaction.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use nexo_chat::Reason;
use nexo_chat::ids::ConversationId;
use nexo_chat::model::Message;
use nexo_chat::store::{Appended, GroupOutcome, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::append::{self, AppendOutcome};
use super::change_group::{self, GroupChangeRequest};
use super::core::Core;
use super::fault::SqlFault;
use super::recall::{self, RecallRequest};
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
    Barrier(oneshot::Sender<()>),
    /// Ends the committer: everything before it is done, nothing after.
    Close(oneshot::Sender<()>),
}

/// A caller that waits for messages to be stored.
enum AppendWaiter {
    One(ResultSender<Appended>),
    Run(usize, ResultSender<Vec<Appended>>),
}

impl AppendWaiter {
    /// Takes the caller's outcomes from the front of `outcomes`. The caller may have dropped the
    /// future.
    fn answer(self, outcomes: &mut impl Iterator<Item = Appended>) {
        match self {
            Self::One(answer) => {
                if let Some(outcome) = outcomes.next() {
                    drop(answer.send(Ok(outcome)));
                }
            }
            Self::Run(count, answer) => drop(answer.send(Ok(outcomes.take(count).collect()))),
        }
    }

    fn fail(self, error: &str) {
        let error = StoreError::Unavailable(error.into());
        match self {
            Self::One(answer) => drop(answer.send(Err(error))),
            Self::Run(_, answer) => drop(answer.send(Err(error))),
        }
    }
}

/// Messages that are stored together, and their callers in the same order.
#[derive(Default)]
struct AppendBatch {
    drafts: Vec<Prepared>,
    waiters: Vec<AppendWaiter>,
    bytes: usize,
}

impl AppendBatch {
    /// Adds a request for an append; returns any other request.
    fn add(&mut self, work: WriteRequest) -> Option<WriteRequest> {
        match work {
            WriteRequest::Append(prepared, answer) => {
                self.bytes += prepared.bytes();
                self.drafts.push(*prepared);
                self.waiters.push(AppendWaiter::One(answer));
            }
            WriteRequest::AppendRun(run, answer) => {
                self.bytes += run.iter().map(Prepared::bytes).sum::<usize>();
                self.waiters.push(AppendWaiter::Run(run.len(), answer));
                self.drafts.extend(run);
            }
            other => return Some(other),
        }
        None
    }

    /// Splits it into one batch for each conversation.
    fn split_by_conversation(self) -> impl Iterator<Item = Self> {
        let mut apart: BTreeMap<ConversationId, Self> = BTreeMap::new();
        let mut drafts = self.drafts.into_iter();
        for waiter in self.waiters {
            let count = if let AppendWaiter::Run(count, _) = &waiter { *count } else { 1 };
            let mut theirs = drafts.by_ref().take(count).peekable();
            let Some(first) = theirs.peek() else { continue };
            let part = apart.entry(first.draft.conversation.clone()).or_default();
            part.drafts.extend(theirs);
            part.waiters.push(waiter);
        }
        apart.into_values()
    }
}

/// Messages in a transaction, and their bytes: a statement has to fit into a packet.
const BATCH_MAX: usize = 256;
const BATCH_BYTES_MAX: usize = 2 << 20;

pub(crate) struct Committer {
    pub(crate) core: Arc<Core>,
    pub(crate) queue: mpsc::Receiver<WriteRequest>,
    pub(crate) waiting_bytes: Arc<AtomicUsize>,
}

impl Committer {
    /// Runs until it is closed or the store is dropped.
    pub(crate) async fn run(mut self) {
        let mut put_back = None;
        loop {
            let next = match put_back.take() {
                Some(work) => Some(work),
                None => self.queue.recv().await,
            };
            match next {
                Some(work @ (WriteRequest::Append(..) | WriteRequest::AppendRun(..))) => {
                    let batch = self.next_batch(work, &mut put_back);
                    let began = Instant::now();
                    self.store(batch).await;
                    self.core.meters.commit_seconds.record(began.elapsed());
                    // Callers that were just answered may send more, which then goes into one
                    // batch.
                    tokio::task::yield_now().await;
                }
                // The caller may have dropped the future: that undoes nothing.
                Some(WriteRequest::ChangeGroup(transaction, answer)) => {
                    drop(answer.send(change_group::change(&self.core, transaction).await));
                }
                Some(WriteRequest::Recall(transaction, answer)) => {
                    drop(answer.send(recall::recall(&self.core, transaction).await));
                }
                Some(WriteRequest::Barrier(answer)) => drop(answer), // the caller waits for the drop
                Some(WriteRequest::Close(answer)) => {
                    drop(answer); // the caller waits for the drop
                    return;
                }
                None => return,
            }
        }
    }

    /// Takes waiting appends up to a limit, or up to another request, which goes into `put_back`.
    fn next_batch(
        &mut self,
        first: WriteRequest,
        put_back: &mut Option<WriteRequest>,
    ) -> AppendBatch {
        let mut batch = AppendBatch::default();
        let mut next = Some(first);
        while let Some(work) = next {
            *put_back = batch.add(work);
            if put_back.is_some() {
                break;
            }
            let has_room = batch.drafts.len() < BATCH_MAX && batch.bytes < BATCH_BYTES_MAX;
            next = has_room.then(|| self.queue.try_recv().ok()).flatten();
        }
        self.waiting_bytes.fetch_sub(batch.bytes, Ordering::Relaxed);
        batch
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
