//! Messages that are stored in one transaction, and the callers that wait for them.

use std::collections::BTreeMap;

use nexo_chat::ids::ConversationId;
use nexo_chat::store::{Appended, StoreError};

use super::committer::{ResultSender, WriteRequest};
use crate::prepared::Prepared;

/// Messages in a transaction, and their bytes: a packet has a limit.
const BATCH_MAX: usize = 256;
const BATCH_BYTES_MAX: usize = 2 << 20;

/// A caller that waits for messages to be stored.
pub(crate) enum AppendWaiter {
    One(ResultSender<Appended>),
    Run(usize, ResultSender<Vec<Appended>>),
}

impl AppendWaiter {
    /// Takes the caller's outcomes from the front of `outcomes`. The caller may have dropped the
    /// future.
    pub(crate) fn answer(self, outcomes: &mut impl Iterator<Item = Appended>) {
        match self {
            Self::One(answer) => {
                if let Some(outcome) = outcomes.next() {
                    drop(answer.send(Ok(outcome)));
                }
            }
            Self::Run(count, answer) => drop(answer.send(Ok(outcomes.take(count).collect()))),
        }
    }

    pub(crate) fn fail(self, error: &str) {
        let error = StoreError::Unavailable(error.into());
        match self {
            Self::One(answer) => drop(answer.send(Err(error))),
            Self::Run(_, answer) => drop(answer.send(Err(error))),
        }
    }
}

/// Messages that are stored together, and their callers in the same order.
#[derive(Default)]
pub(crate) struct AppendBatch {
    pub(crate) drafts: Vec<Prepared>,
    pub(crate) waiters: Vec<AppendWaiter>,
    pub(crate) bytes: usize,
}

impl AppendBatch {
    pub(crate) fn has_room(&self) -> bool {
        self.drafts.len() < BATCH_MAX && self.bytes < BATCH_BYTES_MAX
    }

    /// Adds a request for an append; returns any other request.
    pub(crate) fn add(&mut self, work: WriteRequest) -> Option<WriteRequest> {
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
    pub(crate) fn split_by_conversation(self) -> impl Iterator<Item = Self> {
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
