//! Looks for what this node accepted and did not hear of again: it was saved and the word got lost,
//! or it is on its way, or the log has lost it. Then it is saved from memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

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

/// Works until it is stopped.
pub(crate) async fn rescue(shared: Arc<Shared>) {
    let after_ms = u64::try_from(shared.options.rescue_after.as_millis()).unwrap_or(u64::MAX);
    loop {
        sleep(EVERY).await;
        let due = shared.held.due(shared.clock.ticks(), after_ms, LOOK_MAX);
        if let Err(error) = look(&shared, due).await {
            tracing::debug!(target: "nexo::intake", %error, "accepted messages cannot be looked for");
        }
    }
}

/// Rescues by conversation: what is held of it keeps its order.
pub(crate) async fn look(shared: &Shared, due: Vec<Arc<Accepted>>) -> Result<(), StoreError> {
    let mut lost: BTreeMap<ConversationId, Arc<Accepted>> = BTreeMap::new();
    for message in due {
        let conversation = &message.draft.conversation;
        if shared.options.fail_open && shared.log.health().is_err() {
            lost.insert(conversation.clone(), message);
            continue;
        }
        match shared.whereabouts(conversation, message.id).await? {
            Whereabouts::Open => {}
            Whereabouts::Saved(stored) => {
                shared.bus.publish(Event::Settled { message: stored });
                shared.settled(message.id);
            }
            Whereabouts::Nowhere => drop(lost.insert(conversation.clone(), message)),
        }
    }
    for last in lost.into_values() {
        match save(shared, &last).await {
            Err(error) if shared.store.health().is_err() => return Err(error),
            // Something is wrong with this conversation alone.
            Err(error) => tracing::warn!(target: "nexo::intake", %error, "not rescued yet"),
            Ok(()) => {}
        }
    }
    Ok(())
}

async fn save(shared: &Shared, last: &Accepted) -> Result<(), StoreError> {
    let held = shared.held.up_to(last);
    let mut rest = held.as_slice();
    while !rest.is_empty() {
        let (run, others) = rest.split_at(run_length(rest.iter().map(|it| &**it)));
        let drafts = run.iter().map(|it| it.draft.clone()).collect();
        let outcomes = shared.store.append_run(was_accepted(), drafts).await?;
        for (message, outcome) in run.iter().zip(&outcomes) {
            shared.meters.rescued.increment(1);
            shared.tell(message, outcome);
        }
        rest = others;
    }
    Ok(())
}
