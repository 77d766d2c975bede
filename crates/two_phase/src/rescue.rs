//! Looks up the messages that this node accepted and has not seen saved. Such a message was saved
//! and its event got lost, or it still waits, or the log lost it: then it is saved from memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use nexo_chat::Reason;
use nexo_chat::event::Event;
use nexo_chat::ids::ConversationId;
use nexo_chat::store::StoreError;
use nexo_chat::two_phase::MessageStatus;
use tokio::time::sleep;

use crate::accepted::{AcceptedMessage, run_length};
use crate::context::TwoPhaseContext;

const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The most messages looked up at a time.
const CHECKS_MAX: usize = 1000;
const CONCURRENT_CONVERSATIONS: usize = 16;

/// Runs until it is aborted.
pub(crate) async fn run(context: Arc<TwoPhaseContext>) {
    let after_ms = u64::try_from(context.options.rescue_after.as_millis()).unwrap_or(u64::MAX);
    loop {
        sleep(CHECK_INTERVAL).await;
        let due = context.unsaved.take_due(context.clock.ticks(), after_ms, CHECKS_MAX);
        check_all(&context, due, context.options.fail_open).await;
    }
}

/// The server shuts down and its memory is lost: messages that cannot be looked up count as lost
/// and are saved. Returns whether all lookups succeeded.
pub(crate) async fn final_check(context: &TwoPhaseContext, all: Vec<Arc<AcceptedMessage>>) -> bool {
    check_all(context, all, true).await
}

/// Checks messages by conversation, so that unsaved messages keep their order. Returns whether all
/// checks succeeded.
async fn check_all(
    context: &TwoPhaseContext,
    due: Vec<Arc<AcceptedMessage>>,
    unreachable_is_lost: bool,
) -> bool {
    let all_checked = AtomicBool::new(true);
    let mut conversations: BTreeMap<ConversationId, Vec<Arc<AcceptedMessage>>> = BTreeMap::new();
    for message in due {
        conversations.entry(message.draft.conversation.clone()).or_default().push(message);
    }
    let checks = stream::iter(conversations.into_values());
    checks
        .for_each_concurrent(CONCURRENT_CONVERSATIONS, async |messages| {
            if let Err(error) = check_conversation(context, messages, unreachable_is_lost).await {
                tracing::debug!(target: "nexo::two_phase", %error, "not rescued yet");
                all_checked.store(false, Ordering::Relaxed);
            }
        })
        .await;
    all_checked.into_inner()
}

/// Checks the messages of one conversation, and saves those that are lost.
async fn check_conversation(
    context: &TwoPhaseContext,
    messages: Vec<Arc<AcceptedMessage>>,
    unreachable_is_lost: bool,
) -> Result<(), StoreError> {
    let mut lost = None;
    for message in messages {
        let is_unreachable = unreachable_is_lost && context.log.health().is_err();
        let status = if is_unreachable {
            Ok(MessageStatus::Lost)
        } else {
            context.find_status(&message.draft.conversation, message.id).await
        };
        match status {
            Ok(MessageStatus::Pending) => {}
            Ok(MessageStatus::Saved(stored)) => {
                context.bus.publish(Event::AcceptedSaved { message: stored });
                context.unsaved.remove(message.id);
            }
            Ok(MessageStatus::Lost) => lost = Some(message),
            Err(_) if unreachable_is_lost => lost = Some(message),
            Err(error) => return Err(error),
        }
    }
    match lost {
        Some(newest) => save(context, &newest).await,
        None => Ok(()),
    }
}

/// Saves the unsaved messages of a conversation up to `newest`. If that fails, it saves them one by
/// one, to find the one that cannot be saved.
async fn save(context: &TwoPhaseContext, newest: &AcceptedMessage) -> Result<(), StoreError> {
    let unsaved = context.unsaved.up_to(newest);
    let mut rest = unsaved.as_slice();
    while !rest.is_empty() {
        context.store.health().map_err(|why| StoreError::Unavailable(why.into()))?;
        let (run, others) = rest.split_at(run_length(rest.iter().map(|message| &**message)));
        if append(context, run).await.is_err() {
            // Some may have been saved or dropped by now.
            for message in run.iter().filter(|message| context.unsaved.contains(message.id)) {
                context.store.health().map_err(|why| StoreError::Unavailable(why.into()))?;
                if let Err(error) = append(context, std::slice::from_ref(message)).await {
                    give_up_after_tries(context, message, &error);
                    return Err(error);
                }
            }
        }
        rest = others;
    }
    Ok(())
}

async fn append(context: &TwoPhaseContext, run: &[Arc<AcceptedMessage>]) -> Result<(), StoreError> {
    let drafts = run.iter().map(|message| message.draft.clone()).collect();
    let outcomes = context.append_run(drafts).await?;
    for (message, outcome) in run.iter().zip(&outcomes) {
        context.meters.rescued.increment(1);
        context.report_outcome(message, outcome);
    }
    Ok(())
}

/// Drops a message that failed too often while others could be saved: nothing after it would ever
/// be saved.
fn give_up_after_tries(context: &TwoPhaseContext, message: &AcceptedMessage, error: &StoreError) {
    let tries = context.unsaved.record_failure(message.id, context.saved_count());
    if tries >= context.options.tries_max {
        tracing::error!(target: "nexo::two_phase", serverMsgId = %message.id, %error, "given up");
        context.meters.dead.increment(1);
        context.report_dropped(message, Reason::InternalError);
    }
}
