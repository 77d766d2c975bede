//! Pushes an event into the outboxes of the sockets that receive it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use nexo_chat::clock::Clock;
use nexo_chat::cursor_audit::chat_type;
use nexo_chat::event::Event;
use nexo_chat::ids::{ConnectionId, ConversationId, Seq, UserId};
use nexo_chat::model::ChangeKind;
use nexo_chat::policy::delivery::{
    Audience, DeliveryMode, audience_of, delivery_mode, receives_change,
};
use nexo_chat::rules::GroupRules;
use nexo_chat::{Chat, Reason};

use crate::delivery::connections::Connections;
use crate::delivery::deferred_wakes::DeferredWakes;
use crate::delivery::encoded::EncodedEvent;
use crate::delivery::recalls::Recalls;
use crate::delivery::subscriptions::{Subscription, Subscriptions};
use crate::delivery::wake_batch::WakeBatch;
use crate::meters::Meters;
use crate::socket::connection::Connection;
use crate::socket::outbox::Pushed;

/// The sockets of this node, and how events reach them.
pub(crate) struct Fanout {
    pub(crate) connections: Connections,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) recalls: Recalls,
    pub(crate) deferred_wakes: Arc<DeferredWakes>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) meters: Arc<Meters>,
    rules: GroupRules,
    /// The name of this process in the log.
    instance: Arc<str>,
}

impl Fanout {
    pub(crate) fn new(chat: &Chat, meters: Arc<Meters>, receipt_delay: Duration) -> Self {
        Self {
            connections: Connections::default(),
            subscriptions: Subscriptions::new(
                Arc::clone(&chat.bus),
                &chat.rules.groups,
                &chat.instance,
            ),
            recalls: Recalls::default(),
            deferred_wakes: Arc::new(DeferredWakes::new(receipt_delay)),
            clock: Arc::clone(&chat.clock),
            meters,
            rules: chat.rules.groups,
            instance: Arc::clone(&chat.instance),
        }
    }

    pub(crate) fn encoded<'a>(&'a self, event: &'a Event) -> EncodedEvent<'a> {
        EncodedEvent::new(event, &self.meters)
    }

    /// Pushes an event to its audience. Pushes nothing and returns `false` if this node has not
    /// applied all changes of the group that the event was stored after: the subscribers may be
    /// wrong.
    pub(crate) fn push(&self, event: &Event, wakes: &mut WakeBatch) -> bool {
        self.push_except(event, &[], wakes)
    }

    /// Like [`Self::push`]. Of a private conversation's sockets, it leaves out `skipped`.
    fn push_except(&self, event: &Event, skipped: &[ConnectionId], wakes: &mut WakeBatch) -> bool {
        let audience = audience_of(event);
        let mut encoded = self.encoded(event);
        for user in audience.users.iter().flatten() {
            self.connections.for_each_of(user, |connection| {
                if Some(connection.id) != audience.except_connection
                    && !skipped.contains(&connection.id)
                {
                    self.push_to(&mut encoded, connection, wakes);
                }
            });
        }
        match &audience.group {
            Some(group) => self.push_to_group(&mut encoded, group, &audience, wakes),
            None => true,
        }
    }

    fn push_to_group(
        &self,
        encoded: &mut EncodedEvent<'_>,
        group: &ConversationId,
        audience: &Audience,
        wakes: &mut WakeBatch,
    ) -> bool {
        let event = encoded.event;
        let stored_after = match event {
            Event::Message { change_seq, .. } => *change_seq,
            _ => Seq::ZERO,
        };
        self.subscriptions.with_subscribers(group, stored_after, |subscribers| {
            let enough = self.rules.notify_online.min(self.rules.none_online);
            let online = || self.subscriptions.online_people(group, subscribers, enough);
            let mode = |members| delivery_mode(&self.rules, members, online);
            let (message_mode, change_mode) = match event {
                Event::Message { members, .. } => (mode(*members), DeliveryMode::Push),
                Event::Change { members, .. } => (DeliveryMode::Push, mode(*members)),
                _ => (DeliveryMode::Push, DeliveryMode::Push),
            };
            encoded.mode = message_mode;
            for subscription in subscribers.values() {
                let connection = &subscription.connection;
                let is_left_out = Some(connection.id) == audience.except_connection
                    || audience.except_user.as_ref() == Some(&connection.user);
                if is_visible(event, subscription, change_mode) && !is_left_out {
                    self.push_to(encoded, connection, wakes);
                }
            }
        })
    }

    /// Pushes an event to all sockets of these users.
    pub(crate) fn push_to_users(&self, event: &Event, users: &[UserId], wakes: &mut WakeBatch) {
        let mut encoded = self.encoded(event);
        for user in users {
            self.connections
                .for_each_of(user, |connection| self.push_to(&mut encoded, connection, wakes));
        }
    }

    /// Pushes a message. If its recall arrived first, it goes out without its text.
    pub(crate) fn push_message(
        &self,
        event: &Event,
        skipped: &[ConnectionId],
        wakes: &mut WakeBatch,
    ) -> bool {
        if let Event::Message { message, origin, members, change_seq } = event
            && let Some(message) = self.recalls.without_text(message)
        {
            let (message, origin) = (Arc::new(message), *origin);
            let (members, change_seq) = (*members, *change_seq);
            let event = Event::Message { message, origin, members, change_seq };
            return self.push_except(&event, skipped, wakes);
        }
        self.push_except(event, skipped, wakes)
    }

    /// Pushes a user's new profile to the user's own sockets and to those that share one of these
    /// conversations with the user, once to each.
    pub(crate) fn push_profile(
        &self,
        event: &Event,
        user: &UserId,
        conversations: &[ConversationId],
        wakes: &mut WakeBatch,
    ) {
        let mut seen = HashSet::new();
        let mut encoded = self.encoded(event);
        let mut push_once = |connection: &Arc<Connection>| {
            if seen.insert(connection.id) {
                self.push_to(&mut encoded, connection, wakes);
            }
        };
        self.connections.for_each_of(user, &mut push_once);
        for conversation in conversations {
            match conversation.peer_of(user) {
                Some(peer) => self.connections.for_each_of(&peer, &mut push_once),
                None => {
                    self.subscriptions.with_subscribers(conversation, Seq::ZERO, |subscribers| {
                        for subscription in subscribers.values() {
                            push_once(&subscription.connection);
                        }
                    });
                }
            }
        }
    }

    /// Pushes an event to one socket, unless its user has blocked the conversation.
    pub(crate) fn push_to(
        &self,
        encoded: &mut EncodedEvent<'_>,
        connection: &Arc<Connection>,
        wakes: &mut WakeBatch,
    ) {
        if connection.blocks_any() {
            let conversation = blockable_conversation(encoded.event, &connection.user);
            if conversation.is_some_and(|conversation| connection.blocks(&conversation)) {
                return;
            }
        }
        let Some(frame) = encoded.frame(connection) else { return };
        let may_wait = self.deferred_wakes.is_on() && matches!(encoded.event, Event::Receipt(_));
        match connection.outbox.push_without_wake(frame, || self.clock.ticks(), may_wait) {
            Pushed::First => wakes.add(connection),
            Pushed::Deferred => self.deferred_wakes.add(connection),
            Pushed::Queued => {}
            Pushed::Dropped => return self.record_drop(encoded, connection),
        }
        encoded.pushed += 1;
    }

    /// Remembers a push that a full outbox dropped, so that the session resends it from the store.
    fn record_drop(&self, encoded: &EncodedEvent<'_>, connection: &Connection) {
        self.meters.dropped.increment(1);
        let to_resend = message_to_resend(encoded.event);
        let mut first_missed = None;
        if let (Some((conversation, seq)), DeliveryMode::Push) = (to_resend, encoded.mode) {
            first_missed = connection.record_missed(conversation, seq);
        } else if ends_membership(encoded.event, &connection.user) {
            // The client gets no later change of this group that would reveal the gap: it has to
            // reconnect and read its conversations again.
            connection.close(Reason::SlowConsumer);
        }
        let message = match encoded.event {
            Event::Message { message, .. } | Event::AcceptedSaved { message } => Some(message),
            _ => None,
        };
        tracing::debug!(
            target: "nexo::push",
            serverMsgId = message.map(|message| tracing::field::display(message.id)),
            chatType = to_resend.map(|(conversation, _)| chat_type(conversation)),
            chatId = to_resend.map(|(conversation, _)| conversation.as_str()),
            seq = to_resend.map(|(_, seq)| seq.0),
            fromUserId = message.map(|message| message.sender.as_str()),
            userId = %connection.user,
            deviceId = %connection.login,
            connId = connection.id.0,
            instanceId = &*self.instance,
            // The resend begins after the first and reaches at least the second.
            prevCursor = first_missed.map(|first| first.previous().0),
            newCursor = first_missed.and(to_resend).map(|(_, seq)| seq.0),
            result = "outbox full",
            "push dropped",
        );
    }

    /// Lets all subscribers of a group resend a message from the store, which knows its members.
    pub(crate) fn record_missed_by_group(&self, event: &Event) {
        let Some((conversation, seq)) = message_to_resend(event) else { return };
        self.meters.dropped.increment(1);
        self.subscriptions.with_subscribers(conversation, Seq::ZERO, |subscribers| {
            for subscription in subscribers.values() {
                subscription.connection.record_missed(conversation, seq);
            }
        });
    }
}

/// Whether an event is in the window that the subscriber may see.
fn is_visible(event: &Event, subscription: &Subscription, change_mode: DeliveryMode) -> bool {
    match event {
        Event::Message { message, .. } => message.seq >= subscription.min,
        Event::Receipt(receipt) => receipt.seq >= subscription.min,
        Event::Change { change, .. } => {
            change.seq >= subscription.change_min
                && receives_change(change_mode, change, &subscription.connection.user)
        }
        _ => true,
    }
}

/// The conversation of an event that is not pushed to a user who blocked it. Blocking hides neither
/// what the user did on other devices nor changes of the conversation.
fn blockable_conversation(event: &Event, user: &UserId) -> Option<ConversationId> {
    match event {
        Event::Message { message, .. } if message.sender != *user => {
            Some(message.conversation.clone())
        }
        Event::Receipt(receipt) if receipt.by != *user => Some(receipt.conversation.clone()),
        Event::Typing { from, to, .. } => Some(to.conversation(from)),
        _ => None,
    }
}

/// Whether an event is the last one of its group for a user.
fn ends_membership(event: &Event, user: &UserId) -> bool {
    let Event::Change { change, .. } = event else { return false };
    match &change.kind {
        ChangeKind::Left => change.by == *user,
        ChangeKind::Kicked { user: out } => out == user,
        ChangeKind::Dissolved | ChangeKind::Dismissed => true,
        _ => false,
    }
}

/// The message that a resend has to contain if the push of this event was dropped: the new message,
/// or the recalled one.
fn message_to_resend(event: &Event) -> Option<(&ConversationId, Seq)> {
    match event {
        Event::Message { message, .. } | Event::AcceptedSaved { message } => {
            Some((&message.conversation, message.seq))
        }
        Event::Change { change, .. } => match change.kind {
            ChangeKind::Recalled { seq, .. } => Some((&change.conversation, seq)),
            _ => None,
        },
        _ => None,
    }
}
