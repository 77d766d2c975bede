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
    /// Messages of one conversation that stay together.
    Run(Vec<Prepared>, Answer<Vec<Appended>>),
    Group(GroupAct, Answer<Result<Decided, Reason>>),
    Recall(RecallAct, Answer<Result<Arc<Message>, Reason>>),
    /// Everything before it is done.
    Pass(oneshot::Sender<()>),
    /// The end: everything before it is done, nothing after.
    Close(oneshot::Sender<()>),
}

/// Who waits for messages to be stored.
enum Asker {
    One(Answer<Appended>),
    Run(usize, Answer<Vec<Appended>>),
}

impl Asker {
    /// Of the outcomes, those that are theirs come next. Whoever asked may be gone.
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

    fn refuse(self, error: &str) {
        let error = StoreError::Unavailable(error.into());
        match self {
            Self::One(answer) => drop(answer.send(Err(error))),
            Self::Run(_, answer) => drop(answer.send(Err(error))),
        }
    }
}

/// Messages that are stored together, and who waits for them, in the same order.
#[derive(Default)]
struct Lot {
    drafts: Vec<Prepared>,
    askers: Vec<Asker>,
    bytes: usize,
}

impl Lot {
    /// Takes what is asked; gives it back if it is something else.
    fn add(&mut self, work: Work) -> Option<Work> {
        match work {
            Work::Append(prepared, answer) => {
                self.bytes += prepared.bytes();
                self.drafts.push(*prepared);
                self.askers.push(Asker::One(answer));
            }
            Work::Run(run, answer) => {
                self.bytes += run.iter().map(Prepared::bytes).sum::<usize>();
                self.askers.push(Asker::Run(run.len(), answer));
                self.drafts.extend(run);
            }
            other => return Some(other),
        }
        None
    }

    /// One lot for each conversation.
    fn apart(self) -> impl Iterator<Item = Self> {
        let mut apart: BTreeMap<ConversationId, Self> = BTreeMap::new();
        let mut drafts = self.drafts.into_iter();
        for asker in self.askers {
            let count = if let Asker::Run(count, _) = &asker { *count } else { 1 };
            let mut theirs = drafts.by_ref().take(count).peekable();
            let Some(first) = theirs.peek() else { continue };
            let part = apart.entry(first.draft.conversation.clone()).or_default();
            part.drafts.extend(theirs);
            part.askers.push(asker);
        }
        apart.into_values()
    }
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
                Some(work @ (Work::Append(..) | Work::Run(..))) => {
                    let lot = self.lot(work, &mut put_back);
                    let began = Instant::now();
                    self.store(lot).await;
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
    fn lot(&mut self, first: Work, put_back: &mut Option<Work>) -> Lot {
        let mut lot = Lot::default();
        let mut next = Some(first);
        while let Some(work) = next {
            *put_back = lot.add(work);
            if put_back.is_some() {
                break;
            }
            let has_room = lot.drafts.len() < BATCH_MAX && lot.bytes < BATCH_BYTES_MAX;
            next = has_room.then(|| self.queue.try_recv().ok()).flatten();
        }
        self.waiting_bytes.fetch_sub(lot.bytes, Ordering::Relaxed);
        lot
    }

    /// Stores a lot. If something stands in the way of one of its conversations, the others go
    /// without it.
    async fn store(&self, lot: Lot) {
        let first = &lot.drafts[0].draft.conversation;
        let is_one = lot.drafts.iter().all(|it| it.draft.conversation == *first);
        let done = append::append(&self.core, &lot.drafts).await;
        if let (false, Err(Fault::Again(_) | Fault::Damaged(_))) = (is_one, &done) {
            for part in lot.apart() {
                self.answer(append::append(&self.core, &part.drafts).await, part.askers);
            }
        } else {
            self.answer(done, lot.askers);
        }
    }

    /// Tells of what became durable, and answers.
    fn answer(&self, done: Result<Done, Fault>, askers: Vec<Asker>) {
        match done {
            Ok(Done { outcomes, kept }) => {
                let meters = &self.core.meters;
                #[allow(clippy::cast_precision_loss, reason = "a batch is bounded")]
                meters.batch_messages.record(kept.len() as f64);
                meters.saved.increment(kept.len() as u64);
                let again = outcomes.iter().filter(|it| matches!(it, Appended::Duplicate(_)));
                meters.duplicates.increment(again.count() as u64);
                self.core.announce(&kept);
                let mut outcomes = outcomes.into_iter();
                for asker in askers {
                    asker.answer(&mut outcomes);
                }
            }
            Err(error) => {
                let error = error.to_string();
                tracing::warn!(target: "nexo::store", error, asked = askers.len(), "not saved");
                for asker in askers {
                    asker.refuse(&error);
                }
            }
        }
    }
}
