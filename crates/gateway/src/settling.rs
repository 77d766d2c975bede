//! Tells those who know a message before it was saved what became of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nexo_chat::Reason;
use nexo_chat::command::{Dropped, Event};
use nexo_chat::ids::{ConnectionId, MessageId};
use nexo_chat::intake::Whereabouts;
use nexo_chat::model::Message;
use nexo_chat::policy::delivery::Way;
use nexo_wire::dialect::View;

use crate::delivery::Delivery;
use crate::outbox::Pushed;
use crate::parcel::Parcel;
use crate::unsettled::{Asked, Fate, Named, Told};
use crate::wakes::Wakes;

/// What nobody heard of for this long is looked for.
const LOOK_AFTER_MS: u64 = 5_000;
/// Messages looked for at a time.
const LOOK_MAX: usize = 500;
/// So much longer one waits where only others can know what is on its way.
const ELSEWHERE: u64 = 10;

/// Whether somebody is looking.
#[derive(Default)]
pub struct Settling(AtomicBool);

impl Delivery {
    /// A message is saved: tells those who know it its place, and returns them. Everybody else gets
    /// the message itself.
    pub(crate) fn settle(&self, message: &Arc<Message>, wakes: &mut Wakes) -> Vec<ConnectionId> {
        self.is_settled(message.id);
        let knowing = self.unsettled.take(message.id, &Fate::Saved(Arc::clone(message)));
        if knowing.is_empty() {
            return Vec::new();
        }
        let event = Event::Settled { message: Arc::clone(message) };
        let mut parcel = Parcel::new(&event, Way::Push, self.clock.ticks(), &self.measures);
        for told in &knowing {
            self.hand_over(&mut parcel, &told.connection, wakes);
        }
        knowing.iter().map(|told| told.connection.id).collect()
    }

    /// A message will never be saved: those who know it are told, the socket that sent it that it is
    /// refused. There is no other way to find that out, so it finds room in every outbox.
    pub(crate) fn drop_known(&self, dropped: &Dropped) {
        self.is_settled(dropped.id);
        let event = Event::Dropped(dropped.clone());
        let fate = Fate::Dropped(dropped.clone());
        for Told { connection, has_sent } in self.unsettled.take(dropped.id, &fate) {
            let view = View { is_own: has_sent, ..View::default() };
            if let Some(frame) = connection.dialect.event(&event, view) {
                connection.outbox.push_own(frame.into(), self.clock.ticks());
                connection.outbox.wake();
            }
        }
    }

    /// A message was dropped while a send of it was not answered yet, and then that was accepted: it
    /// is the one that was dropped, or it was put in again after that.
    pub(crate) fn doubt(&self, dropped: Dropped) {
        let Some(me) = self.me.upgrade() else { return };
        self.runtime.spawn(async move {
            let Some(intake) = me.chat.upgrade().and_then(|chat| chat.intake.clone()) else {
                return;
            };
            let found = intake.whereabouts(&dropped.conversation, dropped.id).await;
            // What cannot be found out now is looked for later.
            if let Ok(Whereabouts::Nowhere) = found {
                me.drop_known(&dropped);
            }
        });
    }

    fn is_settled(&self, id: MessageId) {
        if let Some(intake) = self.chat.upgrade().and_then(|chat| chat.intake.clone()) {
            intake.settled(id);
        }
    }

    /// Shows a message that is not saved yet, once to each socket.
    pub(crate) fn preview(&self, event: &Event, wakes: &mut Wakes) {
        let Event::Preview { message, origin } = event else { return };
        let Some((a, b)) = message.conversation.pair() else { return };
        if self.recalls.without_text(message).is_some() {
            return; // its sender says again what they took back: it was saved before
        }
        let now = self.clock.ticks();
        let mut parcel = Parcel::new(event, Way::Push, now, &self.measures);
        let Message { id, conversation, sender, client_id, .. } = &**message;
        let named = Named { id: *id, conversation, sender, client_id };
        for user in [a, b] {
            self.roster.each_of(&user, |connection| {
                let is_told = Some(connection.id) != *origin && connection.dialect.knows_accepted();
                let blocks = connection.user != *sender && connection.blocks(conversation);
                let Some(frame) = parcel.frame(connection).filter(|_| is_told && !blocks) else {
                    return;
                };
                self.unsettled.show(&named, connection, now, || {
                    match connection.outbox.push_quietly(frame, now) {
                        Pushed::First => wakes.add(connection),
                        Pushed::Behind => {}
                        // They get the message itself, once it is saved.
                        Pushed::Dropped => return false,
                    }
                    true
                });
            });
        }
    }

    /// Looks for messages that were accepted a while ago and of which nobody heard more.
    pub(crate) fn look_for_unsettled(&self) {
        let Some(me) = self.me.upgrade() else { return };
        if self.settling.0.swap(true, Ordering::SeqCst) {
            return;
        }
        self.runtime.spawn(async move {
            for (id, asked) in me.unsettled.due(me.clock.ticks(), LOOK_AFTER_MS, LOOK_MAX) {
                if me.look_for(id, asked).await.is_none() {
                    break; // whoever could tell cannot be asked now
                }
            }
            me.settling.0.store(false, Ordering::SeqCst);
        });
    }

    async fn look_for(&self, id: MessageId, asked: Asked) -> Option<()> {
        let chat = self.chat.upgrade()?;
        let expires_ms = chat.rules.preview_ms;
        let whereabouts = match &chat.intake {
            Some(intake) => intake.whereabouts(&asked.conversation, id).await.ok()?,
            // Other nodes accept messages, and may still have it for a while.
            None => match chat.store.message(id).await.ok()? {
                Some(message) => Whereabouts::Saved(message),
                None if asked.age_ms < expires_ms * ELSEWHERE => Whereabouts::Open,
                None => Whereabouts::Nowhere,
            },
        };
        match whereabouts {
            Whereabouts::Open => {}
            Whereabouts::Saved(message) => drop(self.settle(&message, &mut Wakes::default())),
            Whereabouts::Nowhere if asked.age_ms < expires_ms => {}
            Whereabouts::Nowhere => {
                let Asked { conversation, sender, client_id, .. } = asked;
                let (reason, at) = (Reason::ServerBusy, chat.clock.now());
                let dropped = Dropped { id, conversation, sender, client_id, reason, at };
                self.measures.expired.increment(1);
                self.drop_known(&dropped);
            }
        }
        Some(())
    }
}
