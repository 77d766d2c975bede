//! What was settled a moment ago, so that nobody shows it as unsaved.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use nexo_chat::ids::MessageId;

const GENERATION: usize = 32_768;

/// The last messages, some tens of thousands.
#[derive(Default)]
pub(crate) struct Recent(Mutex<[HashSet<MessageId>; 2]>);

impl Recent {
    pub(crate) fn add(&self, id: MessageId) {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if generations[0].len() >= GENERATION {
            generations.swap(0, 1);
            generations[0].clear();
        }
        generations[0].insert(id);
    }

    pub(crate) fn contains(&self, id: MessageId) -> bool {
        let generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        generations.iter().any(|generation| generation.contains(&id))
    }
}
