//! An event finds the sockets that receive it and goes into their outboxes. In reading order:
//!
//! - `connections`: the sockets of each user on this node
//! - `subscriptions`: the sockets that receive a group; `subscribe_all`: subscribes a new socket;
//!   `online_count`: how many members are online on all nodes
//! - `encoded`: an event as frames, encoded once per dialect
//! - `wake_batch`: wakes sessions after a whole batch; `deferred_wakes`: after a moment
//! - `recalls`: recalled messages whose text must not be sent any more
//! - `fanout`: pushes an event into outboxes
//! - `sequencer`: applies the events of a group in the order they were stored
//! - `reorder_buffer`: events that wait until this node has applied the changes before them
//! - `backfill`: messages stored before this node subscribed to a group
//! - `resync`: every socket compares with the store after events were lost between nodes
//! - `two_phase`, `two_phase_waiters`: sockets that know a message before it is saved
//! - `background`: the domain and the runtime, for the tasks that events start

mod backfill;
mod background;
mod connections;
mod deferred_wakes;
mod encoded;
pub(crate) mod fanout;
mod online_count;
mod recalls;
mod reorder_buffer;
pub(crate) mod resync;
mod sequencer;
mod subscribe_all;
mod subscriptions;
mod two_phase;
pub(crate) mod two_phase_waiters;
mod wake_batch;

use std::sync::Arc;

use nexo_chat::Chat;
use nexo_chat::bus::Listener;
use nexo_chat::event::Event;
use nexo_chat::ids::{ConversationId, UserId};
use nexo_chat::model::{Message, Receive};

use crate::delivery::background::Background;
use crate::delivery::fanout::Fanout;
use crate::delivery::resync::{Resync, ResyncCause};
use crate::delivery::sequencer::Sequencer;
use crate::delivery::two_phase::TwoPhaseDelivery;
use crate::delivery::wake_batch::WakeBatch;

/// Dispatches the events of the bus to the parts that deliver them.
pub(crate) struct Delivery {
    pub(crate) two_phase: Arc<TwoPhaseDelivery>,
    pub(crate) resync: Arc<Resync>,
    fanout: Arc<Fanout>,
    sequencer: Arc<Sequencer>,
    background: Background,
}

impl Delivery {
    /// Must be called within the runtime.
    pub(crate) fn new(chat: &Arc<Chat>, fanout: &Arc<Fanout>) -> Self {
        let background = Background::new(chat);
        let sequencer = Arc::new(Sequencer::new(Arc::clone(fanout), background.clone()));
        Self {
            two_phase: Arc::new(TwoPhaseDelivery::new(Arc::clone(fanout), background.clone())),
            resync: Arc::new(Resync::new(Arc::clone(&sequencer))),
            fanout: Arc::clone(fanout),
            sequencer,
            background,
        }
    }

    fn deliver(&self, event: &Event, wakes: &mut WakeBatch) {
        match event {
            Event::Message { message, .. } => self.deliver_message(event, message, wakes),
            Event::Change { change, .. } => self.sequencer.deliver_change(event, change, wakes),
            Event::Receipt(_) | Event::Typing { .. } | Event::JoinAnswered { .. } => {
                self.fanout.push(event, wakes);
            }
            Event::Preview { message, origin } => {
                self.two_phase.push_preview(event, message, *origin, wakes);
            }
            Event::AcceptedSaved { message } => drop(self.two_phase.resolve_saved(message, wakes)),
            Event::Dropped(dropped) => self.two_phase.resolve_dropped(dropped),
            Event::JoinRequested { to, .. } => self.fanout.push_to_users(event, to, wakes),
            Event::Online { group, instance, people, asks } => {
                let now = self.fanout.clock.ticks();
                self.fanout.subscriptions.on_remote_online(group, (instance, people), *asks, now);
            }
            Event::Profile { user, within, .. } => {
                // A deletion publishes the empty profile.
                if let Some(chat) = self.background.chat() {
                    chat.store.forget_user(user);
                }
                self.fanout.push_profile(event, user, within, wakes);
            }
            Event::Settings { user, conversation, settings } => {
                self.apply_receive(user, conversation, settings.receive);
                self.fanout.push(event, wakes);
            }
            Event::Ended { user, logins, reason } => {
                self.fanout.connections.for_each_of(user, |connection| {
                    if logins.includes(connection.login) {
                        connection.close(*reason);
                    }
                });
            }
            Event::Closed { user, connections, reason } => {
                self.fanout.connections.for_each_of(user, |connection| {
                    if connections.contains(&connection.id) {
                        connection.close(*reason);
                    }
                });
            }
        }
    }

    /// Sockets that know the message already get its seq only; the others get the message.
    fn deliver_message(&self, event: &Event, message: &Arc<Message>, wakes: &mut WakeBatch) {
        if let Some(chat) = self.background.chat() {
            chat.store.note_remote_message(message);
        }
        let resolved = self.two_phase.resolve_saved(message, wakes);
        self.sequencer.deliver_message(event, message, &resolved, wakes);
    }

    fn apply_receive(&self, user: &UserId, conversation: &ConversationId, receive: Receive) {
        self.fanout.connections.for_each_of(user, |connection| {
            connection.note_standing_change();
            connection.set_blocked(conversation, receive == Receive::Blocked);
        });
    }
}

impl Listener for Delivery {
    fn on_event(&self, event: &Event) {
        self.deliver(event, &mut WakeBatch::default());
    }

    fn on_events(&self, events: &[Event]) {
        let mut wakes = WakeBatch::outside(self.background.runtime());
        for event in events {
            self.deliver(event, &mut wakes);
        }
    }

    fn on_loss(&self) {
        self.resync.request(ResyncCause::EventsLost);
    }
}
