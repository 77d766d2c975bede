//! An event becomes frames: encoded once, shared by all outboxes that get it.

use std::sync::Arc;

use nexo_chat::bus::Listener;
use nexo_chat::clock::Clock;
use nexo_chat::command::Event;
use nexo_chat::ids::{ConversationId, Millis, Seq, UserId};
use nexo_chat::model::{Change, ChangeKind, Message, Receive, Window};
use nexo_chat::policy::delivery::{Audience, Way, is_important, which_way, who_hears};
use nexo_chat::rules::GroupRules;
use nexo_wire::typed;

use crate::connection::Connection;
use crate::groups::{Groups, people};
use crate::measure::Measures;
use crate::outbox::Frame;
use crate::recalls::Recalls;
use crate::roster::Roster;

/// Puts events into the outboxes of those who hear them.
pub struct Delivery {
    /// Who is here.
    pub roster: Arc<Roster>,
    /// Who of them hears which group.
    pub groups: Arc<Groups>,
    /// How groups hear.
    pub rules: GroupRules,
    /// What was recalled a moment ago.
    pub recalls: Arc<Recalls>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What is counted.
    pub measures: Arc<Measures>,
}

/// An event on its way to many: each form of it is encoded when it is first needed.
struct Parcel<'a> {
    event: &'a Event,
    way: Way,
    now: Millis,
    plain: Option<Frame>,
    important: Option<Frame>,
}

impl<'a> Parcel<'a> {
    fn new(event: &'a Event, way: Way, now: Millis) -> Self {
        Self { event, way, now, plain: None, important: None }
    }

    /// The frame for somebody, if there is anything to say to them.
    fn frame(&mut self, user: &UserId) -> Option<&Frame> {
        let message = message_of(self.event);
        let is_important = message.is_some_and(|message| is_important(message, user));
        let frame = if is_important { &mut self.important } else { &mut self.plain };
        if frame.is_none() {
            let text = match (self.way, message) {
                (Way::Nothing, _) => None,
                (Way::Notify, Some(message)) => Some(typed::group_notify(message, is_important)),
                (Way::Push | Way::Notify, _) => typed::event(self.event, is_important),
            };
            *frame = text.map(Frame::from);
        }
        frame.as_ref()
    }
}

impl Delivery {
    fn push(&self, event: &Event, audience: &Audience) {
        let now = self.clock.ticks();
        let mut parcel = Parcel::new(event, Way::Push, now);
        for user in audience.users.iter().flatten() {
            self.roster.each_of(user, |connection| {
                if Some(connection.id) != audience.except {
                    self.hand_over(&mut parcel, connection);
                }
            });
        }
        let Some(group) = &audience.group else { return };
        self.groups.with(group, |ears| {
            if let Event::Message { members, .. } = event {
                let online = people(ears, self.rules.notify_online.min(self.rules.none_online));
                parcel.way = which_way(&self.rules, *members, online);
            }
            for ear in ears {
                let is_visible = match event {
                    Event::Message { message, .. } => message.seq >= ear.min,
                    Event::Change { change, .. } => change.seq >= ear.change_min,
                    _ => true,
                };
                let is_left_out = Some(ear.connection.id) == audience.except
                    || audience.not_to.as_ref() == Some(&ear.connection.user);
                if is_visible && !is_left_out {
                    self.hand_over(&mut parcel, &ear.connection);
                }
            }
        });
    }

    fn hand_over(&self, parcel: &mut Parcel<'_>, connection: &Connection) {
        let chatter = chatter_for(parcel.event, &connection.user);
        if chatter.is_some_and(|conversation| connection.blocks(conversation)) {
            return;
        }
        let now = parcel.now;
        let Some(frame) = parcel.frame(&connection.user) else { return };
        if connection.outbox.push(frame.clone(), now) {
            self.measures.pushed.increment(1);
            return;
        }
        self.measures.dropped.increment(1);
        if let (Some((conversation, seq)), Way::Push) = (concerns(parcel.event), parcel.way) {
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

    /// Lets newcomers hear before they are told, and leavers until they are.
    fn change(&self, event: &Event, change: &Change) {
        let conversation = &change.conversation;
        self.recalls.note(change);
        if let ChangeKind::Joined { users, from } = &change.kind {
            let window = Window { min: *from, change_min: change.seq, ..Window::ALL };
            for user in users {
                self.roster.each_of(user, |connection| {
                    self.groups.add(conversation, connection, window);
                });
            }
        }
        self.push(event, &who_hears(event));
        match &change.kind {
            ChangeKind::Left => self.depart(conversation, &change.by),
            ChangeKind::Kicked { user } => self.depart(conversation, user),
            ChangeKind::Dissolved | ChangeKind::Dismissed => self.groups.close(conversation),
            _ => {}
        }
    }

    fn depart(&self, conversation: &ConversationId, user: &UserId) {
        self.roster.each_of(user, |connection| connection.unsettle());
        self.groups.remove(conversation, user);
    }

    fn choose(&self, user: &UserId, conversation: &ConversationId, receive: Receive) {
        self.roster.each_of(user, |connection| {
            connection.unsettle();
            connection.block(conversation, receive == Receive::Blocked);
        });
    }
}

fn message_of(event: &Event) -> Option<&Message> {
    match event {
        Event::Message { message, .. } => Some(message),
        _ => None,
    }
}

/// The conversation of what somebody may not want to hear: not of their own doing elsewhere, and
/// not of what becomes of the conversation itself.
fn chatter_for<'a>(event: &'a Event, user: &UserId) -> Option<&'a ConversationId> {
    match event {
        Event::Message { message, .. } => {
            Some(&message.conversation).filter(|_| message.sender != *user)
        }
        Event::Receipt(receipt) => Some(&receipt.conversation).filter(|_| receipt.by != *user),
        _ => None,
    }
}

/// The message a dropped push has to bring again: the new one, or the one that changed.
fn concerns(event: &Event) -> Option<(&ConversationId, Seq)> {
    match event {
        Event::Message { message, .. } => Some((&message.conversation, message.seq)),
        Event::Change { change, .. } => match change.kind {
            ChangeKind::Recalled { seq, .. } => Some((&change.conversation, seq)),
            _ => None,
        },
        _ => None,
    }
}

impl Listener for Delivery {
    fn hear(&self, event: &Event) {
        match event {
            Event::Message { .. }
            | Event::Receipt(_)
            | Event::Typing { .. }
            | Event::JoinAnswered { .. } => self.push(event, &who_hears(event)),
            Event::Change { change, .. } => self.change(event, change),
            Event::JoinRequested { to, .. } => {
                let mut parcel = Parcel::new(event, Way::Push, self.clock.ticks());
                for user in to {
                    self.roster.each_of(user, |connection| self.hand_over(&mut parcel, connection));
                }
            }
            Event::Settings { user, conversation, receive } => {
                self.choose(user, conversation, *receive);
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
