//! Two-phase acknowledgement while nodes die, Redis goes away and comes back, and the database is down:
//! accepted messages are saved once and in order.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod two_phase_setup;

use std::time::{Duration, Instant};

use nexo_sim::history::read_all;
use nexo_sim::socket::{chat, seq};
use nexo_sim::{MariaDb, RedisCluster, Socket, Workload};
use rustix::process::Signal;
use serde_json::Value;

use two_phase_setup::{Scene, accepted, connect, ids, lasting_redis, setup, stored, wait};

/// The node that accepted messages dies before any of them is saved, and so does the shard's worker.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_accepted_is_saved_whoever_dies() {
    let mut scene = Scene::new(3, lasting_redis(), |setup| setup).await;
    let mut expect = vec!["first".to_owned()];
    for round in 0..3 {
        // Held only for as long as it takes: everything waits in the log.
        let holder = scene.hold();
        let mut a = scene.alice_at(round).await;
        let sent = accepted(&mut a, "bob", ids(&format!("r{round}-"), 200)).await;
        assert_eq!(sent.len(), 200);
        expect.extend(sent);
        match round {
            // The one who accepted, the one who looks after the log, and Redis itself.
            0 => scene.server.kill_node(0),
            1 => {
                scene.server.kill_node(1);
                scene.server.kill_node(2);
            }
            _ => {
                scene.redis.kill();
                scene.redis.start_again();
            }
        }
        drop(holder);
        if round == 1 {
            scene.server.start_node(0);
        }
        let living = if round == 1 { 0 } else { 2 };
        assert_eq!(
            stored(scene.server.node(living), &scene.bob, "alice", expect.len()).await,
            expect
        );
        if round == 1 {
            scene.server.start_node(1);
            scene.server.start_node(2);
        }
    }
    assert_eq!(scene.redis.command(&["KEYS", "*dead*"]), "", "nothing was put aside");
}

/// The same under load, with clients that notice and retry. A node that is stopped for longer than
/// its lease resumes while another node works on its shards. Its long form is `make crash`.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_and_redis_come_and_go_under_load() {
    let rounds = std::env::var("NEXO_CRASH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let mut redis = lasting_redis();
    let mut server = setup(3, &MariaDb::shared().fresh_database(), &redis.url())
        .with("NEXO_TWO_PHASE__GROUPS", "true")
        .start();
    let workload = Workload::start_balanced(&server).await;
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
    let report = workload.finish(&server.http, Duration::from_secs(12)).await;
    assert!(report.previewed > 0, "some were shown before they were saved");
}

/// In a cluster of Redis each shard is somewhere else.
#[tokio::test(flavor = "multi_thread")]
async fn a_redis_cluster_keeps_them_too() {
    let url = RedisCluster::shared().url();
    let mut server = setup(3, &MariaDb::shared().fresh_database(), &url).start();
    let workload = Workload::start_balanced(&server).await;
    wait(1000).await;
    server.kill_node(1);
    wait(700).await;
    server.start_node(1);
    wait(1000).await;
    let report = workload.finish(&server.http, Duration::from_secs(12)).await;
    assert!(report.previewed > 0, "some were shown before they were saved");
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
    let mut scene = Scene::new(2, lasting_redis(), |setup| setup).await;
    let (mut a, mut b) = (scene.alice_at(0).await, scene.bob_at(1).await);
    scene.database.kill();
    let until = Instant::now() + Duration::from_secs(seconds.unwrap_or(6));
    let mut said = vec!["first".to_owned()];
    while Instant::now() < until {
        let turn = said.len();
        said.push(says(&mut a, &mut b, "bob", format!("a{turn}")).await);
        said.push(says(&mut b, &mut a, "alice", format!("b{turn}")).await);
        wait(50).await;
    }
    scene.database.start_again();
    assert_eq!(scene.stored(said.len()).await, said);
    for socket in [&mut a, &mut b] {
        for (id, place) in said.iter().zip(1..).skip(1) {
            let is_it = |it: &Value| it["ackType"] == "saved" && it["clientMsgId"] == id.as_str();
            assert_eq!(seq(&socket.find(is_it, "its place").await), place);
        }
    }
    eprintln!("{} messages while nothing could be saved", said.len() - 1);
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
    let mut scene = Scene::new(2, lasting_redis(), |setup| setup).await;
    let mut a = scene.alice_at(0).await;
    let holder = scene.hold();
    let sent = accepted(&mut a, "bob", ids("c", 40)).await;
    scene.redis.kill();
    a.burst(ids("d", 40).map(|id| chat("bob", &id, "words"))).await;
    drop(holder);
    let mut expect = vec!["first".to_owned()];
    expect.extend(sent);
    for id in ids("d", 40) {
        if a.answer(&id).await["ackType"] == "saved" {
            expect.push(id);
        }
    }
    scene.redis.start_again();
    wait(3000).await;
    assert_eq!(scene.stored(expect.len()).await, expect);
}

/// Turned off, what is left is saved before anything else; with another number of shards as well.
#[tokio::test(flavor = "multi_thread")]
async fn turning_it_off_saves_what_is_left_first() {
    let mut scene = Scene::new(1, lasting_redis(), |setup| setup).await;
    let mut expect = vec!["first".to_owned()];
    for (round, (setting, value)) in
        [("NEXO_TWO_PHASE__SHARDS", "7"), ("NEXO_TWO_PHASE__ENABLED", "false")].iter().enumerate()
    {
        let mut a = scene.alice_at(0).await;
        let holder = scene.hold();
        expect.extend(accepted(&mut a, "bob", ids(&format!("r{round}-"), 100)).await);
        scene.server.kill();
        drop(holder);
        scene.server.start_again(|setup| setup.with(setting, value));
        let mut a = scene.alice_at(0).await;
        let next = format!("next{round}");
        assert_eq!(seq(&a.send("bob", &next, "words").await), expect.len() as u64 + 1);
        expect.push(next);
        assert_eq!(scene.stored(expect.len()).await, expect);
    }
    let mut a = scene.alice_at(0).await;
    a.say(chat("bob", "plain", "words")).await;
    assert_eq!(a.next().await["ackType"], "saved", "it is off");
}

/// The start does not wait for a Redis that is down; messages of an earlier run are saved when it is back.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_without_redis_is_not_held_up() {
    let mut scene = Scene::new(1, lasting_redis(), |setup| setup).await;
    let holder = scene.hold();
    let mut a = scene.alice_at(0).await;
    let sent = accepted(&mut a, "bob", ids("c", 50)).await;
    scene.server.kill();
    scene.redis.kill();
    drop(holder);
    let off = |setup: nexo_sim::process::Setup| setup.with("NEXO_TWO_PHASE__ENABLED", "false");
    let took = scene.server.start_again(off);
    assert!(took < Duration::from_secs(20), "it took {took:?}");
    assert_eq!(scene.stored(1).await, ["first"]);
    scene.redis.start_again();
    let expect: Vec<String> = std::iter::once("first".to_owned()).chain(sent).collect();
    assert_eq!(scene.stored(expect.len()).await, expect);
}

/// A message that is saved at once because the log is away moves its sender's cursor too: the audit log
/// has a line for it, without the cursors.
#[tokio::test(flavor = "multi_thread")]
async fn the_audit_knows_a_message_that_was_saved_without_the_log() {
    let log_level =
        |setup: nexo_sim::process::Setup| setup.with("NEXO_LOG__LEVEL", "info,nexo::ack=debug");
    let mut scene = Scene::new(1, lasting_redis(), log_level).await;
    let mut a = scene.alice_at(0).await;
    scene.redis.kill();
    a.say(chat("bob", "direct", "words")).await;
    let is_saved = |it: &Value| it["clientMsgId"] == "direct" && it["ackType"] == "saved";
    let id = a.find(is_saved, "saved").await["serverMsgId"].clone();
    assert_eq!(scene.server.stop(), Some(0));
    let log = scene.server.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let moves: Vec<Value> =
        lines.filter(|it| it["target"] == "nexo::ack" && it["serverMsgId"] == id).collect();
    assert_eq!(moves.len(), 1, "{moves:#?}");
    assert_eq!((&moves[0]["ackUserId"], &moves[0]["result"]), (&"alice".into(), &"ok".into()));
    assert!(moves[0].get("deviceId").is_none(), "{}", moves[0]);
}
