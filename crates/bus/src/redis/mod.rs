//! The bus of many nodes, over Redis. Nothing depends on it for good: Redis may forget everything or
//! vanish at any moment, and then each node goes on alone until it is back.
//!
//! Who is where is written in Redis and expires unless it is renewed. Each node hears one channel of
//! its own; whoever has something to tell looks up which nodes it concerns and publishes it there,
//! once per node. In reading order:
//!
//! - `options`, `address`, `names`: where Redis is, and what things are called there
//! - `link`, `breaker`: commands, while Redis answers them; `backoff`: when to try again
//! - `own`, `routes`, `alive`: who is here, who is elsewhere, and which nodes there are
//! - `errand`, `clerk`: how it gets written
//! - `audience`, `outgoing`, `payload`, `publisher`: how events leave
//! - `heard`, `ear`: how they arrive
//! - `keeper`: how the connection is kept
//! - `meters`: what can be watched; `node`: what all of them share

mod address;
mod alive;
mod audience;
mod backoff;
mod breaker;
mod clerk;
mod ear;
mod errand;
mod heard;
mod keeper;
mod link;
mod meters;
mod names;
mod node;
mod options;
mod outgoing;
mod own;
mod payload;
mod publisher;
mod routes;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use nexo_chat::Boxed;
use nexo_chat::bus::{Bus, Listener, Place};
use nexo_chat::command::Event;
use nexo_chat::ids::{ConnectionId, ConversationId, UserId};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

pub use self::address::{Address, Addresses};
pub use self::backoff::Backoff;
use self::breaker::Breaker;
use self::clerk::{Clerk, Renewal};
use self::ear::Ear;
use self::errand::{Errands, Removal};
pub use self::link::{Link, Lot};
use self::meters::Meters;
use self::names::Names;
pub use self::names::NodeId;
use self::node::{Node, merge};
pub use self::options::{BadOptions, RedisOptions};
use self::outgoing::Outgoing;
use self::payload::Seal;
use self::publisher::Publisher;

const TASKS: usize = 4;

/// A bus that reaches the other nodes through Redis.
pub struct Redis {
    node: Arc<Node>,
    /// They end with the bus.
    tasks: Mutex<JoinSet<()>>,
}

impl Redis {
    /// Starts to connect, and returns at once: Redis need not be there yet. All nodes have the same
    /// `key`, which tells their events from anybody else's. Must be called within a tokio runtime.
    pub fn connect(options: RedisOptions, key: [u8; 32]) -> Result<Arc<Self>, BadOptions> {
        address::choose_cryptography();
        let names = Names::new(&options.prefix).ok_or(BadOptions::Prefix)?;
        let meters = Arc::new(Meters::new());
        let (errands, errands_queue) = Errands::new();
        let (outgoing, events) =
            Outgoing::new(options.queue_events, options.queue_bytes, Arc::clone(&meters));
        tracing::info!(target: "nexo::bus", node = %options.node, "using {options}");
        let node = Arc::new(Node {
            addresses: Addresses::new(&options)?,
            names,
            seal: Seal::new(key),
            breaker: Breaker::new(Arc::clone(&meters)),
            own: own::Own::default(),
            alive: alive::Alive::default(),
            errands,
            outgoing,
            renewal: Renewal::default(),
            listener: OnceLock::new(),
            meters,
            options,
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(keeper::keep(Arc::clone(&node)));
        tasks.spawn(Ear::new(Arc::clone(&node)).work());
        tasks.spawn(Clerk::new(Arc::clone(&node), errands_queue).work());
        tasks.spawn(Publisher::new(Arc::clone(&node), events).work());
        Ok(Arc::new(Self { node, tasks: Mutex::new(tasks) }))
    }

    /// Waits until other nodes can be told and heard.
    pub async fn reached(&self) {
        self.node.breaker.whole().await;
    }

    /// A clean end: what was published is sent, and nobody finds this node any more. Afterwards the
    /// bus is one of this node alone.
    pub async fn leave(&self) {
        let limit = self.node.options.publish_timeout;
        let idle = async {
            while !self.node.outgoing.is_idle() {
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
        clerk::clear(&self.node).await;
        self.node.breaker.leave();
    }

    /// To the other nodes, if they can be reached.
    fn send(&self, event: Event) {
        if self.node.breaker.is_closed() {
            self.node.outgoing.push(event);
        } else {
            self.node.outgoing.drop_events(1);
        }
    }
}

impl Bus for Redis {
    fn publish(&self, event: Event) {
        if let Some(listener) = self.node.listener.get() {
            listener.hear(&event);
        }
        self.send(event);
    }

    fn publish_all(&self, events: Vec<Event>) {
        if let Some(listener) = self.node.listener.get() {
            listener.hear_all(&events);
        }
        for event in events {
            self.send(event);
        }
    }

    fn subscribe(&self, listener: Arc<dyn Listener>) {
        // A second listener would be a mistake in the wiring; the first one stays.
        let is_first = self.node.listener.set(listener).is_ok();
        debug_assert!(is_first, "one listener per node");
    }

    fn claim(&self, place: Place) -> Boxed<'_, Vec<Place>> {
        let node = &self.node;
        let before = node.own.claim(&place);
        if !node.breaker.is_closed() {
            // Written when Redis is back, as everything is.
            return Box::pin(std::future::ready(merge(before, Vec::new())));
        }
        let answer = node.errands.claim(place);
        Box::pin(async move {
            let elsewhere = node.claimed(answer).await.unwrap_or_default();
            merge(before, elsewhere)
        })
    }

    fn release(&self, user: &UserId, connection: ConnectionId) {
        if self.node.own.release(user, connection) {
            self.node.errands.remove(Removal::place(&self.node.names, user, connection));
        }
    }

    fn places(&self, user: &UserId) -> Boxed<'_, Vec<Place>> {
        let user = user.clone();
        Box::pin(async move {
            let elsewhere = self.node.elsewhere(&user).await.unwrap_or_default();
            merge(self.node.own.places(&user), elsewhere)
        })
    }

    fn tune_in(&self, groups: Vec<ConversationId>) -> Boxed<'_, bool> {
        let node = &self.node;
        let new = node.own.tune_in(groups);
        if new.is_empty() || !node.breaker.is_closed() {
            return Box::pin(std::future::ready(!new.is_empty()));
        }
        let answer = node.errands.tune_in(new);
        Box::pin(async move {
            // In vain, it is written when its turn comes, or when Redis is back.
            drop(timeout(node.options.call_timeout * 2, answer).await);
            true
        })
    }

    fn tune_out(&self, group: &ConversationId) {
        if self.node.own.tune_out(group) {
            let node = self.node.id();
            self.node.errands.remove(Removal::interest(&self.node.names, group, node));
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn health(&self) -> Result<(), String> {
        self.node.breaker.health()?;
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // None of them ends but by a panic.
        let has_ended = tasks.try_join_next().is_some() || tasks.len() < TASKS;
        if has_ended { Err("a task of the bus has ended".into()) } else { Ok(()) }
    }
}
