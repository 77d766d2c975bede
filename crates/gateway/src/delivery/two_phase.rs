//! Tells the sockets that know a message before it is saved what became of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nexo_chat::Reason;
use nexo_chat::event::{Dropped, Event};
use nexo_chat::ids::{ConnectionId, MessageId};
use nexo_chat::model::Message;
use nexo_chat::two_phase::MessageStatus;
use nexo_wire::dialect::View;

use crate::delivery::background::Background;
use crate::delivery::fanout::Fanout;
use crate::delivery::two_phase_waiters::{
    MessageRef, OverdueMessage, Resolution, ResolvedSocket, TwoPhaseWaiters,
};
use crate::delivery::wake_batch::WakeBatch;
use crate::socket::outbox::Pushed;
use crate::socket::timings;

/// A message that is not resolved for this long is overdue.
const OVERDUE_AFTER_MS: u64 = 5_000;
/// Overdue messages checked at a time.
const CHECKED_MAX: usize = 500;
/// On a node without two-phase sends, a message counts as lost only after this many times the expiry:
/// the node that accepted it cannot be asked.
const REMOTE_FACTOR: u64 = 10;

pub(crate) struct TwoPhaseDelivery {
    pub(crate) waiters: TwoPhaseWaiters,
    fanout: Arc<Fanout>,
    background: Background,
    /// Whether a check of overdue messages is running.
    is_checking: AtomicBool,
}

impl TwoPhaseDelivery {
    pub(crate) fn new(fanout: Arc<Fanout>, background: Background) -> Self {
        let (waiters, is_checking) = (TwoPhaseWaiters::default(), AtomicBool::new(false));
        Self { waiters, fanout, background, is_checking }
    }

    /// A message is saved: tells its seq to the sockets that know it, and returns them. All others
    /// have to get the message itself.
    pub(crate) fn resolve_saved(
        &self,
        message: &Arc<Message>,
        wakes: &mut WakeBatch,
    ) -> Vec<ConnectionId> {
        self.notify_resolved(message.id);
        let sockets = self.waiters.resolve(message.id, &Resolution::Saved(Arc::clone(message)));
        if sockets.is_empty() {
            return Vec::new();
        }
        let event = Event::AcceptedSaved { message: Arc::clone(message) };
        let mut encoded = self.fanout.encoded(&event);
        for socket in &sockets {
            self.fanout.push_to(&mut encoded, &socket.connection, wakes);
            // A socket that was told "accepted" gets this push as its ACK(saved).
            if let Some(times) = socket.times {
                self.fanout.meters.acks_saved.increment(1);
                self.fanout.meters.save_seconds.record(times.received_at.elapsed());
                timings::log_saved(message, times);
            }
        }
        sockets.iter().map(|socket| socket.connection.id).collect()
    }

    /// A message will never be saved: tells the sockets that know it, the sender's as a refusal. The
    /// store has no trace of the message, so a push dropped by a full outbox could not be resent:
    /// it is queued like a reply.
    pub(crate) fn resolve_dropped(&self, dropped: &Dropped) {
        self.notify_resolved(dropped.id);
        let event = Event::Dropped(dropped.clone());
        let resolution = Resolution::Dropped(dropped.clone());
        for ResolvedSocket { connection, is_sender, .. } in
            self.waiters.resolve(dropped.id, &resolution)
        {
            let view = View { is_own: is_sender, ..View::default() };
            if let Some(frame) = connection.dialect.event(&event, view) {
                connection.outbox.push_reply(frame.into(), || self.fanout.clock.ticks());
                connection.outbox.wake();
            }
        }
    }

    /// A message was dropped, and then a send of it was accepted. Asks the log whether that send put
    /// the message in again, or was the one that was dropped.
    pub(crate) fn recheck_dropped(self: &Arc<Self>, dropped: Dropped) {
        let this = Arc::clone(self);
        self.background.spawn(async move {
            let chat = this.background.chat();
            let Some(two_phase) = chat.and_then(|chat| chat.two_phase.clone()) else { return };
            let status = two_phase.status(&dropped.conversation, dropped.id).await;
            // On an error the check of overdue messages finds it later.
            if let Ok(MessageStatus::Lost) = status {
                this.resolve_dropped(&dropped);
            }
        });
    }

    fn notify_resolved(&self, id: MessageId) {
        if let Some(chat) = self.background.chat()
            && let Some(two_phase) = &chat.two_phase
        {
            two_phase.on_resolved(id);
        }
    }

    /// Shows a message that is not saved yet, once to each socket.
    pub(crate) fn push_preview(
        &self,
        event: &Event,
        message: &Message,
        origin: Option<ConnectionId>,
        wakes: &mut WakeBatch,
    ) {
        let Some((a, b)) = message.conversation.pair() else { return };
        if self.fanout.recalls.without_text(message).is_some() {
            return; // a recalled message was saved before: this is a repeated send of it
        }
        let mut encoded = self.fanout.encoded(event);
        let now = self.fanout.clock.ticks();
        let Message { id, conversation, sender, client_id, .. } = message;
        let message = MessageRef { id: *id, conversation, sender, client_id };
        for user in [a, b] {
            self.fanout.connections.for_each_of(&user, |connection| {
                let is_shown =
                    Some(connection.id) != origin && connection.dialect.supports_two_phase();
                let blocks = connection.user != *sender && connection.blocks(conversation);
                let Some(frame) = encoded.frame(connection).filter(|_| is_shown && !blocks) else {
                    return;
                };
                self.waiters.show_preview(&message, connection, now, || {
                    match connection.outbox.push_without_wake(frame, || now, false) {
                        Pushed::First => wakes.add(connection),
                        Pushed::Queued | Pushed::Deferred => {}
                        // It gets the message itself once it is saved.
                        Pushed::Dropped => return false,
                    }
                    true
                });
            });
        }
    }

    /// Starts a check of overdue messages, unless one is running.
    pub(crate) fn check_overdue(self: &Arc<Self>) {
        if self.is_checking.swap(true, Ordering::SeqCst) {
            return;
        }
        let this = Arc::clone(self);
        self.background.spawn(async move {
            let now = this.fanout.clock.ticks();
            for message in this.waiters.take_overdue(now, OVERDUE_AFTER_MS, CHECKED_MAX) {
                if this.check_message(message).await.is_none() {
                    break; // the log or the store does not answer
                }
            }
            this.is_checking.store(false, Ordering::SeqCst);
        });
    }

    /// Resolves an overdue message if it is saved or lost; `None` if its status cannot be read now.
    async fn check_message(&self, overdue: OverdueMessage) -> Option<()> {
        let OverdueMessage { id, conversation, sender, client_id, age_ms } = overdue;
        let chat = self.background.chat()?;
        let expires_ms = chat.rules.preview_ms;
        let status = match &chat.two_phase {
            Some(two_phase) => two_phase.status(&conversation, id).await.ok()?,
            None => match chat.store.message(id).await.ok()? {
                Some(message) => MessageStatus::Saved(message),
                None if age_ms < expires_ms * REMOTE_FACTOR => MessageStatus::Pending,
                None => MessageStatus::Lost,
            },
        };
        match status {
            MessageStatus::Pending => {}
            MessageStatus::Saved(message) => {
                drop(self.resolve_saved(&message, &mut WakeBatch::default()));
            }
            MessageStatus::Lost if age_ms < expires_ms => {}
            MessageStatus::Lost => {
                let (reason, at) = (Reason::ServerBusy, chat.clock.now());
                let dropped = Dropped { id, conversation, sender, client_id, reason, at };
                self.fanout.meters.expired.increment(1);
                self.resolve_dropped(&dropped);
            }
        }
        Some(())
    }
}
