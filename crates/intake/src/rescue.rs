//! Looks for what this node accepted and did not hear of again: it was saved and the word got lost,
//! or it is on its way, or the log has lost it. Then it is saved from memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use nexo_chat::Reason;
use nexo_chat::command::Event;
use nexo_chat::ids::ConversationId;
use nexo_chat::intake::Whereabouts;
use nexo_chat::policy::send::was_accepted;
use nexo_chat::store::StoreError;
use tokio::time::sleep;

use crate::accepted::{Accepted, run_length};
use crate::two_phase::Shared;

const EVERY: Duration = Duration::from_secs(1);
/// Messages looked for at a time.
const LOOK_MAX: usize = 1000;
/// Conversations looked at at the same time.
const AT_ONCE: usize = 16;

/// Works until it is stopped.
pub(crate) async fn rescue(shared: Arc<Shared>) {
    let after_ms = u64::try_from(shared.options.rescue_after.as_millis()).unwrap_or(u64::MAX);
    loop {
        sleep(EVERY).await;
        let due = shared.held.due(shared.clock.ticks(), after_ms, LOOK_MAX);
        look(&shared, due, shared.options.fail_open).await;
    }
}

/// The server goes down, and what only it has goes with it: what cannot be asked for counts as lost.
/// Tells whether everything could be looked for.
pub(crate) async fn last_look(shared: &Shared, all: Vec<Arc<Accepted>>) -> bool {
    look(shared, all, true).await
}

/// Rescues by conversation: what is held of it keeps its order. Tells whether all went well.
async fn look(shared: &Shared, due: Vec<Arc<Accepted>>, is_lost_if_away: bool) -> bool {
    let is_well = AtomicBool::new(true);
    let mut conversations: BTreeMap<ConversationId, Vec<Arc<Accepted>>> = BTreeMap::new();
    for message in due {
        conversations.entry(message.draft.conversation.clone()).or_default().push(message);
    }
    let looks = stream::iter(conversations.into_values());
    looks
        .for_each_concurrent(AT_ONCE, async |messages| {
            if let Err(error) = look_at(shared, messages, is_lost_if_away).await {
                tracing::debug!(target: "nexo::intake", %error, "not rescued yet");
                is_well.store(false, Ordering::Relaxed);
            }
        })
        .await;
    is_well.into_inner()
}

/// Rescues the messages of one conversation.
async fn look_at(
    shared: &Shared,
    messages: Vec<Arc<Accepted>>,
    is_lost_if_away: bool,
) -> Result<(), StoreError> {
    let mut lost = None;
    for message in messages {
        let is_away = is_lost_if_away && shared.log.health().is_err();
        let asked = if is_away {
            Ok(Whereabouts::Nowhere)
        } else {
            shared.whereabouts(&message.draft.conversation, message.id).await
        };
        match asked {
            Ok(Whereabouts::Open) => {}
            Ok(Whereabouts::Saved(stored)) => {
                shared.bus.publish(Event::Settled { message: stored });
                shared.settled(message.id);
            }
            Ok(Whereabouts::Nowhere) => lost = Some(message),
            Err(_) if is_lost_if_away => lost = Some(message),
            Err(error) => return Err(error),
        }
    }
    match lost {
        Some(newest) => save(shared, &newest).await,
        None => Ok(()),
    }
}

/// Saves what is held of a conversation up to a message; one by one where that does not work, so
/// that the one that cannot be saved is found.
async fn save(shared: &Shared, newest: &Accepted) -> Result<(), StoreError> {
    let held = shared.held.up_to(newest);
    let mut rest = held.as_slice();
    while !rest.is_empty() {
        shared.store.health().map_err(|why| StoreError::Unavailable(why.into()))?;
        let (run, others) = rest.split_at(run_length(rest.iter().map(|it| &**it)));
        if append(shared, run).await.is_err() {
            // Some may have been answered otherwise by now.
            for message in run.iter().filter(|it| shared.held.contains(it.id)) {
                shared.store.health().map_err(|why| StoreError::Unavailable(why.into()))?;
                if let Err(error) = append(shared, std::slice::from_ref(message)).await {
                    failed(shared, message, &error);
                    return Err(error);
                }
            }
        }
        rest = others;
    }
    Ok(())
}

async fn append(shared: &Shared, run: &[Arc<Accepted>]) -> Result<(), StoreError> {
    let drafts = run.iter().map(|it| it.draft.clone()).collect();
    let outcomes = shared.store.append_run(was_accepted(), drafts).await?;
    for (message, outcome) in run.iter().zip(&outcomes) {
        shared.meters.rescued.increment(1);
        shared.tell(message, outcome);
    }
    Ok(())
}

/// What cannot be saved although others can is given up, or nothing after it ever would be.
fn failed(shared: &Shared, message: &Accepted, error: &StoreError) {
    if shared.held.failed(message.id, shared.saved()) >= shared.options.tries_max {
        tracing::error!(target: "nexo::intake", serverMsgId = %message.id, %error, "given up");
        shared.meters.dead.increment(1);
        shared.drop(message, Reason::InternalError);
    }
}
