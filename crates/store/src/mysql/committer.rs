//! The queue of a committer: takes everything that waits, in order, and stores it.
//!
//! A conversation always has the same committer, so what is asked one after the other here is done
//! one after the other. Several of them work at once, each in a transaction of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use nexo_chat::Reason;
use nexo_chat::ids::ConversationId;
use nexo_chat::model::Message;
use nexo_chat::store::{Appended, Decided, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::append::{self, Done};
use super::core::Core;
use super::fault::Fault;
use super::group_acts::{self, GroupAct};
use super::recall::{self, RecallAct};
use crate::prepared::Prepared;

/// Gives an outcome to whoever waits for it.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// What a committer is asked.
pub(crate) enum Work {
    Append(Box<Prepared>, Answer<Appended>),
    Group(GroupAct, Answer<Result<Decided, Reason>>),
    Recall(RecallAct, Answer<Result<Arc<Message>, Reason>>),
    /// Everything before it is done.
    Pass(oneshot::Sender<()>),
    /// The end: everything before it is done, nothing after.
    Close(oneshot::Sender<()>),
}

/// Messages in a transaction, and their bytes: a statement has to fit into a packet.
const BATCH_MAX: usize = 256;
const BATCH_BYTES_MAX: usize = 2 << 20;

pub(crate) struct Committer {
    pub(crate) core: Arc<Core>,
    pub(crate) queue: mpsc::UnboundedReceiver<Work>,
    pub(crate) waiting_bytes: Arc<AtomicUsize>,
}

impl Committer {
    /// Works until it is closed or nobody is left to ask.
    pub(crate) async fn run(mut self) {
        let mut put_back = None;
        loop {
            let next = match put_back.take() {
                Some(work) => Some(work),
                None => self.queue.recv().await,
            };
            match next {
                Some(Work::Append(prepared, answer)) => {
                    let (drafts, answers) = self.batch(prepared, answer, &mut put_back);
                    let began = Instant::now();
                    self.store(drafts, answers).await;
                    self.core.meters.commit_seconds.record(began.elapsed());
                    // Those who were answered may have more to say, which then goes together.
                    tokio::task::yield_now().await;
                }
                // Whoever asked may be gone; that undoes nothing.
                Some(Work::Group(act, answer)) => {
                    drop(answer.send(group_acts::change(&self.core, act).await));
                }
                Some(Work::Recall(act, answer)) => {
                    drop(answer.send(recall::recall(&self.core, act).await));
                }
                Some(Work::Pass(answer)) => drop(answer), // which tells whoever waits
                Some(Work::Close(answer)) => {
                    drop(answer); // which tells whoever waits
                    return;
                }
                None => return,
            }
        }
    }

    /// Takes the messages that wait, up to a bound or something else.
    fn batch(
        &mut self,
        first: Box<Prepared>,
        answer: Answer<Appended>,
        put_back: &mut Option<Work>,
    ) -> (Vec<Prepared>, Vec<Answer<Appended>>) {
        let mut bytes = first.bytes();
        let (mut drafts, mut answers) = (vec![*first], vec![answer]);
        while drafts.len() < BATCH_MAX && bytes < BATCH_BYTES_MAX {
            match self.queue.try_recv() {
                Ok(Work::Append(prepared, answer)) => {
                    bytes += prepared.bytes();
                    drafts.push(*prepared);
                    answers.push(answer);
                }
                Ok(other) => {
                    *put_back = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        (drafts, answers)
    }

    /// Stores a batch. If something stands in the way of one of its conversations, the others go
    /// without it.
    async fn store(&self, drafts: Vec<Prepared>, answers: Vec<Answer<Appended>>) {
        let first = &drafts[0].draft.conversation;
        let is_one = drafts.iter().all(|it| it.draft.conversation == *first);
        let done = append::append(&self.core, &drafts).await;
        if let (false, Err(Fault::Again(_) | Fault::Damaged(_))) = (is_one, &done) {
            let mut apart: BTreeMap<ConversationId, (Vec<_>, Vec<_>)> = BTreeMap::new();
            for (draft, answer) in drafts.into_iter().zip(answers) {
                let part = apart.entry(draft.draft.conversation.clone()).or_default();
                part.0.push(draft);
                part.1.push(answer);
            }
            for (drafts, answers) in apart.into_values() {
                self.answer(append::append(&self.core, &drafts).await, answers);
            }
        } else {
            self.answer(done, answers);
        }
    }

    /// Tells of what became durable, and answers.
    fn answer(&self, done: Result<Done, Fault>, answers: Vec<Answer<Appended>>) {
        match done {
            Ok(Done { outcomes, kept }) => {
                let meters = &self.core.meters;
                #[allow(clippy::cast_precision_loss, reason = "a batch is bounded")]
                meters.batch_messages.record(kept.len() as f64);
                meters.saved.increment(kept.len() as u64);
                let again = outcomes.iter().filter(|it| matches!(it, Appended::Duplicate(_)));
                meters.duplicates.increment(again.count() as u64);
                self.core.announce(&kept);
                for (outcome, answer) in outcomes.into_iter().zip(answers) {
                    drop(answer.send(Ok(outcome))); // whoever asked may be gone
                }
            }
            Err(error) => {
                let messages = answers.len();
                tracing::warn!(target: "nexo::store", %error, messages, "not saved");
                let error = error.to_string();
                for answer in answers {
                    drop(answer.send(Err(StoreError::Unavailable(error.clone().into()))));
                }
            }
        }
    }
}
