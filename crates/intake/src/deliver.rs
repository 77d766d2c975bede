//! Shows messages to their receivers before they are saved.

use nexo_chat::command::Event;

use crate::log::{Lost, Role, Tenure};
use crate::two_phase::Shared;

/// Works until the shard is lost.
pub(crate) async fn deliver(shared: &Shared, tenure: &dyn Tenure) -> Lost {
    loop {
        if let Err(lost) = round(shared, tenure).await {
            return lost;
        }
    }
}

async fn round(shared: &Shared, tenure: &dyn Tenure) -> Result<(), Lost> {
    let options = &shared.options;
    let entries = tenure.next(Role::Deliver, options.batch_size, options.block).await?;
    if entries.is_empty() {
        return Ok(());
    }
    if shared.bus.health().is_err() {
        shared.meters.deliver_fail.increment(entries.len() as u64); // heard on this node only
    }
    let mut events = Vec::with_capacity(entries.len());
    for entry in &entries {
        let message = &entry.message;
        // In a group, who may hear a message is only known by its place.
        if message.draft.conversation.group().is_none() {
            let (message, origin) = (message.preview(), message.draft.origin);
            events.push(Event::Preview { message, origin });
        }
    }
    shared.bus.publish_all(events);
    tenure.shown(entries).await
}
