//! The bus of many nodes, over Redis. Redis may lose everything or go away at any moment; each node
//! then works alone until it is back.
//!
//! Redis has the routes: which user has sockets on which node, and which nodes are subscribed to
//! which group. Routes expire unless their node writes them again. Each node subscribes to one
//! channel of its own; a publisher looks up which nodes an event concerns and publishes it to their
//! channels, once per node. In reading order:
//!
//! - `options`, `keys`: limits, and the names of keys and channels
//! - `breaker`: runs commands while Redis answers
//! - `local_routes`, `registration_rows`, `live_nodes`: the routes of this node, those of others,
//!   and which nodes are alive
//! - `route_update`, `route_writer`, `route_refresh`: how this node's routes get into Redis
//! - `route_keys`, `publish_queue`, `payload`, `publisher`: how events leave
//! - `sequence_check`, `subscriber`: how they arrive
//! - `heartbeat`: the connection for commands, and this node's sign of life
//! - `meters`: metrics; `node`: what all these tasks share

mod breaker;
mod heartbeat;
mod keys;
mod live_nodes;
mod local_routes;
mod meters;
mod node;
mod options;
mod payload;
mod publish_queue;
mod publisher;
mod registration_rows;
mod route_keys;
mod route_refresh;
mod route_update;
mod route_writer;
mod sequence_check;
mod subscriber;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use nexo_chat::Boxed;
use nexo_chat::bus::{Bus, Listener, Registration};
use nexo_chat::event::Event;
use nexo_chat::ids::{ConnectionId, ConversationId, UserId};
use nexo_redis_link::{Addresses, RedisOptionsError};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::breaker::Breaker;
use self::keys::BusKeys;
use self::meters::Meters;
use self::node::{BusNode, merge_registrations};
pub use self::options::RedisBusOptions;
use self::payload::PayloadCodec;
use self::publish_queue::PublishQueue;
use self::publisher::Publisher;
use self::route_refresh::RouteRefresh;
use self::route_update::{RouteRemoval, RouteUpdateQueue};
use self::route_writer::RouteWriter;
use self::subscriber::Subscriber;

const TASKS: usize = 4;

/// A bus that reaches the other nodes through Redis.
pub struct RedisBus {
    node: Arc<BusNode>,
    /// Aborted when the bus is dropped.
    tasks: Mutex<JoinSet<()>>,
}

impl RedisBus {
    /// Starts to connect and returns at once: Redis need not be up yet. All nodes have the same
    /// `key`, which seals their payloads. Must be called within a tokio runtime.
    pub fn connect(
        options: RedisBusOptions,
        key: [u8; 32],
    ) -> Result<Arc<Self>, RedisOptionsError> {
        let addresses = Addresses::new(&options.redis)?;
        let meters = Arc::new(Meters::new());
        let (route_updates, updates) = RouteUpdateQueue::new();
        let (publish_queue, events) =
            PublishQueue::new(options.queue_events, options.queue_bytes, Arc::clone(&meters));
        tracing::info!(target: "nexo::bus", node = %options.node(), "using {}", options.redis);
        let node = Arc::new(BusNode {
            addresses,
            keys: BusKeys::new(&options.redis.prefix),
            codec: PayloadCodec::new(key),
            breaker: Breaker::new(Arc::clone(&meters)),
            local_routes: local_routes::LocalRoutes::default(),
            live_nodes: live_nodes::LiveNodes::default(),
            route_updates,
            publish_queue,
            route_refresh: RouteRefresh::default(),
            listener: OnceLock::new(),
            meters,
            options,
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(heartbeat::run(Arc::clone(&node)));
        tasks.spawn(Subscriber::new(Arc::clone(&node)).run());
        tasks.spawn(RouteWriter::new(Arc::clone(&node), updates).run());
        tasks.spawn(Publisher::new(Arc::clone(&node), events).run());
        Ok(Arc::new(Self { node, tasks: Mutex::new(tasks) }))
    }

    /// Waits until commands and the subscription work.
    pub async fn wait_reachable(&self) {
        self.node.breaker.wait_healthy().await;
    }

    /// Leaves the cluster: publishes what is queued and removes this node's routes. Afterwards the
    /// bus works for this node alone.
    pub async fn leave(&self) {
        let limit = self.node.options.publish_timeout;
        let idle = async {
            while !self.node.publish_queue.is_idle() {
                sleep(Duration::from_millis(1)).await;
            }
        };
        if timeout(limit, idle).await.is_err() {
            tracing::warn!(target: "nexo::bus", "leaving before everything was published");
        }
        let mut tasks = {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *tasks)
        };
        tasks.shutdown().await;
        route_writer::remove_all(&self.node).await;
        self.node.breaker.leave();
    }

    /// Queues an event for the other nodes, if they can be reached.
    fn send(&self, event: Event) {
        if self.node.breaker.is_closed() {
            self.node.publish_queue.push(event);
        } else {
            self.node.publish_queue.drop_events(1);
        }
    }
}

impl Bus for RedisBus {
    fn publish(&self, event: Event) {
        if let Some(listener) = self.node.listener.get() {
            listener.on_event(&event);
        }
        self.send(event);
    }

    fn publish_all(&self, events: &[Event]) {
        if let Some(listener) = self.node.listener.get() {
            listener.on_events(events);
        }
        for event in events {
            self.send(event.clone());
        }
    }

    fn set_listener(&self, listener: Arc<dyn Listener>) {
        // A second listener would be a mistake in the wiring; the first one stays.
        let is_first = self.node.listener.set(listener).is_ok();
        debug_assert!(is_first, "one listener per node");
    }

    fn register(&self, registration: Registration) -> Boxed<'_, Vec<Registration>> {
        let node = &self.node;
        let before = node.local_routes.register(&registration);
        if !node.breaker.is_closed() {
            // The refresh after the outage writes the registration.
            return Box::pin(std::future::ready(merge_registrations(before, Vec::new())));
        }
        let answer = node.route_updates.register(registration);
        Box::pin(async move {
            let elsewhere = node.remote_before(answer).await.unwrap_or_default();
            merge_registrations(before, elsewhere)
        })
    }

    fn unregister(&self, user: &UserId, connection: ConnectionId) {
        if self.node.local_routes.unregister(user, connection) {
            self.node.route_updates.remove(RouteRemoval::registration(
                &self.node.keys,
                user,
                connection,
            ));
        }
    }

    fn registrations(&self, user: &UserId) -> Boxed<'_, Vec<Registration>> {
        let user = user.clone();
        Box::pin(async move {
            let elsewhere = self.node.remote_registrations(&user).await.unwrap_or_default();
            merge_registrations(self.node.local_routes.registrations(&user), elsewhere)
        })
    }

    fn subscribe_groups(&self, groups: Vec<ConversationId>) -> Boxed<'_, bool> {
        let node = &self.node;
        let new = node.local_routes.subscribe_groups(groups);
        if new.is_empty() || !node.breaker.is_closed() {
            return Box::pin(std::future::ready(!new.is_empty()));
        }
        let answer = node.route_updates.subscribe_groups(new);
        Box::pin(async move {
            // On a timeout the route writer still writes them, now or in the refresh after an
            // outage.
            drop(timeout(node.options.call_timeout * 2, answer).await);
            true
        })
    }

    fn unsubscribe_group(&self, group: &ConversationId) {
        if self.node.local_routes.unsubscribe_group(group) {
            let node = self.node.id();
            self.node.route_updates.remove(RouteRemoval::subscription(
                &self.node.keys,
                group,
                node,
            ));
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn health(&self) -> Result<(), String> {
        self.node.breaker.health()?;
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // A task never returns: one that ended has panicked.
        let has_ended = tasks.try_join_next().is_some() || tasks.len() < TASKS;
        if has_ended { Err("a task of the bus has ended".into()) } else { Ok(()) }
    }
}
