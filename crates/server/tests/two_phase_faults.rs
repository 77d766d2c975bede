//! Two-phase acknowledgement on bad days: nodes die, Redis goes or forgets, the database is away.
//! What was accepted is saved once and in order, or its sender and whoever was shown it are told.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::time::{Duration, Instant};

use nexo_sim::history::read_all;
use nexo_sim::process::Setup;
use nexo_sim::schema::assert_fits;
use nexo_sim::socket::{chat, seq};
use nexo_sim::{Group, Http, MariaDb, Person, Redis, RedisCluster, Socket, Talk};
use rustix::process::Signal;
use serde_json::Value;

const CONVERSATIONS: &str = "SELECT id FROM conversations FOR UPDATE";

fn setup(nodes: usize, database: &str, redis: &str) -> Setup {
    let setup = Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(nodes).with_services(database, redis);
    setup
        .with("NEXO_CLUSTER__NODE_TTL_MS", "2000")
        .with("NEXO_TWO_PHASE__ENABLED", "true")
        .with("NEXO_TWO_PHASE__DELIVER_BEFORE_SAVED", "true")
        .with("NEXO_TWO_PHASE__LEASE_MS", "1000")
}

/// A Redis that forgets nothing it has answered.
fn lasting_redis() -> Redis {
    Redis::start_with(&["--appendonly", "yes", "--appendfsync", "always"])
}

async fn wait(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

async fn connect(server: &Http, person: &Person) -> Socket {
    let mut socket = Socket::open(&server.authority).await;
    socket.auth(&person.token).await;
    socket.until("RESEND_DONE").await;
    socket
}

/// Sends so many at once and waits until each has some answer; returns the accepted ones.
async fn accepted(socket: &mut Socket, to: &str, ids: impl Iterator<Item = String>) -> Vec<String> {
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
async fn stored(server: &Http, reader: &Person, peer: &str, count: usize) -> Vec<String> {
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

fn ids(name: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |number| format!("{name}{number}"))
}

/// Whoever accepted messages dies before any of them is saved, and whoever looks after them too.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_accepted_is_saved_whoever_dies() {
    let database = MariaDb::start();
    database.create_database("nexo");
    let mut redis = lasting_redis();
    let mut server = setup(3, &database.url("nexo"), &redis.url()).start();
    let [alice, bob, carol] = server.people(["alice", "bob", "carol"]).await;
    let mut expect = vec!["first".to_owned()];
    connect(server.node(0), &alice).await.send("bob", "first", "words").await;
    connect(server.node(0), &alice).await.send("carol", "first-c", "words").await;
    for round in 0..3 {
        // Held only for as long as it takes: everything waits in the log.
        let holder = database.hold("nexo", CONVERSATIONS);
        let mut a = connect(server.node(round), &alice).await;
        let sent = accepted(&mut a, "bob", ids(&format!("r{round}-"), 200)).await;
        assert_eq!(sent.len(), 200);
        expect.extend(sent);
        match round {
            // The one who accepted, the one who looks after the log, and Redis itself.
            0 => server.kill_node(0),
            1 => {
                server.kill_node(1);
                server.kill_node(2);
            }
            _ => {
                redis.kill();
                redis.start_again();
            }
        }
        drop(holder);
        if round == 1 {
            server.start_node(0);
        }
        let living = if round == 1 { 0 } else { 2 };
        assert_eq!(stored(server.node(living), &bob, "alice", expect.len()).await, expect);
        if round == 1 {
            server.start_node(1);
            server.start_node(2);
        }
    }
    assert_eq!(stored(&server.http, &carol, "alice", 1).await, ["first-c"]);
    assert_eq!(redis.command(&["KEYS", "*dead*"]), "", "nothing was put aside");
}

/// The same under load, with people who notice and try again. A node that is stopped for longer than
/// its lease wakes up in the middle of what somebody else does by now. Its long form is `make crash`.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_and_redis_come_and_go_under_load() {
    let rounds = std::env::var("NEXO_CRASH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let mut redis = lasting_redis();
    let mut server = setup(3, &MariaDb::shared().fresh_database(), &redis.url())
        .with("NEXO_TWO_PHASE__GROUPS", "true")
        .start();
    let talk = Talk::begin_balanced(&server).await;
    for round in 0..rounds.unwrap_or(1) {
        for which in [0, 1, 2] {
            wait(700 + round % 7 * 30).await;
            server.kill_node(which);
            wait(700 + round % 5 * 70).await;
            server.start_node(which);
        }
        let stopped = usize::from(round % 2 != 0);
        server.signal_node(stopped, Signal::STOP);
        wait(1500).await;
        server.signal_node(stopped, Signal::CONT);
        wait(500).await;
        redis.kill();
        wait(700 + round % 3 * 200).await;
        redis.start_again();
        wait(1500).await;
    }
    let talked = talk.end(&server.http, Duration::from_secs(12)).await;
    assert!(talked.previewed > 0, "some were shown before they were saved");
}

/// In a cluster of Redis each shard is somewhere else.
#[tokio::test(flavor = "multi_thread")]
async fn a_redis_cluster_keeps_them_too() {
    let url = RedisCluster::shared().url();
    let mut server = setup(3, &MariaDb::shared().fresh_database(), &url).start();
    let talk = Talk::begin_balanced(&server).await;
    wait(1000).await;
    server.kill_node(1);
    wait(700).await;
    server.start_node(1);
    wait(1000).await;
    let talked = talk.end(&server.http, Duration::from_secs(12)).await;
    assert!(talked.previewed > 0, "some were shown before they were saved");
}

/// One says something, and the other sees it although it is not saved.
async fn says(from: &mut Socket, to: &mut Socket, peer: &str, id: String) -> String {
    from.say(chat(peer, &id, "words")).await;
    let accepted = from.find(|it| it["clientMsgId"] == id.as_str(), "an answer").await;
    assert_eq!(accepted["ackType"], "accepted", "{accepted}");
    let shown = to.find(|it| it["clientMsgId"] == id.as_str(), "a preview").await;
    assert_eq!(shown["preview"], true, "{shown}");
    id
}

/// People keep talking while nothing can be saved, and everything is saved in order afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn people_keep_talking_while_the_database_is_away() {
    let seconds = std::env::var("NEXO_TEST_AWAY_SECONDS").ok().and_then(|s| s.parse().ok());
    let mut database = MariaDb::start();
    database.create_database("nexo");
    let redis = lasting_redis();
    let server = setup(2, &database.url("nexo"), &redis.url()).start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let mut a = connect(server.node(0), &alice).await;
    let mut b = connect(server.node(1), &bob).await;
    a.send("bob", "a-hello", "words").await;
    b.find(|it| it["clientMsgId"] == "a-hello" && !it["msgSeq"].is_null(), "a place").await;
    database.kill();
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(6));
    let mut said = vec!["a-hello".to_owned()];
    while Instant::now() < until {
        let turn = said.len();
        said.push(says(&mut a, &mut b, "bob", format!("a{turn}")).await);
        said.push(says(&mut b, &mut a, "alice", format!("b{turn}")).await);
        wait(50).await;
    }
    database.start_again();
    assert_eq!(stored(&server.http, &bob, "alice", said.len()).await, said);
    for socket in [&mut a, &mut b] {
        for (id, place) in said.iter().zip(1..).skip(1) {
            let is_it = |it: &Value| it["ackType"] == "saved" && it["clientMsgId"] == id.as_str();
            assert_eq!(seq(&socket.find(is_it, "its place").await), place);
        }
    }
    eprintln!("{} messages while nothing could be saved", said.len() - 1);
}

/// Redis forgets everything: whoever accepted messages still has them.
#[tokio::test(flavor = "multi_thread")]
async fn what_redis_lost_is_saved_by_who_accepted_it() {
    let database = MariaDb::start();
    database.create_database("nexo");
    let redis = Redis::start();
    let server = setup(2, &database.url("nexo"), &redis.url()).start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let mut a = connect(server.node(0), &alice).await;
    a.send("bob", "first", "words").await;
    let holder = database.hold("nexo", CONVERSATIONS);
    let sent = accepted(&mut a, "bob", ids("c", 300)).await;
    assert_eq!(sent.len(), 300);
    redis.flush();
    // What is said next does not overtake what was lost.
    a.burst(ids("d", 20).map(|id| chat("bob", &id, "words"))).await;
    drop(holder);
    let mut expect: Vec<String> = std::iter::once("first".to_owned()).chain(sent).collect();
    for id in ids("d", 20) {
        match a.answer(&id).await["reason"].as_str() {
            None => expect.push(id),
            Some(reason) => assert_eq!(reason, "server_busy"), // too much waits before it
        }
    }
    assert_eq!(stored(&server.http, &bob, "alice", expect.len()).await, expect);
}

/// A part of what Redis holds is gone: what it still notes of a message without having it counts for
/// nothing.
#[tokio::test(flavor = "multi_thread")]
async fn what_redis_lost_in_part_is_saved_too() {
    let database = MariaDb::start();
    database.create_database("nexo");
    let redis = Redis::start();
    let server = setup(1, &database.url("nexo"), &redis.url()).start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let mut a = connect(server.node(0), &alice).await;
    a.send("bob", "first", "words").await;
    let holder = database.hold("nexo", CONVERSATIONS);
    let sent = accepted(&mut a, "bob", ids("c", 60)).await;
    for log in redis.command(&["--raw", "KEYS", "*:log"]).lines() {
        redis.command(&["DEL", log]);
    }
    let sent = sent.into_iter().chain(accepted(&mut a, "bob", ids("d", 20)).await);
    let expect: Vec<String> = std::iter::once("first".to_owned()).chain(sent).collect();
    drop(holder);
    assert_eq!(stored(&server.http, &bob, "alice", expect.len()).await, expect);
}

/// What was accepted may be refused when it is saved; its sender hears why.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_put_out_meanwhile_hears_that_it_was_not_saved() {
    let database = MariaDb::start();
    database.create_database("nexo");
    let redis = Redis::start();
    let setup = setup(1, &database.url("nexo"), &redis.url());
    let server = setup.with("NEXO_TWO_PHASE__GROUPS", "true").start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let group = Group::new(server.node(0), &alice, &[&bob]).await;
    let mut b = connect(server.node(0), &bob).await;
    // One message that cannot be saved holds up what follows it, and nothing else.
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON messages FOR EACH ROW \
        IF NEW.client_id = 'b1' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF";
    database.sql("nexo", &format!("DELIMITER //\n{refuse} //\n"));
    b.say(group.chat("b1", "words")).await;
    b.find(|it| it["ackType"] == "accepted" && it["clientMsgId"] == "b1", "accepted").await;
    group.ask(&alice, "kick", serde_json::json!({ "user_id": "bob" })).await.data();
    database.sql("nexo", "DROP TRIGGER refuse");
    let end = b.find(|it| it["clientMsgId"] == "b1" && it["type"] == "ERROR", "its end").await;
    assert_eq!(end["reason"], "not_group_member");
    assert!(group.read_all(&alice).await.is_empty());
}

/// Redis forgets everything and whoever accepted it is dead: it is lost, and everybody hears so.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_lost_with_redis_and_its_node_is_taken_away() {
    let database = MariaDb::start();
    database.create_database("nexo");
    let redis = Redis::start();
    let setup = setup(2, &database.url("nexo"), &redis.url());
    let mut server = setup.with("NEXO_TWO_PHASE__PREVIEW_SECONDS", "3").start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let mut a = connect(server.node(0), &alice).await;
    let mut b = connect(server.node(1), &bob).await;
    a.send("bob", "kept", "words").await;
    b.find(|it| it["clientMsgId"] == "kept" && !it["msgSeq"].is_null(), "a place").await;
    let before = read_all(&server.http, &bob, "alice").await;
    let holder = database.hold("nexo", CONVERSATIONS);
    assert_eq!(accepted(&mut a, "bob", ids("c", 1)).await.len(), 1);
    let shown = b.find(|it| it["preview"] == true && it["clientMsgId"] == "c0", "a preview").await;
    server.kill_node(0);
    // While the one that looks after the log cannot save it: it may have read it already.
    server.kill_node(1);
    redis.flush();
    drop(holder);
    server.start_node(0);
    let authority = server.node(0).authority.clone();
    drop(b);
    // A new socket was shown nothing, and the message is nowhere.
    let mut b = Socket::open(&authority).await;
    b.auth(&bob.token).await;
    b.until("RESEND_DONE").await;
    assert_eq!(read_all(server.node(0), &bob, "alice").await, before, "nothing stored has changed");
    // The sender tries again, as they would: it is a new message with the same name.
    let mut a = connect(server.node(0), &alice).await;
    a.send("bob", "c0", "words").await;
    let again = b.find(|it| it["clientMsgId"] == "c0", "the message").await;
    assert_eq!(again["serverMsgId"], shown["serverMsgId"]);
    assert_eq!(read_all(server.node(0), &bob, "alice").await.len(), 2, "no place is used twice");
}

/// Whoever was shown what is lost, and is still connected, hears that it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_preview_that_never_became_a_message_expires() {
    let database = MariaDb::start();
    database.create_database("nexo");
    let redis = Redis::start();
    let setup = setup(2, &database.url("nexo"), &redis.url());
    let mut server = setup.with("NEXO_TWO_PHASE__PREVIEW_SECONDS", "3").start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let mut b = connect(server.node(1), &bob).await;
    // The first node looks after the log, since it was there first, and accepts: nobody else has it.
    let mut a = connect(server.node(0), &alice).await;
    a.send("bob", "kept", "words").await;
    let holder = database.hold("nexo", CONVERSATIONS);
    assert_eq!(accepted(&mut a, "bob", ids("c", 1)).await.len(), 1);
    b.find(|it| it["preview"] == true && it["clientMsgId"] == "c0", "a preview").await;
    server.kill_node(0);
    redis.flush();
    // What the other node has read meanwhile it forgets with its lease.
    wait(1500).await;
    drop(holder);
    let end = b.find(|it| it["clientMsgId"] == "c0" && it["type"] == "ACK", "its end").await;
    assert_eq!((&end["ackType"], &end["reason"]), (&"dropped".into(), &"server_busy".into()));
    assert_fits(server.node(1), "ServerAckDropped", &end).await;
    assert_eq!(read_all(server.node(1), &bob, "alice").await.len(), 1);
}

/// What the database will not take stops nobody else, and is put aside in the end.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_saved_is_put_aside() {
    let database = MariaDb::start();
    database.create_database("nexo");
    let redis = lasting_redis();
    let setup = setup(1, &database.url("nexo"), &redis.url()).with("NEXO_TWO_PHASE__SHARDS", "1");
    let server = setup.with("NEXO_TWO_PHASE__TRIES_MAX", "4").start();
    let [alice, bob, carol] = server.people(["alice", "bob", "carol"]).await;
    let mut a = connect(server.node(0), &alice).await;
    let mut b = connect(server.node(0), &bob).await;
    a.send("bob", "c0", "words").await;
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON messages FOR EACH ROW \
        IF NEW.client_id = 'bad' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF";
    database.sql("nexo", &format!("DELIMITER //\n{refuse} //\n"));
    a.say(chat("bob", "bad", "words")).await;
    a.say(chat("bob", "good", "words")).await;
    let mut c = connect(server.node(0), &carol).await;
    let mut others = 0;
    let is_bad = |it: &Value| it["clientMsgId"] == "bad" && it["type"] == "ERROR";
    while !a.has(is_bad).await {
        others += 1;
        c.send("alice", &format!("o{others}"), "words").await;
        wait(20).await;
    }
    assert_eq!(a.find(is_bad, "its end").await["reason"], "internal_error");
    let dropped = |it: &Value| it["clientMsgId"] == "bad" && it["ackType"] == "dropped";
    b.find(dropped, "the end of what was shown").await;
    assert_eq!(seq(&a.answer("good").await), 2, "it takes no place");
    assert_eq!(stored(&server.http, &bob, "alice", 2).await, ["c0", "good"]);
    assert_eq!(stored(&server.http, &alice, "carol", others).await.len(), others);
    let dead = redis.command(&["--raw", "KEYS", "*:dead"]);
    assert_eq!(redis.command(&["XLEN", dead.trim()]), "1");
}

/// Without Redis: saved the ordinary way, or refused, as the operator chose.
#[tokio::test(flavor = "multi_thread")]
async fn while_redis_is_away_it_fails_open_or_closed() {
    let mut redis = lasting_redis();
    for is_open in [true, false] {
        let setup = setup(2, &MariaDb::shared().fresh_database(), &redis.url());
        let server = setup.with("NEXO_TWO_PHASE__FAIL_OPEN", &is_open.to_string()).start();
        let [alice, bob] = server.people(["alice", "bob"]).await;
        let mut a = connect(server.node(0), &alice).await;
        a.send("bob", "before", "words").await;
        redis.kill();
        let mut saved = 1;
        for number in 0..50 {
            a.say(chat("bob", &format!("c{number}"), "words")).await;
            let answer = a.answer(&format!("c{number}")).await;
            if is_open {
                saved += 1;
                assert_eq!(seq(&answer), saved, "{answer}");
            } else {
                assert_eq!(answer["reason"], "server_busy", "{answer}");
            }
        }
        redis.start_again();
        wait(2500).await;
        a.say(chat("bob", "after", "words")).await;
        assert_eq!(seq(&a.answer("after").await), saved + 1);
        assert_eq!(read_all(&server.http, &bob, "alice").await.len() as u64, saved + 1);
        let accepted = a.find(|it| it["ackType"] == "accepted" && it["clientMsgId"] == "after", "");
        accepted.await;
    }
}

/// Order holds across the fall: what waits in a dead Redis comes before what is said after.
#[tokio::test(flavor = "multi_thread")]
async fn falling_back_keeps_the_order_of_sending() {
    let database = MariaDb::start();
    database.create_database("nexo");
    let mut redis = lasting_redis();
    let server = setup(2, &database.url("nexo"), &redis.url()).start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let mut a = connect(server.node(0), &alice).await;
    a.send("bob", "first", "words").await;
    let holder = database.hold("nexo", CONVERSATIONS);
    let sent = accepted(&mut a, "bob", ids("c", 40)).await;
    redis.kill();
    a.burst(ids("d", 40).map(|id| chat("bob", &id, "words"))).await;
    drop(holder);
    let mut expect = vec!["first".to_owned()];
    expect.extend(sent);
    for id in ids("d", 40) {
        if a.answer(&id).await["ackType"] == "saved" {
            expect.push(id);
        }
    }
    redis.start_again();
    wait(3000).await;
    assert_eq!(stored(&server.http, &bob, "alice", expect.len()).await, expect);
}

/// Turned off, what is left is saved before anything else; with another number of shards as well.
#[tokio::test(flavor = "multi_thread")]
async fn turning_it_off_saves_what_is_left_first() {
    let database = MariaDb::start();
    database.create_database("nexo");
    let redis = lasting_redis();
    let mut server = setup(1, &database.url("nexo"), &redis.url()).start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let mut a = connect(server.node(0), &alice).await;
    a.send("bob", "first", "words").await;
    let mut expect = vec!["first".to_owned()];
    for (round, (setting, value)) in
        [("NEXO_TWO_PHASE__SHARDS", "7"), ("NEXO_TWO_PHASE__ENABLED", "false")].iter().enumerate()
    {
        let mut a = connect(server.node(0), &alice).await;
        let holder = database.hold("nexo", CONVERSATIONS);
        expect.extend(accepted(&mut a, "bob", ids(&format!("r{round}-"), 100)).await);
        server.kill();
        drop(holder);
        server.start_again(|setup| setup.with(setting, value));
        let mut a = connect(server.node(0), &alice).await;
        let next = format!("next{round}");
        assert_eq!(seq(&a.send("bob", &next, "words").await), expect.len() as u64 + 1);
        expect.push(next);
        assert_eq!(stored(&server.http, &bob, "alice", expect.len()).await, expect);
    }
    let mut a = connect(server.node(0), &alice).await;
    a.say(chat("bob", "plain", "words")).await;
    assert_eq!(a.next().await["ackType"], "saved", "it is off");
}

/// Whoever can write to Redis cannot make anybody say anything, and stops nobody.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_accepted_is_put_aside() {
    let redis = lasting_redis();
    let server = setup(1, &MariaDb::shared().fresh_database(), &redis.url()).start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let mut a = connect(server.node(0), &alice).await;
    a.send("bob", "c1", "words").await;
    let logs = redis.command(&["--raw", "KEYS", "*:log"]);
    for log in logs.lines() {
        redis.command(&["XADD", log, "*", "m", "made up"]);
        redis.command(&["XADD", log, "*", "nonsense", ""]);
    }
    assert_eq!(seq(&a.send("bob", "c2", "words").await), 2);
    wait(1000).await;
    for log in logs.lines() {
        let dead = log.replace(":log", ":dead");
        assert_eq!(redis.command(&["XLEN", &dead]), "2", "{dead}");
        assert_eq!(redis.command(&["XLEN", log]), "0", "{log}");
    }
    assert_eq!(read_all(&server.http, &bob, "alice").await.len(), 2);
}
