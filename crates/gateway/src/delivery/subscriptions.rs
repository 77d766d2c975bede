//! The sockets of this node that receive a group. Updated as sockets connect and members come and
//! go, so that a message visits the members who are online and never the member list.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use nexo_chat::bus::Bus;
use nexo_chat::event::Event;
use nexo_chat::ids::{ConnectionId, ConversationId, Seq};
use nexo_chat::model::{Change, Window};
use nexo_chat::rules::GroupRules;

use crate::delivery::online_count::OnlineCount;
use crate::socket::connection::Connection;

const SHARDS: usize = 32;

type Shard = RwLock<HashMap<ConversationId, GroupSubscribers>>;

/// The sockets that receive one group.
pub(crate) type Subscribers = HashMap<ConnectionId, Subscription>;

/// A group with at least one subscriber on this node.
struct GroupSubscribers {
    subscribers: Subscribers,
    /// How many subscribers there were when the other nodes were last told.
    announced: usize,
    /// The subscribers are right up to this change. A message that was stored after a later change
    /// has to wait, or a former member could receive it.
    known_change_seq: Seq,
}

/// One socket's subscription to a group, with the window its user may see.
pub(crate) struct Subscription {
    pub(crate) connection: Arc<Connection>,
    /// The first visible message. Checked at delivery, since a member may be subscribed before
    /// messages from before the join arrive.
    pub(crate) min: Seq,
    /// The first visible change.
    pub(crate) change_min: Seq,
    /// The newest change of the group when the membership was read.
    since: Seq,
}

pub(crate) struct Subscriptions {
    pub(super) bus: Arc<dyn Bus>,
    shards: [Shard; SHARDS],
    /// Locked while a change is applied, so that the changes of a group are applied one by one.
    order_locks: [Mutex<()>; SHARDS],
    hasher: RandomState,
    /// Counts members on other nodes; `None` if the delivery strategy does not depend on it.
    pub(super) online: Option<OnlineCount>,
    /// Groups closed since the start, so that a task that is reading standings meanwhile notices.
    closed_groups: AtomicU64,
}

/// How a change follows on the changes that this node has applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeOrder {
    Next,
    Seen,
    /// Changes between it and the last applied one are missing.
    Gap,
    /// The group has no subscribers on this node, so no changes of it are tracked.
    NoSubscribers,
}

impl Subscriptions {
    pub(crate) fn new(bus: Arc<dyn Bus>, rules: &GroupRules, instance: &Arc<str>) -> Self {
        Self {
            online: OnlineCount::new(rules, instance).filter(|_| bus.is_shared()),
            bus,
            order_locks: std::array::from_fn(|_| Mutex::default()),
            shards: std::array::from_fn(|_| Shard::default()),
            hasher: RandomState::new(),
            closed_groups: AtomicU64::new(0),
        }
    }

    fn shard_index(&self, conversation: &ConversationId) -> usize {
        let hash = self.hasher.hash_one(conversation) % SHARDS as u64;
        usize::try_from(hash).unwrap_or(0)
    }

    fn shard(&self, conversation: &ConversationId) -> &Shard {
        &self.shards[self.shard_index(conversation)]
    }

    /// Subscribes a socket whose user joined by change `known`, or replaces its window.
    pub(crate) fn subscribe(
        &self,
        conversation: &ConversationId,
        connection: &Arc<Connection>,
        window: Window,
        known: Seq,
    ) {
        self.subscribe_if(conversation, connection, window, known, || true);
    }

    /// Subscribes a socket by a membership that was read at change `known`, if `is_current` still
    /// holds with the shard locked. Returns `false`, and does nothing, if this node has applied
    /// changes newer than `known`: the membership has to be read again.
    pub(super) fn subscribe_if(
        &self,
        conversation: &ConversationId,
        connection: &Arc<Connection>,
        window: Window,
        known: Seq,
        is_current: impl FnOnce() -> bool,
    ) -> bool {
        let Window { min, change_min, .. } = window;
        let online_event = {
            let mut shard =
                self.shard(conversation).write().unwrap_or_else(PoisonError::into_inner);
            if !is_current() {
                return true;
            }
            let group = shard.entry(conversation.clone()).or_insert_with(|| GroupSubscribers {
                subscribers: Subscribers::new(),
                announced: 0,
                known_change_seq: known,
            });
            if known < group.known_change_seq {
                return false;
            }
            let subscription =
                Subscription { connection: Arc::clone(connection), min, change_min, since: known };
            if group.subscribers.insert(connection.id, subscription).is_none() {
                connection.add_group(conversation.clone());
            }
            self.recount_online(conversation, group)
        };
        self.publish(online_event);
        true
    }

    /// Counts the group's members here again if enough came or went; returns the event that tells
    /// the other nodes.
    fn recount_online(
        &self,
        conversation: &ConversationId,
        group: &mut GroupSubscribers,
    ) -> Option<Event> {
        let online = self.online.as_ref()?;
        if group.subscribers.len().abs_diff(group.announced) < online.step {
            return None;
        }
        group.announced = group.subscribers.len();
        let users = group.subscribers.values().map(|subscription| &subscription.connection.user);
        Some(online.set_local(conversation, users))
    }

    pub(super) fn publish(&self, event: Option<Event>) {
        if let Some(event) = event {
            self.bus.publish(event);
        }
    }

    /// Calls `apply` with the position of a change among the applied ones. No other change of the
    /// group is applied meanwhile. If it was the next one, it counts as applied afterwards.
    pub(crate) fn apply_in_order(&self, change: &Change, apply: impl FnOnce(ChangeOrder)) {
        let conversation = &change.conversation;
        let order_lock = &self.order_locks[self.shard_index(conversation)];
        let _locked = order_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let order = match self.known_change_seq(conversation) {
            None => ChangeOrder::NoSubscribers,
            Some(known) if change.seq <= known => ChangeOrder::Seen,
            Some(known) if change.seq == known.next() => ChangeOrder::Next,
            Some(_) => ChangeOrder::Gap,
        };
        apply(order);
        if order == ChangeOrder::Next {
            let mut shard =
                self.shard(conversation).write().unwrap_or_else(PoisonError::into_inner);
            if let Some(group) = shard.get_mut(conversation) {
                group.known_change_seq = group.known_change_seq.max(change.seq);
            }
        }
    }

    /// The last change of a group that this node has applied; `None` without subscribers.
    pub(crate) fn known_change_seq(&self, conversation: &ConversationId) -> Option<Seq> {
        let shard = self.shard(conversation).read().unwrap_or_else(PoisonError::into_inner);
        shard.get(conversation).map(|group| group.known_change_seq)
    }

    /// The change at which a socket's membership was read, if it is subscribed.
    pub(super) fn subscribed_since(
        &self,
        conversation: &ConversationId,
        connection: &Connection,
    ) -> Option<Seq> {
        let shard = self.shard(conversation).read().unwrap_or_else(PoisonError::into_inner);
        let subscription = shard.get(conversation)?.subscribers.get(&connection.id)?;
        Some(subscription.since)
    }

    /// Unsubscribes a socket from all groups.
    pub(crate) fn remove_connection(&self, connection: &Connection) {
        for conversation in connection.take_groups() {
            self.remove_subscriber(&conversation, connection);
        }
    }

    pub(crate) fn unsubscribe(&self, conversation: &ConversationId, connection: &Connection) {
        connection.remove_group(conversation);
        self.remove_subscriber(conversation, connection);
    }

    fn remove_subscriber(&self, conversation: &ConversationId, connection: &Connection) {
        let online_event = {
            let mut shard =
                self.shard(conversation).write().unwrap_or_else(PoisonError::into_inner);
            let Some(group) = shard.get_mut(conversation) else { return };
            group.subscribers.remove(&connection.id);
            if group.subscribers.is_empty() {
                shard.remove(conversation);
                self.bus.unsubscribe_group(conversation);
                self.online.as_ref().and_then(|online| online.remove(conversation))
            } else {
                self.recount_online(conversation, group)
            }
        };
        self.publish(online_event);
    }

    /// Removes a group that was dissolved, with all its subscribers.
    pub(crate) fn close_group(&self, conversation: &ConversationId) {
        self.closed_groups.fetch_add(1, Ordering::SeqCst);
        let group = {
            let shard = self.shard(conversation).write();
            shard.unwrap_or_else(PoisonError::into_inner).remove(conversation)
        };
        if let Some(group) = group {
            for subscription in group.subscribers.into_values() {
                subscription.connection.remove_group(conversation);
            }
            self.bus.unsubscribe_group(conversation);
            self.publish(self.online.as_ref().and_then(|online| online.remove(conversation)));
        }
    }

    pub(super) fn closed_groups(&self) -> u64 {
        self.closed_groups.load(Ordering::SeqCst)
    }

    /// The groups with subscribers on this node.
    pub(crate) fn groups(&self) -> Vec<ConversationId> {
        let shards = self.shards.iter().map(|it| it.read().unwrap_or_else(PoisonError::into_inner));
        shards.flat_map(|shard| shard.keys().cloned().collect::<Vec<_>>()).collect()
    }

    pub(crate) fn connections_of(&self, conversation: &ConversationId) -> Vec<Arc<Connection>> {
        let mut connections = Vec::new();
        self.with_subscribers(conversation, Seq::ZERO, |subscribers| {
            let all = subscribers.values();
            connections.extend(all.map(|subscription| Arc::clone(&subscription.connection)));
        });
        connections
    }

    /// Calls `visit` with the subscribers of a group, if there are any. Returns `false`, and does
    /// nothing, if this node has not applied all changes up to `after`.
    pub(crate) fn with_subscribers(
        &self,
        conversation: &ConversationId,
        after: Seq,
        visit: impl FnOnce(&Subscribers),
    ) -> bool {
        let shard = self.shard(conversation).read().unwrap_or_else(PoisonError::into_inner);
        let Some(group) = shard.get(conversation) else { return true };
        if group.known_change_seq < after {
            return false;
        }
        visit(&group.subscribers);
        true
    }
}
