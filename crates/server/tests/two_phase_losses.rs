//! Two-phase acknowledgement when accepted messages are lost, refused or forged: they are saved all the
//! same, or every client that knows of them is told.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod two_phase_setup;

use nexo_sim::history::read_all;
use nexo_sim::process::Setup;
use nexo_sim::schema::assert_fits;
use nexo_sim::socket::{chat, seq};
use nexo_sim::{MariaDb, RedisServer, TestGroup};
use serde_json::Value;

use two_phase_setup::{Scene, accepted, connect, ids, lasting_redis, setup, stored, wait};

/// Redis loses everything: the node that accepted messages still has them.
#[tokio::test(flavor = "multi_thread")]
async fn what_redis_lost_is_saved_by_who_accepted_it() {
    let scene = Scene::new(2, RedisServer::start(), |setup| setup).await;
    let mut a = scene.alice_at(0).await;
    let holder = scene.hold();
    let sent = accepted(&mut a, "bob", ids("c", 300)).await;
    assert_eq!(sent.len(), 300);
    scene.redis.flush();
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
    assert_eq!(scene.stored(expect.len()).await, expect);
}

/// A part of what Redis holds is gone: what it still notes of a message without having it counts for
/// nothing.
#[tokio::test(flavor = "multi_thread")]
async fn what_redis_lost_in_part_is_saved_too() {
    let scene = Scene::new(1, RedisServer::start(), |setup| setup).await;
    let mut a = scene.alice_at(0).await;
    let holder = scene.hold();
    let sent = accepted(&mut a, "bob", ids("c", 60)).await;
    for log in scene.redis.command(&["--raw", "KEYS", "*:log"]).lines() {
        scene.redis.command(&["DEL", log]);
    }
    let sent = sent.into_iter().chain(accepted(&mut a, "bob", ids("d", 20)).await);
    let expect: Vec<String> = std::iter::once("first".to_owned()).chain(sent).collect();
    drop(holder);
    assert_eq!(scene.stored(expect.len()).await, expect);
}

/// An accepted message may be refused when it is saved; its sender gets the reason.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_put_out_meanwhile_hears_that_it_was_not_saved() {
    let groups = |setup: Setup| setup.with("NEXO_TWO_PHASE__GROUPS", "true");
    let scene = Scene::new(1, RedisServer::start(), groups).await;
    let group = TestGroup::new(scene.server.node(0), &scene.alice, &[&scene.bob]).await;
    let mut b = scene.bob_at(0).await;
    // A message that cannot be saved yet.
    scene.refuse("b1");
    b.say(group.chat("b1", "words")).await;
    b.find(|it| it["ackType"] == "accepted" && it["clientMsgId"] == "b1", "accepted").await;
    group.ask(&scene.alice, "kick", serde_json::json!({ "user_id": "bob" })).await.data();
    scene.database.sql("nexo", "DROP TRIGGER refuse");
    let end = b.find(|it| it["clientMsgId"] == "b1" && it["type"] == "ERROR", "its end").await;
    assert_eq!(end["reason"], "member_not_active");
    assert!(group.read_all(&scene.alice).await.is_empty());
}

/// Redis loses everything and the node that accepted the message is dead: it is lost, and all clients are told.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_lost_with_redis_and_its_node_is_taken_away() {
    let mut scene = Scene::new(2, RedisServer::start(), |setup| setup).await;
    let (mut a, mut b) = (scene.alice_at(0).await, scene.bob_at(1).await);
    let before = read_all(&scene.server.http, &scene.bob, "alice").await;
    let holder = scene.hold();
    assert_eq!(accepted(&mut a, "bob", ids("c", 1)).await.len(), 1);
    let shown = b.find(|it| it["preview"] == true && it["clientMsgId"] == "c0", "a preview").await;
    scene.server.kill_node(0);
    // While the one that looks after the log cannot save it: it may have read it already.
    scene.server.kill_node(1);
    scene.redis.flush();
    drop(holder);
    scene.server.start_node(0);
    drop(b);
    // A new socket was shown nothing, and the message is nowhere.
    let mut b = scene.bob_at(0).await;
    assert_eq!(
        read_all(scene.server.node(0), &scene.bob, "alice").await,
        before,
        "nothing stored has changed"
    );
    // The sender tries again, as they would: it is a new message with the same name.
    let mut a = scene.alice_at(0).await;
    a.send("bob", "c0", "words").await;
    let again = b.find(|it| it["clientMsgId"] == "c0", "the message").await;
    assert_eq!(again["serverMsgId"], shown["serverMsgId"]);
    assert_eq!(
        read_all(scene.server.node(0), &scene.bob, "alice").await.len(),
        2,
        "no place is used twice"
    );
}

/// A receiver that got a preview of a lost message, and is still connected, is told that it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_preview_that_never_became_a_message_expires() {
    let soon = |setup: Setup| setup.with("NEXO_TWO_PHASE__PREVIEW_SECONDS", "3");
    let mut scene = Scene::new(2, RedisServer::start(), soon).await;
    // The first node looks after the log, since it was there first, and accepts: nobody else has it.
    let (mut a, mut b) = (scene.alice_at(0).await, scene.bob_at(1).await);
    let holder = scene.hold();
    assert_eq!(accepted(&mut a, "bob", ids("c", 1)).await.len(), 1);
    b.find(|it| it["preview"] == true && it["clientMsgId"] == "c0", "a preview").await;
    scene.server.kill_node(0);
    scene.redis.flush();
    // What the other node has read meanwhile it forgets with its lease.
    wait(1500).await;
    drop(holder);
    let end = b.find(|it| it["clientMsgId"] == "c0" && it["type"] == "ACK", "its end").await;
    assert_eq!((&end["ackType"], &end["reason"]), (&"dropped".into(), &"server_busy".into()));
    assert_fits(scene.server.node(1), "ServerAckDropped", &end).await;
    assert_eq!(read_all(scene.server.node(1), &scene.bob, "alice").await.len(), 1);
}

/// A message that the database refuses blocks no others, and becomes a dead letter in the end.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_saved_is_put_aside() {
    let one = |setup: Setup| setup.with("NEXO_TWO_PHASE__SHARDS", "1");
    let few = |setup| one(setup).with("NEXO_TWO_PHASE__TRIES_MAX", "4");
    let scene = Scene::new(1, lasting_redis(), few).await;
    let carol = scene.server.person("carol").await;
    let (mut a, mut b) = (scene.alice_at(0).await, scene.bob_at(0).await);
    scene.refuse("bad");
    a.say(chat("bob", "bad", "words")).await;
    a.say(chat("bob", "good", "words")).await;
    let mut c = connect(scene.server.node(0), &carol).await;
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
    assert_eq!(scene.stored(2).await, ["first", "good"]);
    assert_eq!(stored(&scene.server.http, &scene.alice, "carol", others).await.len(), others);
    let dead = scene.redis.command(&["--raw", "KEYS", "*:dead"]);
    assert_eq!(scene.redis.command(&["XLEN", dead.trim()]), "1");
}

/// Forged entries in Redis are never sent in a user's name, and block nothing.
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
