//! Tells of durable batches while the committer syncs the next one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use super::committer::Finished;
use super::core::Core;

/// Announces each batch, then answers its writes, until the committer is gone.
pub(crate) fn run(core: &Arc<Core>, batches: &Receiver<Finished>) {
    for Finished { kept, answers } in batches {
        if let (false, Some(listener)) = (kept.is_empty(), core.listener.get()) {
            // A listener that panics misses a batch; the messages are durable all the same.
            if catch_unwind(AssertUnwindSafe(|| listener.committed(&kept))).is_err() {
                tracing::error!(target: "nexo::store", "the listener panicked");
            }
        }
        for answer in answers {
            answer();
        }
    }
}
