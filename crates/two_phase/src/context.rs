//! What the coordinator and its workers share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nexo_chat::Reason;
use nexo_chat::bus::Bus;
use nexo_chat::clock::Clock;
use nexo_chat::event::{Dropped, Event};
use nexo_chat::ids::{ConversationId, MessageId};
use nexo_chat::model::Draft;
use nexo_chat::store::{Appended, Store, StoreError};
use nexo_chat::two_phase::MessageStatus;

use crate::accepted::{AcceptedMessage, shard_of};
use crate::log::AcceptedLog;
use crate::meters::Meters;
use crate::options::Options;
use crate::unsaved::UnsavedMessages;

/// Conversations are spread over this many locks.
const ORDER_LOCKS: usize = 64;

pub(crate) struct TwoPhaseContext {
    pub(crate) log: Arc<dyn AcceptedLog>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Options,
    /// The name of this process in the log.
    pub(crate) instance: Arc<str>,
    pub(crate) unsaved: UnsavedMessages,
    pub(crate) meters: Meters,
    /// Entries that were read to be saved, in all shards whose lease this node has.
    pub(crate) pending: AtomicU64,
    /// Messages this node has saved. While it grows, the store works.
    saved: AtomicU64,
    order_locks: [Mutex<()>; ORDER_LOCKS],
}

impl TwoPhaseContext {
    pub(crate) fn new(
        log: Arc<dyn AcceptedLog>,
        store: Arc<dyn Store>,
        bus: Arc<dyn Bus>,
        clock: Arc<dyn Clock>,
        options: Options,
        instance: Arc<str>,
    ) -> Self {
        Self {
            log,
            store,
            bus,
            clock,
            options,
            instance,
            unsaved: UnsavedMessages::default(),
            meters: Meters::default(),
            pending: AtomicU64::new(0),
            saved: AtomicU64::new(0),
            order_locks: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// Locked while a message of the conversation is added to `unsaved` and to the log, so that both
    /// have the same order.
    pub(crate) fn lock_order(&self, conversation: &ConversationId) -> MutexGuard<'_, ()> {
        let lock = &self.order_locks[shard_of(conversation, ORDER_LOCKS)];
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn saved_count(&self) -> u64 {
        self.saved.load(Ordering::Relaxed)
    }

    /// Publishes what became of a message, unless the store has announced it.
    pub(crate) fn report_outcome(&self, message: &AcceptedMessage, outcome: &Appended) {
        let reason = match outcome {
            Appended::Stored(_) => {
                self.saved.fetch_add(1, Ordering::Relaxed);
                return self.unsaved.remove(message.id);
            }
            Appended::Duplicate(stored) => {
                self.meters.dup_db.increment(1);
                self.bus.publish(Event::AcceptedSaved { message: Arc::clone(stored) });
                return self.unsaved.remove(message.id);
            }
            Appended::Conflict => Reason::ClientMsgIdConflict,
            Appended::Refused(reason) => *reason,
        };
        self.meters.refused.increment(1);
        self.report_dropped(message, reason);
    }

    /// Publishes that a message will never be saved.
    pub(crate) fn report_dropped(&self, message: &AcceptedMessage, reason: Reason) {
        let Draft { conversation, sender, client_id, .. } = message.draft.clone();
        let (id, at) = (message.id, self.clock.now());
        let dropped = Dropped { id, conversation, sender, client_id, reason, at };
        self.bus.publish(Event::Dropped(dropped));
        self.unsaved.remove(id);
    }

    /// Asks the log first: a message that has left it is in the store by then.
    pub(crate) async fn find_status(
        &self,
        conversation: &ConversationId,
        id: MessageId,
    ) -> Result<MessageStatus, StoreError> {
        let is_waiting = self.log.is_waiting(conversation, id).await;
        if is_waiting.map_err(|error| StoreError::Unavailable(Box::new(error)))? {
            return Ok(MessageStatus::Pending);
        }
        Ok(self.store.message(id).await?.map_or(MessageStatus::Lost, MessageStatus::Saved))
    }
}
