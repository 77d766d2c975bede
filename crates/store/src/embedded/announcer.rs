//! The announcer thread: passes durable batches to the listener while the committer syncs the next
//! one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use super::committer::DurableBatch;
use super::core::Core;

/// Announces each batch, then completes its writes, until the committer ends.
pub(crate) fn run(core: &Arc<Core>, batches: &Receiver<DurableBatch>) {
    for DurableBatch { events, completions } in batches {
        if let (false, Some(listener)) = (events.is_empty(), core.listener.get()) {
            // A listener that panics misses a batch; the messages are durable all the same.
            if catch_unwind(AssertUnwindSafe(|| listener.on_committed(&events))).is_err() {
                tracing::error!(target: "nexo::store", "the listener panicked");
            }
        }
        for completion in completions {
            completion();
        }
    }
}
