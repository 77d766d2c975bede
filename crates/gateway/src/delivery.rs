//! An event becomes frames: encoded once, shared by all outboxes that get it.

use std::sync::Arc;

use nexo_chat::bus::Listener;
use nexo_chat::clock::Clock;
use nexo_chat::command::Event;
use nexo_chat::ids::{ConversationId, Seq};
use nexo_chat::model::ChangeKind;
use nexo_chat::policy::delivery::{Audience, who_hears};
use nexo_wire::typed;

use crate::measure::Measures;
use crate::outbox::Frame;
use crate::recalls::Recalls;
use crate::roster::Roster;

/// Puts events into the outboxes of those who hear them.
pub struct Delivery {
    /// Who is here.
    pub roster: Arc<Roster>,
    /// What was recalled a moment ago.
    pub recalls: Arc<Recalls>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What is counted.
    pub measures: Arc<Measures>,
}

impl Delivery {
    fn push(&self, event: &Event, audience: &Audience) {
        let now = self.clock.ticks();
        let mut encoded: Option<Frame> = None;
        for user in audience.users.iter().flatten() {
            self.roster.each_of(user, |connection| {
                if Some(connection.id) == audience.except {
                    return;
                }
                if encoded.is_none() {
                    encoded = typed::event(event).map(Frame::from);
                }
                let Some(frame) = &encoded else { return };
                if connection.outbox.push(frame.clone(), now) {
                    self.measures.pushed.increment(1);
                } else {
                    self.measures.dropped.increment(1);
                    if let Some((conversation, seq)) = concerns(event) {
                        connection.miss(conversation, seq);
                    }
                    tracing::debug!(
                        target: "nexo::push",
                        userId = %connection.user,
                        deviceId = %connection.login,
                        connId = connection.id.0,
                        result = "outbox full",
                        "push dropped",
                    );
                }
            });
        }
    }
}

/// The message a dropped push has to bring again: the new one, or the one that changed.
fn concerns(event: &Event) -> Option<(&ConversationId, Seq)> {
    match event {
        Event::Message { message, .. } => Some((&message.conversation, message.seq)),
        Event::Change { change, .. } => {
            let ChangeKind::Recalled { seq, .. } = change.kind;
            Some((&change.conversation, seq))
        }
        _ => None,
    }
}

impl Listener for Delivery {
    fn hear(&self, event: &Event) {
        if let Event::Change { change, .. } = event {
            self.recalls.note(change);
        }
        match event {
            Event::Message { .. }
            | Event::Change { .. }
            | Event::Receipt(_)
            | Event::Typing { .. } => {
                self.push(event, &who_hears(event));
            }
            Event::Ended { user, logins, reason } => self.roster.each_of(user, |connection| {
                if logins.includes(connection.login) {
                    connection.end(*reason);
                }
            }),
            Event::Closed { user, connections, reason } => {
                self.roster.each_of(user, |connection| {
                    if connections.contains(&connection.id) {
                        connection.end(*reason);
                    }
                });
            }
        }
    }
}
