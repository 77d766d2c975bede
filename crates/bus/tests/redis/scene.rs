//! Nodes that share a Redis, and what they hear.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use nexo_bus::{NodeId, Redis, RedisOptions};
use nexo_chat::Reason;
use nexo_chat::bus::{Bus, Listener, Place};
use nexo_chat::change::{Change, ChangeKind};
use nexo_chat::command::{Event, Logins};
use nexo_chat::ids::{
    ClientMsgId, ConnectionId, ConversationId, LoginId, MessageId, Millis, Platform, Seq, UserId,
};
use nexo_chat::model::{Content, Message};

/// The key all nodes share.
pub(crate) const KEY: [u8; 32] = [42; 32];
/// Long enough for a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(30);

/// Remembers what a node heard.
#[derive(Default)]
pub(crate) struct Notebook {
    heard: Mutex<Vec<String>>,
    lost: AtomicUsize,
}

impl Notebook {
    /// Everything heard, in order.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("not poisoned").clone()
    }

    /// What was heard last.
    pub(crate) fn last(&self) -> String {
        self.heard().pop().unwrap_or_default()
    }

    /// How often something was missed.
    pub(crate) fn lost(&self) -> usize {
        self.lost.load(Ordering::SeqCst)
    }
}

impl Listener for Notebook {
    fn hear(&self, event: &Event) {
        self.heard.lock().expect("not poisoned").push(told(event));
    }

    fn lost(&self) {
        self.lost.fetch_add(1, Ordering::SeqCst);
    }
}

/// An event in a few words.
pub(crate) fn told(event: &Event) -> String {
    match event {
        Event::Message { message, .. } => format!("{} {}", message.conversation, message.seq),
        Event::Change { change, .. } => format!("{} change {}", change.conversation, change.seq),
        Event::Ended { user, .. } => format!("{user} ended"),
        Event::Closed { user, connections, .. } => format!("{user} closed {connections:?}"),
        other => format!("{other:?}"),
    }
}

/// A node: its bus and what it heard.
pub(crate) struct Node {
    pub(crate) bus: Arc<Redis>,
    pub(crate) notes: Arc<Notebook>,
}

impl Node {
    /// A node that need not have reached Redis.
    pub(crate) fn start(options: RedisOptions) -> Self {
        Self::start_with_key(options, KEY)
    }

    pub(crate) fn start_with_key(options: RedisOptions, key: [u8; 32]) -> Self {
        let bus = Redis::connect(options, key).expect("good options");
        let notes = Arc::new(Notebook::default());
        bus.subscribe(Arc::clone(&notes) as Arc<dyn Listener>);
        Self { bus, notes }
    }

    /// A node that others can reach.
    pub(crate) async fn reached(options: RedisOptions) -> Self {
        let node = Self::start(options);
        node.reach().await;
        node
    }

    pub(crate) async fn reach(&self) {
        let reached = tokio::time::timeout(PATIENCE, self.bus.reached()).await;
        assert!(reached.is_ok(), "{:?}", self.bus.health());
    }

    /// Waits until this was heard.
    pub(crate) async fn hears(&self, what: &str) {
        let is_heard = || self.notes.heard().iter().any(|heard| heard == what);
        eventually(what, async || is_heard()).await;
    }

    pub(crate) async fn places(&self, id: &str) -> Vec<u64> {
        numbers(&self.bus.places(&user(id)).await)
    }

    /// Waits until a user is at these sockets.
    pub(crate) async fn finds(&self, id: &str, expect: &[u64]) {
        eventually(&format!("{id} is at {expect:?}"), async || self.places(id).await == expect)
            .await;
    }
}

/// The usual options, but patient: a busy machine is not a broken one.
pub(crate) fn options(url: &str, node: u8, prefix: &str) -> RedisOptions {
    RedisOptions {
        prefix: prefix.to_owned(),
        publish_timeout: Duration::from_secs(10),
        call_timeout: Duration::from_secs(10),
        connect_timeout: Duration::from_secs(10),
        ..RedisOptions::new(url, NodeId([node; 16]))
    }
}

/// Options with which absences are noticed soon.
pub(crate) fn lively(url: &str, node: u8, prefix: &str) -> RedisOptions {
    RedisOptions {
        heartbeat: Duration::from_millis(400),
        node_ttl: Duration::from_millis(1600),
        refresh: Duration::from_millis(300),
        ..options(url, node, prefix)
    }
}

/// Polls until something is so.
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

pub(crate) fn place(id: &str, connection: u64) -> Place {
    Place {
        user: user(id),
        connection: ConnectionId(connection),
        login: LoginId([connection.to_le_bytes()[0]; 16]),
        platform: Platform(5),
    }
}

pub(crate) fn numbers(places: &[Place]) -> Vec<u64> {
    places.iter().map(|place| place.connection.0).collect()
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
