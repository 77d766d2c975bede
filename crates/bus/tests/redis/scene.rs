//! Nodes that share a Redis, and the events they receive.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use nexo_bus::{RedisBus, RedisBusOptions};
use nexo_chat::Reason;
use nexo_chat::bus::{Bus, Listener, Registration};
use nexo_chat::change::{Change, ChangeKind};
use nexo_chat::event::{Event, Logins};
use nexo_chat::ids::{
    ClientMsgId, ConnectionId, ConversationId, LoginId, MessageId, Millis, Platform, Seq, UserId,
};
use nexo_chat::model::{Content, Message};
use nexo_redis_link::{NodeId, RedisOptions};

/// The key all nodes share.
pub(crate) const KEY: [u8; 32] = [42; 32];
/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Records the events and losses that a node is told of.
#[derive(Default)]
pub(crate) struct RecordingListener {
    events: Mutex<Vec<String>>,
    losses: AtomicUsize,
}

impl RecordingListener {
    pub(crate) fn events(&self) -> Vec<String> {
        self.events.lock().expect("not poisoned").clone()
    }

    pub(crate) fn last(&self) -> String {
        self.events().pop().unwrap_or_default()
    }

    /// How often events were lost.
    pub(crate) fn losses(&self) -> usize {
        self.losses.load(Ordering::SeqCst)
    }
}

impl Listener for RecordingListener {
    fn on_event(&self, event: &Event) {
        self.events.lock().expect("not poisoned").push(describe(event));
    }

    fn on_loss(&self) {
        self.losses.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) fn describe(event: &Event) -> String {
    match event {
        Event::Message { message, .. } => format!("{} {}", message.conversation, message.seq),
        Event::Change { change, .. } => format!("{} change {}", change.conversation, change.seq),
        Event::Ended { user, .. } => format!("{user} ended"),
        Event::Closed { user, connections, .. } => format!("{user} closed {connections:?}"),
        other => format!("{other:?}"),
    }
}

pub(crate) struct Node {
    pub(crate) bus: Arc<RedisBus>,
    pub(crate) received: Arc<RecordingListener>,
}

impl Node {
    /// A node that may not have reached Redis yet.
    pub(crate) fn start(options: RedisBusOptions) -> Self {
        Self::start_with_key(options, KEY)
    }

    pub(crate) fn start_with_key(options: RedisBusOptions, key: [u8; 32]) -> Self {
        let bus = RedisBus::connect(options, key).expect("good options");
        let received = Arc::new(RecordingListener::default());
        bus.set_listener(Arc::clone(&received) as Arc<dyn Listener>);
        Self { bus, received }
    }

    /// A node that others can reach.
    pub(crate) async fn reached(options: RedisBusOptions) -> Self {
        let node = Self::start(options);
        node.reach().await;
        node
    }

    pub(crate) async fn reach(&self) {
        let reached = tokio::time::timeout(PATIENCE, self.bus.wait_reachable()).await;
        assert!(reached.is_ok(), "{:?}", self.bus.health());
    }

    /// Waits until this event was received.
    pub(crate) async fn hears(&self, what: &str) {
        let is_received = || self.received.events().iter().any(|event| event == what);
        eventually(what, async || is_received()).await;
    }

    pub(crate) async fn registrations(&self, id: &str) -> Vec<u64> {
        numbers(&self.bus.registrations(&user(id)).await)
    }

    /// Waits until a user has these sockets.
    pub(crate) async fn finds(&self, id: &str, expect: &[u64]) {
        eventually(&format!("{id} is at {expect:?}"), async || {
            self.registrations(id).await == expect
        })
        .await;
    }
}

/// The usual options with long timeouts, because the machine may be busy.
pub(crate) fn options(url: &str, node: u8, prefix: &str) -> RedisBusOptions {
    let redis = RedisOptions {
        prefix: prefix.to_owned(),
        connect_timeout: Duration::from_secs(10),
        ..RedisOptions::new(url, NodeId([node; 16]))
    };
    RedisBusOptions {
        publish_timeout: Duration::from_secs(10),
        call_timeout: Duration::from_secs(10),
        ..RedisBusOptions::new(redis)
    }
}

/// Options that detect dead nodes and connections soon.
pub(crate) fn lively(url: &str, node: u8, prefix: &str) -> RedisBusOptions {
    RedisBusOptions {
        heartbeat: Duration::from_millis(400),
        node_ttl: Duration::from_millis(1600),
        refresh: Duration::from_millis(300),
        ..options(url, node, prefix)
    }
}

/// Polls until a condition holds.
pub(crate) async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < until, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn user(id: &str) -> UserId {
    UserId::parse(id).expect("a good id")
}

pub(crate) fn group(id: &str) -> ConversationId {
    ConversationId::parse(&format!("sg_{id}")).expect("a good id")
}

pub(crate) fn registration(id: &str, connection: u64) -> Registration {
    Registration {
        user: user(id),
        connection: ConnectionId(connection),
        login: LoginId([connection.to_le_bytes()[0]; 16]),
        platform: Platform(5),
    }
}

pub(crate) fn numbers(registrations: &[Registration]) -> Vec<u64> {
    registrations.iter().map(|registration| registration.connection.0).collect()
}

pub(crate) fn ended(id: &str) -> Event {
    Event::Ended { user: user(id), logins: Logins::All, reason: Reason::Kicked }
}

pub(crate) fn private(from: &str, to: &str, seq: u64) -> Event {
    message(ConversationId::private(&user(from), &user(to)), seq, "hello")
}

pub(crate) fn message(conversation: ConversationId, seq: u64, body: impl Into<Bytes>) -> Event {
    let (sender, client_id) =
        (user("ann"), ClientMsgId::parse(&format!("m{seq}")).expect("a good id"));
    let message = Message {
        id: MessageId::of(&sender, &client_id),
        conversation,
        seq: Seq(seq),
        sender,
        client_id,
        sent_at: Millis(1),
        content: Content::text(body),
        recalled: None,
    };
    Event::Message { message: Arc::new(message), origin: None, members: 0, change_seq: Seq(0) }
}

pub(crate) fn joined(id: &str, seq: u64, people: &[&str]) -> Event {
    let users = people.iter().map(|id| user(id)).collect();
    let kind = ChangeKind::Joined { users, from: Seq(1) };
    let (by, at) = (user("ann"), Millis(1));
    let change = Change { conversation: group(id), seq: Seq(seq), by, at, kind };
    Event::Change { change: Arc::new(change), origin: None, members: 2 }
}
