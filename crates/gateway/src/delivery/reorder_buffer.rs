//! Holds the events of a group that arrived before changes they depend on, until those are applied.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nexo_chat::event::Event;
use nexo_chat::ids::ConversationId;

use crate::delivery::sequencer::Sequencer;
use crate::delivery::wake_batch::WakeBatch;

/// Events buffered per group; sockets resend further ones from the store.
const BUFFERED_MAX: usize = 1000;
/// Between two reads of the missing changes.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// If the missing changes are not in the store by then, sockets resend everything from the store.
const GIVE_UP_AFTER: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(crate) struct ReorderBuffer {
    events: Mutex<HashMap<ConversationId, Vec<Event>>>,
    /// Number of conversations in the map, so that the common case, none, takes no lock.
    count: AtomicUsize,
}

/// The result of buffering an event.
enum Buffered {
    /// It is the first of its conversation: the caller starts the task that drains the buffer.
    First,
    Queued,
    TooMany,
}

impl ReorderBuffer {
    fn events(&self) -> MutexGuard<'_, HashMap<ConversationId, Vec<Event>>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether events of this conversation are buffered, so that newer ones have to queue behind.
    pub(crate) fn is_waiting(&self, conversation: &ConversationId) -> bool {
        self.count.load(Ordering::SeqCst) > 0 && self.events().contains_key(conversation)
    }

    fn push(&self, conversation: &ConversationId, event: &Event) -> Buffered {
        let mut events = self.events();
        match events.get_mut(conversation) {
            Some(waiting) if waiting.len() >= BUFFERED_MAX => return Buffered::TooMany,
            Some(waiting) => {
                waiting.push(event.clone());
                return Buffered::Queued;
            }
            None => {}
        }
        events.insert(conversation.clone(), vec![event.clone()]);
        self.count.store(events.len(), Ordering::SeqCst);
        Buffered::First
    }

    /// Takes the buffered events, oldest first. The conversation still counts as waiting.
    fn take(&self, conversation: &ConversationId) -> Vec<Event> {
        self.events().get_mut(conversation).map(std::mem::take).unwrap_or_default()
    }

    /// Puts events back before those that arrived since [`Self::take`].
    fn put_back(&self, conversation: &ConversationId, mut events: Vec<Event>) {
        let mut buffer = self.events();
        let waiting = buffer.entry(conversation.clone()).or_default();
        events.append(waiting);
        *waiting = events;
    }

    /// Removes the conversation if it has no events left; returns whether it did.
    fn remove_if_empty(&self, conversation: &ConversationId) -> bool {
        let mut events = self.events();
        let is_empty = events.get(conversation).is_none_or(Vec::is_empty);
        if is_empty {
            events.remove(conversation);
            self.count.store(events.len(), Ordering::SeqCst);
        }
        is_empty
    }
}

impl Sequencer {
    /// Buffers an event until this node has applied the changes before it.
    pub(super) fn buffer(self: &Arc<Self>, event: &Event, conversation: &ConversationId) {
        match self.reorder_buffer.push(conversation, event) {
            Buffered::First => {
                let drain = Arc::clone(self).drain_buffer(conversation.clone());
                self.background.spawn(drain);
            }
            Buffered::Queued => {}
            Buffered::TooMany => self.fanout.record_missed_by_group(event),
        }
    }

    /// Reads the missing changes, then releases the buffered events, until none is left.
    async fn drain_buffer(self: Arc<Self>, conversation: ConversationId) {
        let deadline = Instant::now() + GIVE_UP_AFTER;
        loop {
            let Some(store) = self.background.store() else { return };
            if let Err(error) = self.read_changes(&*store, &conversation).await {
                tracing::debug!(target: "nexo::push", %error, "the changes cannot be read yet");
            }
            let mut events = self.reorder_buffer.take(&conversation);
            {
                let mut wakes = WakeBatch::default();
                let still = events.iter().position(|event| !self.release(event, &mut wakes));
                events.drain(..still.unwrap_or(events.len()));
                if Instant::now() >= deadline {
                    events.drain(..).for_each(|event| self.fanout.record_missed_by_group(&event));
                }
            }
            self.reorder_buffer.put_back(&conversation, events);
            if self.reorder_buffer.remove_if_empty(&conversation) {
                return;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Delivers a buffered event; returns `false` if it has to wait longer. A change was applied
    /// when it was read from the store, if this node still has subscribers.
    fn release(&self, event: &Event, wakes: &mut WakeBatch) -> bool {
        match event {
            Event::Change { change, .. } => {
                let known = self.fanout.subscriptions.known_change_seq(&change.conversation);
                known.is_none_or(|known| known >= change.seq)
            }
            _ => self.fanout.push_message(event, &[], wakes),
        }
    }
}
