//! The database and Redis go away and come back, under load. Nothing acknowledged is lost or stored
//! twice, sending does not depend on Redis, and soon after every client has everything again.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::time::{Duration, Instant};

use nexo_sim::process::Setup;
use nexo_sim::socket::seq;
use nexo_sim::{MariaDb, Person, RedisServer, RetryingClient, Socket, TestGroup, Workload};
use serde_json::Value;

fn setup(database: &str, redis: &str) -> Setup {
    let setup = Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(3).with_services(database, redis);
    setup.with("NEXO_CLUSTER__NODE_TTL_MS", "2000")
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_goes_and_comes_back() {
    let mut redis = RedisServer::start();
    let server = setup(&MariaDb::shared().fresh_database(), &redis.url()).start();
    let workload = Workload::start(&server).await;
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
    let busy = workload.finish(&server.http, Duration::from_secs(5)).await.busy;
    assert_eq!(busy, 0, "no send depends on Redis");
    let ready = server.node(0).get("/readyz", "").await;
    assert_eq!(ready.body["status"], "ready");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_never_answered_is_told_with_its_reason() {
    // Nobody listens there: the port was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let database = MariaDb::shared().fresh_database();
    let setup = setup(&database, &format!("redis://:s3cret@{free}")).nodes(1);
    let mut server = setup.start();
    let mut tries = 0;
    while !server.log().contains("redis cannot be reached") {
        tokio::time::sleep(Duration::from_millis(100)).await;
        tries += 1;
        assert!(tries < 100, "{}", server.log());
    }
    // It serves all the same, and tells only the operator why it is alone.
    server.people(["alice"]).await;
    let ready = server.node(0).get("/readyz", "").await;
    assert_eq!((ready.status, ready.text.as_str()), (200, r#"{"status":"degraded"}"#));
    let wrong = server.node(0).get("/readyz", "no such token").await;
    assert_eq!(wrong.text, ready.text);
    let token = std::fs::read_to_string(server.data().join("metrics.token")).unwrap();
    let told = server.node(0).get("/readyz", token.trim()).await;
    assert!(told.body["bus"].as_str().unwrap().contains("refused"), "{}", told.text);
    assert_eq!(server.stop(), Some(0));
    let log = server.log();
    let told: Vec<&str> =
        log.lines().filter(|line| line.contains("redis cannot be reached")).collect();
    assert!(told[0].contains("refused") && told.len() == 1, "{told:?}");
    assert!(!log.contains("s3cret"));
}

/// A node cut off from the bus polls the store for what its sockets lack, and for ended sign-ins.
#[tokio::test(flavor = "multi_thread")]
async fn without_redis_messages_and_ends_come_later() {
    let mut redis = RedisServer::start();
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
    TestGroup::new(server.node(0), &alice, &[&bob]).await;
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
    let mut redis = RedisServer::start();
    let server = setup(&MariaDb::shared().fresh_database(), &redis.url()).start();
    let [alice, _bob] = server.people(["alice", "bob"]).await;
    let mut it = RetryingClient::new(&server.node(0).authority, &alice);
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
    let redis = RedisServer::start();
    let setup = setup(&database.url("nexo"), &redis.url());
    let server = setup.with("NEXO_MYSQL__PATIENCE_MS", "500").start();
    let workload = Workload::start(&server).await;
    let wait = |ms| tokio::time::sleep(Duration::from_millis(ms));
    wait(1000).await;
    database.kill();
    wait(1500).await;
    let ready = server.node(0).get("/readyz", "").await;
    assert_eq!((ready.status, ready.text.as_str()), (503, r#"{"status":"not ready"}"#));
    let token = std::fs::read_to_string(server.data().join("metrics.token")).unwrap();
    let told = server.node(0).get("/readyz", token.trim()).await;
    assert!(told.body["store"].is_string(), "{}", told.text);
    database.start_again();
    wait(2000).await;
    database.stop();
    wait(700).await;
    database.start_again();
    wait(2000).await;
    let busy = workload.finish(&server.http, Duration::from_secs(5)).await.busy;
    assert!(busy > 0, "what could not be saved was refused");
}
