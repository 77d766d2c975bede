//! A cache of the newest messages, so that retries, acknowledgements and lookups soon after a send
//! do not touch the disk.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nexo_chat::ids::MessageId;
use nexo_chat::model::{Fingerprint, Message};

/// A message, and the fingerprint of the content it was sent with.
pub(crate) type FingerprintedMessage = (Arc<Message>, Fingerprint);

const COUNT_MAX: usize = 16_384;
const BYTES_MAX: usize = 32 << 20;

/// First in, first out, bounded by count and by bytes.
#[derive(Default)]
pub(crate) struct RecentMessages(Mutex<RecentState>);

#[derive(Default)]
struct RecentState {
    messages: HashMap<MessageId, FingerprintedMessage>,
    order: VecDeque<MessageId>,
    bytes: usize,
}

impl RecentMessages {
    fn state(&self) -> MutexGuard<'_, RecentState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, id: MessageId) -> Option<FingerprintedMessage> {
        self.state().messages.get(&id).cloned()
    }

    /// Caches the messages of a batch.
    pub(crate) fn publish(&self, batch: impl Iterator<Item = FingerprintedMessage>) {
        let mut state = self.state();
        for known in batch {
            let id = known.0.id;
            state.bytes += known.0.weight();
            match state.messages.insert(id, known) {
                // Recalled: it keeps its place in the order.
                Some((before, _)) => state.bytes -= before.weight(),
                None => state.order.push_back(id),
            }
        }
        while state.order.len() > COUNT_MAX || state.bytes > BYTES_MAX {
            let Some(oldest) = state.order.pop_front() else { break };
            if let Some((message, _)) = state.messages.remove(&oldest) {
                state.bytes -= message.weight();
            }
        }
    }
}
