//! Accepts a message: puts it into the log, or appends it to the store if the log is unavailable.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nexo_chat::model::Draft;
use nexo_chat::store::{Appended, StoreError, StoreFuture};
use nexo_chat::two_phase::AcceptOutcome;
use tokio::sync::oneshot;

use crate::accepted::{AcceptedMessage, run_length};
use crate::context::TwoPhaseContext;
use crate::log::{LogUnavailable, PutOutcome};
use crate::unsaved::AddOutcome;

/// What follows the log's answer.
enum AcceptStep {
    /// `length` messages wait in its shard.
    Accepted {
        length: u64,
    },
    Refused(StoreError),
    Conflict,
    /// The message is the last of a run that is being appended to the store. If that fails and the
    /// flag is set, no earlier attempt was accepted, and the message is not rescued.
    Run(StoreFuture<'static, Vec<Appended>>, bool),
}

/// Fixes the message's position when it is called; the future only waits for the answer.
pub(crate) fn accept(
    context: Arc<TwoPhaseContext>,
    draft: Draft,
) -> StoreFuture<'static, AcceptOutcome> {
    let message = Arc::new(AcceptedMessage::new(draft));
    let order = context.lock_order(&message.draft.conversation);
    // Before the message is in the log: a worker may save it before the log has answered.
    let (is_new, after) = match context.unsaved.add(&message, context.clock.ticks()) {
        AddOutcome::Added(after) => (true, after),
        AddOutcome::Already => (false, None),
        AddOutcome::Full => {
            let busy = StoreError::Unavailable("too many messages wait to be saved".into());
            return Box::pin(std::future::ready(Err(busy)));
        }
    };
    let (sender, receiver) = oneshot::channel();
    let began = Instant::now();
    let (of_callback, put) = (Arc::clone(&context), Arc::clone(&message));
    let callback = Box::new(move |outcome| {
        let step = of_callback.after_put(&put, is_new, outcome);
        drop(sender.send((step, began.elapsed()))); // the caller may be gone, which undoes nothing
    });
    context.log.put(Arc::clone(&message), after, callback);
    drop(order);
    Box::pin(async move {
        let gone = || StoreError::Unavailable("the server is going down".into());
        let (step, written) = receiver.await.map_err(|_| gone())?;
        match step {
            AcceptStep::Accepted { length } => {
                context.trace_accept(&message, length, written, began.elapsed());
                Ok(AcceptOutcome::Accepted)
            }
            AcceptStep::Refused(error) => Err(error),
            AcceptStep::Conflict => Ok(AcceptOutcome::Appended(Appended::Conflict)),
            AcceptStep::Run(run, is_new) => {
                let outcome = run.await.and_then(|mut run| run.pop().ok_or_else(gone));
                // The sender is told of the failure: the message must not be saved later.
                if is_new || outcome.is_ok() {
                    context.unsaved.remove(message.id);
                }
                Ok(AcceptOutcome::Appended(outcome?))
            }
        }
    })
}

impl TwoPhaseContext {
    /// Runs in the order of the log's answers, so that appends that it starts keep that order.
    fn after_put(
        &self,
        message: &AcceptedMessage,
        is_new: bool,
        put: Result<PutOutcome, LogUnavailable>,
    ) -> AcceptStep {
        let forget_if_new = || {
            if is_new {
                self.unsaved.remove(message.id);
            }
        };
        match put {
            Ok(PutOutcome::New { length }) => {
                self.meters.accepted.increment(1);
                self.unsaved.mark_accepted(message.id, false);
                AcceptStep::Accepted { length }
            }
            Ok(PutOutcome::Again) => {
                if is_new {
                    // Another node accepted it, and it may have been saved a moment ago.
                    self.unsaved.mark_accepted(message.id, true);
                }
                AcceptStep::Accepted { length: 0 }
            }
            Ok(PutOutcome::Conflict) => {
                forget_if_new();
                AcceptStep::Conflict
            }
            Ok(PutOutcome::Saved) => {
                forget_if_new();
                let draft = message.draft.clone();
                AcceptStep::Run(self.append_run_now(vec![draft]), false)
            }
            // The log lost the messages before it, but `unsaved` has them.
            Ok(PutOutcome::Overtakes) => AcceptStep::Run(self.append_unsaved(message), is_new),
            Ok(PutOutcome::Full) => {
                self.meters.publish_fail.increment(1);
                forget_if_new();
                let busy = "too many messages wait to be saved";
                AcceptStep::Refused(StoreError::Unavailable(busy.into()))
            }
            Err(unavailable) => {
                self.meters.publish_fail.increment(1);
                if !self.options.fail_open {
                    forget_if_new();
                    return AcceptStep::Refused(StoreError::Unavailable(Box::new(unavailable)));
                }
                self.meters.fallen_back.increment(1);
                AcceptStep::Run(self.append_unsaved(message), is_new)
            }
        }
    }

    /// Appends a message after the unsaved messages of its conversation, so that they keep their
    /// order. Appending those that were saved meanwhile again does nothing.
    fn append_unsaved(&self, message: &AcceptedMessage) -> StoreFuture<'static, Vec<Appended>> {
        let run = self.unsaved.up_to(message);
        if run_length(run.iter().map(|unsaved| &**unsaved)) < run.len() {
            let busy = StoreError::Unavailable("too much of this conversation waits".into());
            return Box::pin(std::future::ready(Err(busy)));
        }
        let mut drafts: Vec<Draft> = run.iter().map(|unsaved| unsaved.draft.clone()).collect();
        // The message may have been saved meanwhile, or `unsaved` has the same id with other content:
        // the store knows the answer to both.
        if run.last().is_none_or(|unsaved| unsaved.fingerprint != message.fingerprint) {
            drafts.push(message.draft.clone());
        }
        self.append_run_now(drafts)
    }

    /// A log line for load tests: how long the write to the log and the whole answer took.
    fn trace_accept(
        &self,
        message: &AcceptedMessage,
        length: u64,
        written: Duration,
        answered: Duration,
    ) {
        tracing::debug!(
            target: "nexo::perf",
            serverMsgId = %message.id,
            acceptedWriteMs = written.as_secs_f64() * 1000.0,
            acceptedAckMs = answered.as_secs_f64() * 1000.0,
            streamLen = length,
            pending = self.pending.load(Ordering::Relaxed),
            "ws_perf single_chat_accept",
        );
    }
}
