//! The newest messages, so that retries, acknowledgements and look-ups soon after a send do not
//! touch the disk.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nexo_chat::ids::MessageId;
use nexo_chat::model::{Fingerprint, Message};

/// A message and what its content stood for.
pub(crate) type Known = (Arc<Message>, Fingerprint);

const COUNT_MAX: usize = 16_384;
const BYTES_MAX: usize = 32 << 20;

/// First in, first out, bounded by number and by bytes.
#[derive(Default)]
pub(crate) struct Recent(Mutex<State>);

#[derive(Default)]
struct State {
    known: HashMap<MessageId, Known>,
    order: VecDeque<MessageId>,
    bytes: usize,
}

impl Recent {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, id: MessageId) -> Option<Known> {
        self.state().known.get(&id).cloned()
    }

    /// Takes over the messages of a batch.
    pub(crate) fn publish(&self, batch: impl Iterator<Item = Known>) {
        let mut state = self.state();
        for known in batch {
            let id = known.0.id;
            state.bytes += known.0.weight();
            match state.known.insert(id, known) {
                // Recalled: it keeps its place in the order.
                Some((before, _)) => state.bytes -= before.weight(),
                None => state.order.push_back(id),
            }
        }
        while state.order.len() > COUNT_MAX || state.bytes > BYTES_MAX {
            let Some(oldest) = state.order.pop_front() else { break };
            if let Some((message, _)) = state.known.remove(&oldest) {
                state.bytes -= message.weight();
            }
        }
    }
}
