//! What nodes share goes away and comes back, under load. Nothing acknowledged is lost or stored
//! twice, nobody's sending depends on Redis, and everybody has everything again soon after.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nexo_sim::history::read_all;
use nexo_sim::process::Setup;
use nexo_sim::socket::seq;
use nexo_sim::{Group, Http, MariaDb, Person, Redis, Server, Socket, Stubborn};
use serde_json::Value;

/// Pairs that talk: each has one on the first node and one on another.
const PAIRS: usize = 4;

struct Load {
    senders: Vec<tokio::task::JoinHandle<(Vec<Value>, Stubborn)>>,
    readers: Vec<tokio::task::JoinHandle<Stubborn>>,
    is_over: Arc<AtomicBool>,
    has_all: Arc<AtomicBool>,
}

fn setup(database: &str, redis: &str) -> Setup {
    let setup = Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(3).with_services(database, redis);
    setup.with("NEXO_CLUSTER__NODE_TTL_MS", "2000")
}

/// Everybody talks in pairs and in one group, from one node to another.
async fn load(server: &Server) -> (Load, Group, Vec<(Person, Person)>) {
    let mut people = Vec::new();
    for pair in 0..PAIRS {
        let (s, r) = (format!("s{pair}"), format!("r{pair}"));
        people.push((server.person(&s).await, server.person(&r).await));
    }
    let others: Vec<&Person> = people.iter().flat_map(|(s, r)| [s, r]).skip(1).collect();
    let group = Group::new(&server.http, &people[0].0, &others).await;
    let (is_over, has_all) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (mut senders, mut readers) = (Vec::new(), Vec::new());
    for (pair, (sender, reader)) in people.iter().enumerate() {
        let mut it = Stubborn::new(&server.node(pair % 3).authority, sender);
        let (over, to, group) = (Arc::clone(&is_over), reader.id.clone(), group.clone());
        senders.push(tokio::spawn(async move {
            let mut acks = Vec::new();
            for number in 0.. {
                acks.push(it.send(&to, &format!("p{number}"), "words").await);
                let said = it.until_saved(&group.chat(&format!("g{number}"), "to all")).await;
                acks.push(said);
                if over.load(Ordering::SeqCst) {
                    break;
                }
            }
            (acks, it)
        }));
        let mut it = Stubborn::new(&server.node((pair + 1) % 3).authority, reader);
        let done = Arc::clone(&has_all);
        readers.push(tokio::spawn(async move {
            while !done.load(Ordering::SeqCst) {
                it.listen(Duration::from_millis(50)).await;
            }
            it
        }));
    }
    (Load { senders, readers, is_over, has_all }, group, people)
}

/// Ends the sending, gives the readers a while, and compares what everybody has with what is stored.
async fn check(
    load: Load,
    http: &Http,
    group: &Group,
    people: &[(Person, Person)],
    converge_within: Duration,
) -> usize {
    load.is_over.store(true, Ordering::SeqCst);
    let (mut acked, mut busy) = (0, 0);
    for (sender, (me, peer)) in load.senders.into_iter().zip(people) {
        let (acks, it) = sender.await.unwrap();
        acked += acks.len();
        busy += it.busy;
        let private: Vec<&Value> = acks.iter().step_by(2).collect();
        let stored = read_all(http, peer, &me.id).await;
        assert_eq!(stored.len(), private.len(), "each once");
        for (number, (message, ack)) in stored.iter().zip(private).enumerate() {
            assert_eq!(message["clientMsgId"], format!("p{number}"), "in the order of sending");
            assert_eq!((seq(message), &message["serverMsgId"]), (seq(ack), &ack["serverMsgId"]));
        }
    }
    let said = group.read_all(&people[0].0).await;
    let seqs: Vec<u64> = said.iter().map(seq).collect();
    assert_eq!(seqs, (1..=said.len() as u64).collect::<Vec<_>>(), "dense");
    assert_eq!(said.len(), acked / 2, "each once");
    tokio::time::sleep(converge_within).await;
    load.has_all.store(true, Ordering::SeqCst);
    for (reader, (sender, me)) in load.readers.into_iter().zip(people) {
        let it = reader.await.unwrap();
        let private = read_all(http, me, &sender.id).await.len() as u64;
        let has = |place: &str| -> BTreeSet<u64> {
            it.heard.keys().filter(|(at, _)| at == place).map(|(_, seq)| *seq).collect()
        };
        assert_eq!(has(&sender.id), (1..=private).collect(), "{} has all of {}", me.id, sender.id);
        let all: BTreeSet<u64> = (1..=said.len() as u64).collect();
        let heard = has(&group.id);
        let lacks: Vec<&u64> = all.difference(&heard).collect();
        assert!(lacks.is_empty(), "{} lacks {lacks:?} of the group", me.id);
    }
    eprintln!("{acked} messages, {busy} times busy");
    busy
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_goes_and_comes_back() {
    let mut redis = Redis::start();
    let server = setup(&MariaDb::shared().fresh_database(), &redis.url()).start();
    let (load, group, people) = load(&server).await;
    let wait = |ms| tokio::time::sleep(Duration::from_millis(ms));
    wait(800).await;
    redis.flush();
    wait(800).await;
    redis.kill();
    wait(1500).await;
    let ready = server.node(0).get("/readyz", "").await;
    assert_eq!((ready.status, &ready.body["status"]), (200, &Value::from("degraded")));
    redis.start_again();
    wait(1500).await;
    redis.stop();
    wait(300).await;
    redis.start_again();
    wait(1500).await;
    let busy = check(load, &server.http, &group, &people, Duration::from_secs(5)).await;
    assert_eq!(busy, 0, "no send depends on Redis");
    let ready = server.node(0).get("/readyz", "").await;
    assert_eq!(ready.body["status"], "ready");
}

/// As long as a node hears nobody, it looks what its sockets lack, and which sign-ins ended.
#[tokio::test(flavor = "multi_thread")]
async fn without_redis_messages_and_ends_come_later() {
    let mut redis = Redis::start();
    let server = setup(&MariaDb::shared().fresh_database(), &redis.url()).start();
    let [alice, bob, carol] = server.people(["alice", "bob", "carol"]).await;
    let connect = async |node: usize, person: &Person| {
        let mut socket = Socket::open(&server.node(node).authority).await;
        socket.auth(&person.token).await;
        socket.until("RESEND_DONE").await;
        socket
    };
    let mut a = connect(0, &alice).await;
    let (mut b, mut c) = (connect(1, &bob).await, connect(1, &carol).await);
    Group::new(server.node(0), &alice, &[&bob]).await;
    redis.kill();
    // Whoever is in a group is let in all the same.
    let phone = connect(2, &alice).await;
    drop(phone);
    a.send("bob", "c1", "can you hear me?").await;
    let logout = server.node(0).post("/auth/logout", &carol.token, Value::Null).await;
    assert_eq!(logout.status, 200, "{}", logout.text);
    assert_eq!(seq(&b.expect("SINGLE_CHAT").await), 1);
    let (frames, _) = c.expect_end().await;
    assert_eq!(frames.last().unwrap()["reason"], "session_invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_redis_slows_no_send() {
    let mut redis = Redis::start();
    let server = setup(&MariaDb::shared().fresh_database(), &redis.url()).start();
    let [alice, _bob] = server.people(["alice", "bob"]).await;
    let mut it = Stubborn::new(&server.node(0).authority, &alice);
    let mut median = async |name: &str| {
        let mut times = Vec::new();
        for number in 0..200 {
            let since = Instant::now();
            it.send("bob", &format!("{name}{number}"), "words").await;
            times.push(since.elapsed());
        }
        times.sort();
        times[100]
    };
    let with = median("with").await;
    redis.kill();
    let without = median("without").await;
    eprintln!("a send takes {with:?} with Redis and {without:?} without");
    assert!(without < with * 2 + Duration::from_millis(2), "{with:?} {without:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_goes_and_comes_back() {
    let mut database = MariaDb::start();
    database.create_database("nexo");
    let redis = Redis::start();
    let setup = setup(&database.url("nexo"), &redis.url());
    let server = setup.with("NEXO_MYSQL__PATIENCE_MS", "500").start();
    let (load, group, people) = load(&server).await;
    let wait = |ms| tokio::time::sleep(Duration::from_millis(ms));
    wait(1000).await;
    database.kill();
    wait(1500).await;
    let ready = server.node(0).get("/readyz", "").await;
    assert_eq!(ready.status, 503, "{}", ready.text);
    database.start_again();
    wait(2000).await;
    database.stop();
    wait(700).await;
    database.start_again();
    wait(2000).await;
    let busy = check(load, &server.http, &group, &people, Duration::from_secs(5)).await;
    assert!(busy > 0, "what could not be saved was refused");
}
