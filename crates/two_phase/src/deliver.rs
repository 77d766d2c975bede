//! Previews messages to their receivers before they are saved.

use nexo_chat::event::Event;

use crate::context::TwoPhaseContext;
use crate::log::{ConsumerGroup, LeaseLost, ShardLease};

/// Runs until the lease is lost.
pub(crate) async fn deliver(context: &TwoPhaseContext, lease: &dyn ShardLease) -> LeaseLost {
    loop {
        if let Err(lost) = deliver_batch(context, lease).await {
            return lost;
        }
    }
}

async fn deliver_batch(context: &TwoPhaseContext, lease: &dyn ShardLease) -> Result<(), LeaseLost> {
    let options = &context.options;
    let entries =
        lease.read_next(ConsumerGroup::Deliver, options.batch_size, options.block).await?;
    if entries.is_empty() {
        return Ok(());
    }
    if context.bus.health().is_err() {
        context.meters.deliver_fail.increment(entries.len() as u64); // the events reach this node only
    }
    let mut events = Vec::with_capacity(entries.len());
    for entry in &entries {
        let message = &entry.message;
        // In a group, the seq of a message decides who may see it, and a preview has none.
        if message.draft.conversation.group().is_none() {
            let (message, origin) = (message.preview(), message.draft.origin);
            events.push(Event::Preview { message, origin });
        }
    }
    context.bus.publish_all(&events);
    lease.acknowledge_delivered(entries).await
}
