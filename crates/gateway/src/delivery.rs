//! An event finds those who hear it, and is put into their outboxes.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use nexo_chat::bus::Listener;
use nexo_chat::clock::Clock;
use nexo_chat::command::Event;
use nexo_chat::ids::{ConnectionId, ConversationId, Seq, UserId};
use nexo_chat::model::{Change, ChangeKind, Receive, Window};
use nexo_chat::policy::delivery::{Audience, Way, hears_change, which_way, who_hears};
use nexo_chat::rules::GroupRules;
use nexo_chat::store::Store;
use nexo_chat::{Chat, Reason};
use tokio::runtime::Handle;

use crate::beginning::Beginnings;
use crate::behind::{self, Behind, Kept};
use crate::connection::Connection;
use crate::groups::{Groups, Knows};
use crate::measure::Measures;
use crate::outbox::Pushed;
use crate::parcel::Parcel;
use crate::recalls::Recalls;
use crate::relearn::{self, Relearning, Why};
use crate::roster::Roster;
use crate::settling::Settling;
use crate::unsettled::Unsettled;
use crate::wakes::Wakes;

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
    /// What waits for the news of who may hear it.
    pub behind: Behind,
    /// What is heard here only since a moment ago.
    pub beginnings: Beginnings,
    /// Who knows which message before it is saved.
    pub unsettled: Arc<Unsettled>,
    /// Whether somebody looks for them.
    pub settling: Settling,
    /// Whether sockets are looking again.
    pub relearning: Relearning,
    /// The domain, for what has to be looked up. It holds this in turn.
    pub chat: Weak<Chat>,
    /// Itself, for what goes on after an event was heard.
    pub me: Weak<Self>,
    /// Where that goes on.
    pub runtime: Handle,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What is counted.
    pub measures: Arc<Measures>,
    /// What this process is called in the log.
    pub instance: Arc<str>,
}

impl Delivery {
    /// Pushes to everybody concerned, or to nobody if it is not known who they are; tells which.
    fn push(&self, event: &Event, audience: &Audience, wakes: &mut Wakes) -> bool {
        self.push_but(event, audience, &[], wakes)
    }

    /// The same, but to none of these.
    fn push_but(
        &self,
        event: &Event,
        audience: &Audience,
        told: &[ConnectionId],
        wakes: &mut Wakes,
    ) -> bool {
        let now = self.clock.ticks();
        let mut parcel = Parcel::new(event, Way::Push, now, &self.measures);
        for user in audience.users.iter().flatten() {
            self.roster.each_of(user, |connection| {
                if Some(connection.id) != audience.except && !told.contains(&connection.id) {
                    self.hand_over(&mut parcel, connection, wakes);
                }
            });
        }
        let Some(group) = &audience.group else { return true };
        let after = match event {
            Event::Message { change_seq, .. } => *change_seq,
            _ => Seq::ZERO,
        };
        self.groups.with(group, after, |ears| {
            let enough = self.rules.notify_online.min(self.rules.none_online);
            let online = || self.groups.people(group, ears, enough);
            let way = |members| which_way(&self.rules, members, online);
            let (message_way, change_way) = match event {
                Event::Message { members, .. } => (way(*members), Way::Push),
                Event::Change { members, .. } => (Way::Push, way(*members)),
                _ => (Way::Push, Way::Push),
            };
            parcel.way = message_way;
            for ear in ears.values() {
                let is_visible = match event {
                    Event::Message { message, .. } => message.seq >= ear.min,
                    Event::Receipt(receipt) => receipt.seq >= ear.min,
                    Event::Change { change, .. } => {
                        change.seq >= ear.change_min
                            && hears_change(change_way, change, &ear.connection.user)
                    }
                    _ => true,
                };
                let is_left_out = Some(ear.connection.id) == audience.except
                    || audience.not_to.as_ref() == Some(&ear.connection.user);
                if is_visible && !is_left_out {
                    self.hand_over(&mut parcel, &ear.connection, wakes);
                }
            }
        })
    }

    pub(crate) fn hand_over(
        &self,
        parcel: &mut Parcel<'_>,
        connection: &Arc<Connection>,
        wakes: &mut Wakes,
    ) {
        if connection.blocks_anything() {
            let chatter = chatter_for(parcel.event, &connection.user);
            if chatter.is_some_and(|conversation| connection.blocks(&conversation)) {
                return;
            }
        }
        let now = parcel.now;
        let Some(frame) = parcel.frame(connection) else { return };
        match connection.outbox.push_quietly(frame, now) {
            Pushed::First => wakes.add(connection),
            Pushed::Behind => {}
            Pushed::Dropped => return self.drop_push(parcel, connection),
        }
        parcel.pushed += 1;
    }

    /// Remembers what a full outbox did not take.
    fn drop_push(&self, parcel: &Parcel<'_>, connection: &Connection) {
        self.measures.dropped.increment(1);
        if let (Some((conversation, seq)), Way::Push) = (concerns(parcel.event), parcel.way) {
            connection.miss(conversation, seq);
        } else if is_last_word(parcel.event, &connection.user) {
            // No later change would show them that they missed it: they start anew.
            connection.end(Reason::SlowConsumer);
        }
        let message = match parcel.event {
            Event::Message { message, .. } | Event::Settled { message } => Some(message),
            _ => None,
        };
        let concerned = concerns(parcel.event);
        tracing::debug!(
            target: "nexo::push",
            serverMsgId = message.map(|message| tracing::field::display(message.id)),
            chatId = concerned.map(|(conversation, _)| conversation.as_str()),
            seq = concerned.map(|(_, seq)| seq.0),
            fromUserId = message.map(|message| message.sender.as_str()),
            userId = %connection.user,
            deviceId = %connection.login,
            connId = connection.id.0,
            instanceId = &*self.instance,
            result = "outbox full",
            "push dropped",
        );
    }

    /// Pushes a message, unless it is not known yet who may hear it. One that was recalled has no
    /// text any more, in whatever order one hears of both.
    pub(crate) fn try_message(
        &self,
        event: &Event,
        told: &[ConnectionId],
        wakes: &mut Wakes,
    ) -> bool {
        if let Event::Message { message, origin, members, change_seq } = event
            && let Some(message) = self.recalls.without_text(message)
        {
            let (message, origin) = (Arc::new(message), *origin);
            let (members, change_seq) = (*members, *change_seq);
            let event = Event::Message { message, origin, members, change_seq };
            return self.push_but(&event, &who_hears(&event), told, wakes);
        }
        self.push_but(event, &who_hears(event), told, wakes)
    }

    /// Lets go what was kept back, if it can; a change was read from the store meanwhile.
    pub(crate) fn let_go(&self, event: &Event, wakes: &mut Wakes) -> bool {
        match event {
            Event::Change { change, .. } => {
                self.groups.known(&change.conversation).is_none_or(|known| known >= change.seq)
            }
            _ => self.try_message(event, &[], wakes),
        }
    }

    fn message(&self, event: &Event, conversation: &ConversationId, wakes: &mut Wakes) {
        let Event::Message { message, .. } = event else { return };
        if let Some(store) = self.store() {
            store.heard(message);
        }
        self.beginnings.note(message);
        let told = self.settle(message, wakes);
        if self.behind.is_waiting(conversation) || !self.try_message(event, &told, wakes) {
            self.keep_back(event, conversation);
        }
    }

    fn keep_back(&self, event: &Event, conversation: &ConversationId) {
        match self.behind.keep(conversation, event) {
            Kept::First => {
                if let Some(me) = self.me.upgrade() {
                    self.runtime.spawn(behind::catch_up(me, conversation.clone()));
                }
            }
            Kept::Waits => {}
            Kept::TooMany => self.miss(event),
        }
    }

    /// Lets everybody who hears a group bring a message from the store, which knows who may.
    pub(crate) fn miss(&self, event: &Event) {
        let Some((conversation, seq)) = concerns(event) else { return };
        self.measures.dropped.increment(1);
        self.groups.with(conversation, Seq::ZERO, |ears| {
            for ear in ears.values() {
                ear.connection.miss(conversation, seq);
            }
        });
    }

    /// Hears of changes that were read from the store.
    pub(crate) fn hear_changes(&self, events: &[Event]) {
        let mut wakes = Wakes::default();
        for event in events {
            self.deliver(event, &mut wakes);
        }
    }

    /// Lets every socket look whether it lacks something.
    pub(crate) fn look_again(&self, why: Why) {
        if let (Some(me), true) = (self.me.upgrade(), self.relearning.is_wanted()) {
            self.runtime.spawn(relearn::relearn(me, why));
        }
    }

    /// The store, as long as there is one.
    pub(crate) fn store(&self) -> Option<Arc<dyn Store>> {
        self.chat.upgrade().map(|chat| Arc::clone(&chat.store))
    }

    /// Hears of a change in its turn.
    fn change_in_turn(&self, event: &Event, change: &Change, wakes: &mut Wakes) {
        self.groups.in_turn(change, |knows| match knows {
            Knows::Enough => self.change(event, change, wakes),
            Knows::Nothing => self.begin_to_hear(change, || self.change(event, change, wakes)),
            Knows::Already => self.recalls.note(change),
            Knows::TooLittle => {
                self.recalls.note(change);
                self.keep_back(event, &change.conversation);
            }
        });
    }

    /// Lets newcomers hear before they are told, and leavers until they are.
    fn change(&self, event: &Event, change: &Change, wakes: &mut Wakes) {
        let conversation = &change.conversation;
        self.recalls.note(change);
        if let ChangeKind::Joined { users, from } = &change.kind {
            let window = Window { min: *from, change_min: change.seq, ..Window::ALL };
            for user in users {
                self.roster.each_of(user, |connection| {
                    self.groups.add(conversation, connection, window, change.seq);
                });
            }
        }
        self.push(event, &who_hears(event), wakes);
        match &change.kind {
            ChangeKind::Left => self.depart(conversation, &change.by),
            ChangeKind::Kicked { user } => self.depart(conversation, user),
            ChangeKind::Dissolved | ChangeKind::Dismissed => self.groups.close(conversation),
            _ => {}
        }
    }

    fn depart(&self, conversation: &ConversationId, user: &UserId) {
        self.roster.each_of(user, |connection| {
            connection.unsettle();
            self.groups.remove(conversation, connection);
        });
    }

    /// Tells everybody here who shares one of these conversations with a person, and the person's
    /// own devices, each socket once.
    fn profile(&self, event: &Event, user: &UserId, within: &[ConversationId], wakes: &mut Wakes) {
        let mut told = HashSet::new();
        let mut parcel = Parcel::new(event, Way::Push, self.clock.ticks(), &self.measures);
        let mut tell = |connection: &Arc<Connection>| {
            if told.insert(connection.id) {
                self.hand_over(&mut parcel, connection, wakes);
            }
        };
        self.roster.each_of(user, &mut tell);
        for conversation in within {
            match conversation.peer_of(user) {
                Some(peer) => self.roster.each_of(&peer, &mut tell),
                None => {
                    self.groups.with(conversation, Seq::ZERO, |ears| {
                        for ear in ears.values() {
                            tell(&ear.connection);
                        }
                    });
                }
            }
        }
    }

    fn choose(&self, user: &UserId, conversation: &ConversationId, receive: Receive) {
        self.roster.each_of(user, |connection| {
            connection.unsettle();
            connection.block(conversation, receive == Receive::Blocked);
        });
    }
}

/// The conversation of what somebody may not want to hear: not of their own doing elsewhere, and
/// not of what becomes of the conversation itself.
fn chatter_for(event: &Event, user: &UserId) -> Option<ConversationId> {
    match event {
        Event::Message { message, .. } if message.sender != *user => {
            Some(message.conversation.clone())
        }
        Event::Receipt(receipt) if receipt.by != *user => Some(receipt.conversation.clone()),
        Event::Typing { from, to, .. } => Some(to.conversation(from)),
        _ => None,
    }
}

/// Whether somebody hears nothing more of a group after this.
fn is_last_word(event: &Event, user: &UserId) -> bool {
    let Event::Change { change, .. } = event else { return false };
    match &change.kind {
        ChangeKind::Left => change.by == *user,
        ChangeKind::Kicked { user: out } => out == user,
        ChangeKind::Dissolved | ChangeKind::Dismissed => true,
        _ => false,
    }
}

/// The message a dropped push has to bring again: the new one, or the one that changed.
fn concerns(event: &Event) -> Option<(&ConversationId, Seq)> {
    match event {
        Event::Message { message, .. } | Event::Settled { message } => {
            Some((&message.conversation, message.seq))
        }
        Event::Change { change, .. } => match change.kind {
            ChangeKind::Recalled { seq, .. } => Some((&change.conversation, seq)),
            _ => None,
        },
        _ => None,
    }
}

impl Delivery {
    fn deliver(&self, event: &Event, wakes: &mut Wakes) {
        match event {
            Event::Message { message, .. } => self.message(event, &message.conversation, wakes),
            Event::Receipt(_) | Event::Typing { .. } | Event::JoinAnswered { .. } => {
                self.push(event, &who_hears(event), wakes);
            }
            Event::Preview { .. } => self.preview(event, wakes),
            Event::Settled { message } => drop(self.settle(message, wakes)),
            Event::Dropped(dropped) => self.drop_known(dropped),
            Event::Change { change, .. } => self.change_in_turn(event, change, wakes),
            Event::JoinRequested { to, .. } => {
                let now = self.clock.ticks();
                let mut parcel = Parcel::new(event, Way::Push, now, &self.measures);
                for user in to {
                    self.roster
                        .each_of(user, |connection| self.hand_over(&mut parcel, connection, wakes));
                }
            }
            Event::Online { group, instance, people, asks } => {
                self.groups.heard_online(group, (instance, people), *asks, self.clock.ticks());
            }
            Event::Profile { user, within, .. } => self.profile(event, user, within, wakes),
            Event::Settings { user, conversation, settings } => {
                self.choose(user, conversation, settings.receive);
                self.push(event, &who_hears(event), wakes);
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

impl Listener for Delivery {
    fn hear(&self, event: &Event) {
        self.deliver(event, &mut Wakes::default());
    }

    fn hear_all(&self, events: &[Event]) {
        let mut wakes = Wakes::default();
        for event in events {
            self.deliver(event, &mut wakes);
        }
    }

    fn lost(&self) {
        self.look_again(Why::Heard);
    }
}
