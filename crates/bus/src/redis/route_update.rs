//! Changes of this node's routes that wait to be written to Redis, in the order they happened.

use nexo_chat::bus::Registration;
use nexo_chat::ids::{ConnectionId, ConversationId, UserId};
use nexo_redis_link::{NodeId, Pipeline};
use redis::Value;
use tokio::sync::{mpsc, oneshot};

use super::keys::BusKeys;
use super::registration_rows::{self, RegistrationRow};

/// How many may wait. An update that does not fit is skipped.
pub(crate) const UPDATES_MAX: usize = 65_536;

pub(crate) enum RouteUpdate {
    Register {
        registration: Registration,
        /// Gets the rows before it; dropped if Redis is away.
        done: oneshot::Sender<Vec<RegistrationRow>>,
    },
    SubscribeGroups {
        groups: Vec<ConversationId>,
        done: oneshot::Sender<()>,
    },
    Remove(RouteRemoval),
}

/// Removes a field of a hash or a member of a set. Repeating it does nothing.
#[derive(Clone, Debug)]
pub(crate) struct RouteRemoval {
    command: &'static str,
    key: String,
    member: String,
}

impl RouteRemoval {
    /// Removes a socket's registration.
    pub(crate) fn registration(keys: &BusKeys, user: &UserId, connection: ConnectionId) -> Self {
        Self { command: "HDEL", key: keys.registrations(user), member: connection.0.to_string() }
    }

    /// Removes a node's subscription to a group.
    pub(crate) fn subscription(keys: &BusKeys, group: &ConversationId, node: NodeId) -> Self {
        Self { command: "SREM", key: keys.subscribed_nodes(group), member: node.to_string() }
    }

    pub(crate) fn add_to(&self, pipeline: &mut Pipeline) {
        pipeline.add(self.command, &self.key, &self.member);
    }
}

/// The sending side of the queue; the route writer has the receiver.
#[derive(Clone)]
pub(crate) struct RouteUpdateQueue {
    sender: mpsc::Sender<RouteUpdate>,
}

impl RouteUpdateQueue {
    pub(crate) fn new() -> (Self, mpsc::Receiver<RouteUpdate>) {
        let (sender, receiver) = mpsc::channel(UPDATES_MAX);
        (Self { sender }, receiver)
    }

    pub(crate) fn register(
        &self,
        registration: Registration,
    ) -> oneshot::Receiver<Vec<RegistrationRow>> {
        let (done, answer) = oneshot::channel();
        self.send(RouteUpdate::Register { registration, done });
        answer
    }

    pub(crate) fn subscribe_groups(&self, groups: Vec<ConversationId>) -> oneshot::Receiver<()> {
        let (done, answer) = oneshot::channel();
        self.send(RouteUpdate::SubscribeGroups { groups, done });
        answer
    }

    pub(crate) fn remove(&self, removal: RouteRemoval) {
        self.send(RouteUpdate::Remove(removal));
    }

    fn send(&self, update: RouteUpdate) {
        if self.sender.try_send(update).is_err() {
            // The next refresh writes skipped routes; skipped removals expire with their key.
            tracing::debug!(target: "nexo::bus", "the queue of route updates is full");
        }
    }
}

/// Builds the commands that write routes of this node.
pub(crate) struct RouteCommands<'a> {
    pub(crate) keys: &'a BusKeys,
    pub(crate) node: NodeId,
    pub(crate) ttl_ms: u64,
    pub(crate) pipeline: Pipeline,
}

impl RouteCommands<'_> {
    /// Writes a registration that Redis may not have yet.
    pub(crate) fn register(&mut self, registration: &Registration) {
        let value = registration_rows::value_without_order(self.node, registration);
        let arguments = (registration.connection.0, value, self.ttl_ms);
        self.pipeline.add_script(
            registration_rows::REGISTER,
            &self.keys.registrations(&registration.user),
            arguments,
        );
    }

    /// Writes a registration again that has its order number.
    pub(crate) fn renew(&mut self, registration: &Registration, order: u64) {
        let value = registration_rows::value(self.node, registration, order);
        let key = self.keys.registrations(&registration.user);
        self.pipeline.add("HSETNX", &key, (registration.connection.0, value));
        self.pipeline.add("PEXPIRE", &key, self.ttl_ms);
    }

    /// Writes this node's subscription to a group.
    pub(crate) fn subscribe_group(&mut self, group: &ConversationId) {
        let key = self.keys.subscribed_nodes(group);
        self.pipeline.add("SADD", &key, self.node.to_string());
        self.pipeline.add("PEXPIRE", &key, self.ttl_ms);
    }

    /// Adds the commands of an update, and returns how many replies they have.
    pub(crate) fn add(&mut self, update: &RouteUpdate) -> usize {
        let before = self.pipeline.len();
        match update {
            RouteUpdate::Register { registration, .. } => self.register(registration),
            RouteUpdate::SubscribeGroups { groups, .. } => {
                for group in groups {
                    self.subscribe_group(group);
                }
            }
            RouteUpdate::Remove(removal) => removal.add_to(&mut self.pipeline),
        }
        self.pipeline.len() - before
    }
}

pub(crate) fn is_success(answer: &Value) -> bool {
    !matches!(answer, Value::ServerError(_))
}
