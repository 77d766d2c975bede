//! The setup that the fault tests of two-phase acknowledgement share.

#![allow(dead_code, reason = "each of them uses a part")]

use std::time::{Duration, Instant};

use nexo_sim::history::read_all;
use nexo_sim::mariadb::RowLocks;
use nexo_sim::process::Setup;
use nexo_sim::socket::{chat, seq};
use nexo_sim::{Http, MariaDb, Person, RedisServer, Server, Socket};
use serde_json::Value;

/// A database and a Redis that only this test has, nodes on them, and two people: alice has said
/// `first` to bob.
pub(crate) struct Scene {
    pub(crate) database: MariaDb,
    pub(crate) redis: RedisServer,
    pub(crate) server: Server,
    pub(crate) alice: Person,
    pub(crate) bob: Person,
}

impl Scene {
    /// Starts nodes on this Redis; `change` adapts their setup.
    pub(crate) async fn new(
        nodes: usize,
        redis: RedisServer,
        change: impl FnOnce(Setup) -> Setup,
    ) -> Self {
        let database = MariaDb::start();
        database.create_database("nexo");
        let server = change(setup(nodes, &database.url("nexo"), &redis.url())).start();
        let [alice, bob] = server.people(["alice", "bob"]).await;
        connect(server.node(0), &alice).await.send("bob", "first", "words").await;
        Self { database, redis, server, alice, bob }
    }

    /// Nothing can be saved until this is dropped: everything waits in the log.
    pub(crate) fn hold(&self) -> RowLocks {
        self.database.lock_rows("nexo", "SELECT id FROM conversations FOR UPDATE")
    }

    /// The database takes no message with this client id.
    pub(crate) fn refuse(&self, client_id: &str) {
        let refuse = format!(
            "CREATE TRIGGER refuse BEFORE INSERT ON messages FOR EACH ROW \
             IF NEW.client_id = '{client_id}' THEN \
             SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF"
        );
        self.database.sql("nexo", &format!("DELIMITER //\n{refuse} //\n"));
    }

    /// A socket of alice on a node.
    pub(crate) async fn alice_at(&self, node: usize) -> Socket {
        connect(self.server.node(node), &self.alice).await
    }

    /// A socket of bob on a node.
    pub(crate) async fn bob_at(&self, node: usize) -> Socket {
        connect(self.server.node(node), &self.bob).await
    }

    /// Waits until so many messages of alice to bob are stored, and returns them.
    pub(crate) async fn stored(&self, count: usize) -> Vec<String> {
        stored(&self.server.http, &self.bob, "alice", count).await
    }
}

pub(crate) fn setup(nodes: usize, database: &str, redis: &str) -> Setup {
    let setup = Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(nodes).with_services(database, redis);
    setup
        .with("NEXO_CLUSTER__NODE_TTL_MS", "2000")
        .with("NEXO_TWO_PHASE__ENABLED", "true")
        .with("NEXO_TWO_PHASE__DELIVER_BEFORE_SAVED", "true")
        .with("NEXO_TWO_PHASE__LEASE_MS", "1000")
}

/// A Redis that forgets nothing it has answered.
pub(crate) fn lasting_redis() -> RedisServer {
    RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"])
}

pub(crate) async fn wait(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

pub(crate) async fn connect(server: &Http, person: &Person) -> Socket {
    let mut socket = Socket::open(&server.authority).await;
    socket.auth(&person.token).await;
    socket.until("RESEND_DONE").await;
    socket
}

/// Sends many messages at once and waits for an answer to each; returns the accepted ones.
pub(crate) async fn accepted(
    socket: &mut Socket,
    to: &str,
    ids: impl Iterator<Item = String>,
) -> Vec<String> {
    let ids: Vec<String> = ids.collect();
    socket.burst(ids.iter().map(|id| chat(to, id, "words"))).await;
    let mut accepted = Vec::new();
    for id in ids {
        let is_answer = |frame: &Value| {
            frame["clientMsgId"] == id.as_str()
                && (frame["type"] == "ERROR" || frame["type"] == "ACK")
        };
        if socket.find(is_answer, "an answer").await["type"] == "ACK" {
            accepted.push(id);
        }
    }
    accepted
}

/// Waits until so many are stored, and returns their client ids in the order of their seqs.
pub(crate) async fn stored(
    server: &Http,
    reader: &Person,
    peer: &str,
    count: usize,
) -> Vec<String> {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let stored = read_all(server, reader, peer).await;
        let seqs: Vec<u64> = stored.iter().map(seq).collect();
        assert_eq!(seqs, (1..=stored.len() as u64).collect::<Vec<_>>(), "dense");
        if stored.len() >= count || Instant::now() > until {
            let id = |it: &Value| it["clientMsgId"].as_str().unwrap().to_owned();
            return stored.iter().map(id).collect();
        }
        wait(50).await;
    }
}

pub(crate) fn ids(name: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |number| format!("{name}{number}"))
}
