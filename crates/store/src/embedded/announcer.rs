//! Tells the listener what became durable, and the callers that their writes did. While more writes
//! wait, a thread of its own does that, so that the committer can sync the next batch meanwhile.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use super::committer::DurableBatch;
use super::core::Core;

/// Announces each batch, until the committer ends.
pub(crate) fn run(core: &Arc<Core>, batches: &Receiver<DurableBatch>) {
    for batch in batches {
        announce(core, batch);
        core.announcing.fetch_sub(1, Ordering::Release);
    }
}

/// Announces a batch, then completes its writes.
pub(crate) fn announce(core: &Core, batch: DurableBatch) {
    let DurableBatch { events, completions } = batch;
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
