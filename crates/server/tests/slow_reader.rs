//! A reader that stops reading costs only itself.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use nexo_sim::process::Setup;
use nexo_sim::socket::{chat, seq};
use nexo_sim::{Socket, TestGroup};
use tokio::net::TcpStream;

#[tokio::test]
async fn it_is_closed_others_do_not_notice_and_it_catches_up() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo"))
        .with("NEXO_GATEWAY__UNWRITABLE_CLOSE_MS", "1000")
        .start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let carol = server.person("carol").await;
    let (mut a, _) = server.connect(&alice).await;
    let (mut c, _) = server.connect(&carol).await;
    let (stuck, _) = server.connect(&bob).await;
    let memory_before = server.memory_bytes();

    // Far more than the socket buffers and the outbox hold, and nobody reads it.
    let body = "x".repeat(4000);
    let (mut sent, mut worst) = (0, Duration::ZERO);
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(4) {
        a.burst((0..50).map(|i| chat("bob", &format!("b{}", sent + i), &body))).await;
        for _ in 0..50 {
            a.expect_ack("saved").await;
        }
        sent += 50;
        // Meanwhile somebody who reads is served.
        let asked = Instant::now();
        a.send("carol", &format!("c{sent}"), "quick").await;
        c.expect("SINGLE_CHAT").await;
        worst = worst.max(asked.elapsed());
    }
    assert!(worst < Duration::from_secs(2), "Carol waited {worst:?}");
    let grown = server.memory_bytes().saturating_sub(memory_before);
    let stored = sent as u64 * 4000;
    println!("{sent} messages, {stored} bytes; memory grew by {grown}; worst {worst:?}");

    // The server has ended the stuck socket: what still comes out of it is what its buffers held.
    let ended = drain(stuck).await;
    assert!(ended < sent, "only a part of {sent} was queued for a dead reader, it got {ended}");
    let metrics = metrics(&server).await;
    assert!(
        metrics.contains(r#"nexo_sessions_ended_total{reason="slow_consumer"} 1"#),
        "{metrics}"
    );

    // Nothing is lost: it catches up from its cursor.
    let mut b = server.socket().await;
    b.auth(&bob.token).await;
    let mut seqs = Vec::new();
    loop {
        let frame = b.next().await;
        match frame["type"].as_str() {
            Some("SINGLE_CHAT") => seqs.push(seq(&frame)),
            Some("RESEND_DONE") if frame["hasMore"] == true => {
                b.say(serde_json::json!({ "type": "RESEND" })).await;
            }
            _ => break,
        }
    }
    assert_eq!(seqs, (1..=sent as u64).collect::<Vec<_>>());
}

/// Reads what is left of a socket; returns how many messages it held.
async fn drain(mut socket: Socket) -> usize {
    let (frames, _) = socket.expect_end().await;
    frames.iter().filter(|frame| frame["type"] == "SINGLE_CHAT").count()
}

async fn metrics(server: &nexo_sim::Server) -> String {
    let token = std::fs::read_to_string(server.data().join("metrics.token")).unwrap();
    server.http.get("/metrics", token.trim()).await.text
}

#[tokio::test]
async fn a_reader_that_was_slow_for_a_moment_gets_what_was_dropped() {
    let server = patient().start();
    drop(slow_for_a_moment(&server).await);
}

/// Bob stops reading while Alice floods him, then reads again: everything arrives on the same
/// socket, the dropped part by resend. Returns both sockets.
async fn slow_for_a_moment(server: &nexo_sim::Server) -> (Socket, Socket) {
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    let count = 4000;
    flood(&mut a, count).await;
    let mut seen = BTreeSet::new();
    take_until(&mut b, &mut seen, count).await;
    assert_eq!(seen.last(), Some(&count));
    (a, b)
}

#[tokio::test]
async fn a_dropped_push_leaves_a_line() {
    let mut server = patient().with("NEXO_LOG__LEVEL", "info,nexo::push=debug").start();
    let (a, b) = slow_for_a_moment(&server).await;
    let metrics = metrics(&server).await;
    drop((a, b));
    assert_eq!(server.stop(), Some(0));
    let log = server.log();
    let dropped: Vec<serde_json::Value> = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|it: &serde_json::Value| it["message"] == "push dropped")
        .collect();
    let counted = format!("nexo_pushes_total{{result=\"dropped\"}} {}", dropped.len());
    assert!(!dropped.is_empty() && metrics.contains(&counted), "a line for each: {metrics}");
    for line in &dropped {
        assert_eq!(line["target"], "nexo::push");
        let named = ["chatType", "chatId", "fromUserId", "userId", "result"];
        let named = named.map(|name| line[name].as_str().unwrap_or_default());
        assert_eq!(named, ["SINGLE", "si_alice_bob", "alice", "bob", "outbox full"], "{line}");
        for name in ["serverMsgId", "deviceId", "instanceId"] {
            assert!(line[name].as_str().is_some_and(|it| !it.is_empty()), "{name}: {line}");
        }
        // What the connection has missed: from the first dropped message up to this one.
        let [from, to] = ["prevCursor", "newCursor"].map(|name| line[name].as_u64().unwrap());
        assert!(from < to && to == line["seq"].as_u64().unwrap(), "{line}");
    }
    let first = &dropped[0];
    assert_eq!(first["prevCursor"].as_u64().unwrap() + 1, first["seq"].as_u64().unwrap());
}

/// A server where an outbox is soon full and stays open.
fn patient() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo"))
        .with("NEXO_GATEWAY__UNWRITABLE_CLOSE_MS", "60000")
        .with("NEXO_GATEWAY__OUTBOX_LOW_BYTES", "20000")
        .with("NEXO_GATEWAY__OUTBOX_HIGH_BYTES", "40000")
}

/// Reads, asking for page after page, until so many different messages have come.
async fn take_until(socket: &mut Socket, seen: &mut BTreeSet<u64>, count: u64) {
    while (seen.len() as u64) < count {
        let frame = socket.next().await;
        match frame["type"].as_str() {
            Some("SINGLE_CHAT") => {
                seen.insert(seq(&frame));
            }
            Some("RESEND_DONE") if frame["hasMore"] == true => {
                socket.say(serde_json::json!({ "type": "RESEND" })).await;
            }
            _ => {}
        }
    }
}

/// Sends more to Bob than any buffer holds.
async fn flood(a: &mut Socket, count: u64) {
    flood_as(a, count, "c").await;
}

async fn flood_as(a: &mut Socket, count: u64, name: &str) {
    let body = "x".repeat(4000);
    for first in (0..count).step_by(100) {
        a.burst((first..first + 100).map(|i| chat("bob", &format!("{name}{i}"), &body))).await;
        for _ in 0..100 {
            a.expect_ack("saved").await;
        }
    }
}

#[tokio::test]
async fn answers_to_a_slow_reader_are_never_dropped() {
    let server = patient().start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    flood(&mut a, 4000).await;
    b.burst((0..20).map(|i| chat("alice", &format!("b{i}"), "saved?"))).await;
    b.burst((0..20).map(|i| chat("nobody", &format!("n{i}"), "refused?"))).await;
    let (mut saved, mut refused) = (0, 0);
    while saved < 20 || refused < 20 {
        let frame = b.next().await;
        saved += u32::from(frame["ackType"] == "saved");
        refused += u32::from(frame["reason"] == "user_not_found");
    }
}

#[tokio::test]
async fn another_device_that_acknowledges_takes_nothing_from_the_slow_one() {
    let server = patient().start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let (mut slow, _) = server.connect(&bob).await;
    let count = 4000;
    flood(&mut a, count).await;
    // The quick device has it all and says so; the cursor is at the end for both.
    let last = nexo_sim::history::read_all(&server.http, &bob, "alice").await.pop().unwrap();
    let (mut quick, _) = server.connect(&bob).await;
    quick.ack("read", "alice", &last).await;
    quick.say(serde_json::json!({ "type": "PING" })).await;
    quick.expect("PONG").await;
    let mut seen = BTreeSet::new();
    take_until(&mut slow, &mut seen, count).await;
}

#[tokio::test]
async fn connections_that_say_nothing_are_closed() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo"))
        .with("NEXO_GATEWAY__AUTH_TIMEOUT_MS", "300")
        .with("NEXO_GATEWAY__HEADER_TIMEOUT_MS", "300")
        .with("NEXO_GATEWAY__PING_AFTER_MS", "200")
        .with("NEXO_GATEWAY__IDLE_TIMEOUT_MS", "1200")
        .start();
    // A socket without AUTH.
    let (frames, code) = server.socket().await.expect_end().await;
    assert_eq!((&frames[0]["reason"], code), (&serde_json::json!("auth_timeout"), Some(4001)));
    // A connection without a request.
    let mut tcp = TcpStream::connect(&server.http.authority).await.unwrap();
    let mut rest = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut tcp, &mut rest);
    tokio::time::timeout(Duration::from_secs(5), read).await.expect("closed in time").unwrap();
    // An authenticated socket is asked, and then closed.
    let alice = server.person("alice").await;
    let (mut a, _) = server.connect(&alice).await;
    assert_eq!(a.expect("PING").await["type"], "PING");
    // The library answers transport pings only while it reads, so stop reading.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let (frames, code) = a.expect_end().await;
    let last = frames.last().unwrap();
    assert_eq!((&last["reason"], code), (&serde_json::json!("idle_timeout"), Some(4003)));
}

#[tokio::test]
async fn a_peer_that_takes_nothing_is_cut_off() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo"))
        .with("NEXO_GATEWAY__WRITE_TIMEOUT_MS", "1000")
        .with("NEXO_RESEND__PAGE_BYTES", "20000000")
        .start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let body = "x".repeat(60_000);
    for i in 0..200 {
        let mut frame = chat("bob", &format!("c{i}"), &body);
        frame["msgType"] = serde_json::json!("CUSTOM");
        a.say(frame).await;
        a.expect_ack("saved").await;
    }
    // Twelve megabytes asked for, and none taken: over HTTP, and as a resend.
    let mut tcp = TcpStream::connect(&server.http.authority).await.unwrap();
    let path = "/single-chat/message/since?peerUserId=alice&limit=200";
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n", bob.token);
    tokio::io::AsyncWriteExt::write_all(&mut tcp, request.as_bytes()).await.unwrap();
    let mut b = server.socket().await;
    b.say(serde_json::json!({ "type": "AUTH", "token": bob.token })).await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let page = metrics(&server).await;
    assert!(page.contains("nexo_connections 1\n"), "only Alice is left: {page}");
    let mut rest = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut tcp, &mut rest);
    let read = tokio::time::timeout(Duration::from_secs(5), read).await.expect("it was closed");
    assert!(read.is_err() || rest.len() < 11_000_000, "{} bytes were sent", rest.len());
}

#[tokio::test]
async fn a_burst_while_catching_up_skips_nothing() {
    let server = patient().with("NEXO_RESEND__PAGE", "10").start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    for i in 0..50 {
        a.send("bob", &format!("before{i}"), "hi").await;
    }
    // Bob has the first page of five; then more comes than his outbox takes.
    let (mut b, first) = server.connect(&bob).await;
    assert_eq!(first.len(), 10);
    let count = 50 + 4000;
    flood(&mut a, 4000).await;
    let mut seen: BTreeSet<u64> = first.iter().map(seq).collect();
    b.say(serde_json::json!({ "type": "RESEND" })).await;
    take_until(&mut b, &mut seen, count).await;
}

#[tokio::test]
async fn a_full_outbox_that_drains_at_once_goes_on_reading() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo"))
        .with("NEXO_GATEWAY__OUTBOX_LOW_BYTES", "50")
        .with("NEXO_GATEWAY__OUTBOX_HIGH_BYTES", "100")
        .start();
    let alice = server.person("alice").await;
    let (mut a, _) = server.connect(&alice).await;
    // Two frames in one packet, and the first answer alone fills the outbox.
    let unknown =
        serde_json::json!({ "type": "ACK", "ackType": "read", "serverMsgId": "A".repeat(26) });
    let since = Instant::now();
    for _ in 0..20 {
        a.burst([unknown.clone(), serde_json::json!({ "type": "PING" })]).await;
        a.expect("ERROR").await;
        a.expect("PONG").await;
    }
    assert!(since.elapsed() < Duration::from_secs(10), "it took {:?}", since.elapsed());
}

#[tokio::test]
async fn a_recall_in_the_middle_of_a_burst_is_heard_in_the_end() {
    let server = patient().start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    let mut recalled = Vec::new();
    for round in 0..10 {
        let ack = a.send("bob", &format!("oops{round}"), "taken back").await;
        flood_as(&mut a, 300, &format!("f{round}-")).await;
        let id = &ack["serverMsgId"];
        a.say(serde_json::json!({ "type": "MESSAGE_REVOKE", "serverMsgId": id })).await;
        a.expect_ack("revoked").await;
        recalled.push(ack["serverMsgId"].clone());
    }
    let mut told = std::collections::HashSet::new();
    let mut top = 0;
    while told.len() < recalled.len() || top < 3010 {
        let frame = b.next().await;
        match frame["type"].as_str() {
            Some("SINGLE_CHAT") => {
                top = top.max(seq(&frame));
                if frame["revoked"] == true {
                    told.insert(frame["serverMsgId"].to_string());
                }
            }
            Some("MESSAGE_REVOKED") => {
                told.insert(frame["serverMsgId"].to_string());
            }
            Some("RESEND_DONE") if frame["hasMore"] == true => {
                b.say(serde_json::json!({ "type": "RESEND" })).await;
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_reader_too_slow_to_hear_that_it_is_out_starts_anew() {
    let server = patient().start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let group = TestGroup::new(&server.http, &alice, &[&bob]).await;
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    flood(&mut a, 4000).await;
    group.ask(&alice, "kick", serde_json::json!({ "user_id": "bob" })).await.data();
    // The kick found his outbox full, and no later change of the group would show him the hole.
    let (frames, code) = b.expect_end().await;
    assert!(!frames.iter().any(|frame| frame["event"] == "kicked"));
    assert_eq!((&frames.last().unwrap()["reason"], code), (&"slow_consumer".into(), Some(4002)));
    let path = format!("/conversation/changes?conversation_id={}", group.conversation());
    let changes = server.http.get(&path, &bob.token).await;
    assert_eq!(changes.data()[1]["kind"], "kicked");
}
