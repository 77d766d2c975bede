//! A panic, which is a bug of the server, ends the request or the socket it happened in and nothing else.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::time::{Duration, Instant};

use nexo_sim::process::Setup;
use nexo_sim::socket::chat;
use nexo_sim::{ClientDialect, DialectClient, Recipient, Server};
use serde_json::{Value, json};

/// A server that panics on request, as only a debug build does.
fn start() -> Server {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(0).with("TEST_PANICS", "1").start()
}

async fn metric(server: &Server, name: &str) -> Option<String> {
    let token = std::fs::read_to_string(server.data().join("metrics.token")).unwrap();
    let page = server.http.get("/metrics", token.trim()).await.text;
    let line = page.lines().find(|line| line.split([' ', '{']).next() == Some(name));
    line.map(|line| line.rsplit(' ').next().unwrap().to_owned())
}

#[tokio::test]
async fn in_a_handler_it_ends_one_request() {
    let server = start();
    let alice = server.person("alice").await;
    let (mut socket, _) = server.connect(&alice).await;
    let ask = |headers: &str| {
        let token = &alice.token;
        format!(
            "GET /user/info HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{headers}\r\n"
        )
    };
    // On one connection: the first panics, the second is answered.
    let both = ask("X-Test-Panic: 1\r\nX-Request-Id: mine-1\r\n") + &ask("Connection: close\r\n");
    let answer = server.http.raw(both.as_bytes()).await;
    assert_eq!(answer.status, 500, "{}", answer.head);
    assert_eq!(answer.header("x-request-id"), Some("mine-1"));
    let (body, second) = answer.text.split_once("HTTP/1.1 ").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(
        (&body["reason"], &body["request_id"]),
        (&json!("internal_error"), &json!("mine-1"))
    );
    assert!(second.starts_with("200 "), "{second}");
    socket.expect_silence().await;
    assert_eq!(metric(&server, "nexo_panics_total").await.as_deref(), Some("1"));
    let log = server.log();
    let line = log.lines().find(|line| line.contains("nexo::panic")).expect("a line of the log");
    assert!(line.contains("test_panic.rs"), "{line}");
}

#[tokio::test]
async fn in_a_session_it_ends_one_socket_and_leaves_nothing_behind() {
    let server = start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let (mut b, _) = server.connect(&bob).await;
    let (mut a, _) = server.connect(&alice).await;
    // What was sent before is acknowledged before the end.
    a.burst([chat("bob", "m1", "one"), json!({ "type": "TEST_PANIC" })]).await;
    let (frames, code) = a.expect_end().await;
    assert_eq!(code, Some(1011), "{frames:?}");
    assert!(frames.iter().any(|frame| frame["ackType"] == "saved"), "{frames:?}");
    assert_eq!(frames.last().unwrap()["reason"], "internal_error");
    b.find(|frame| frame["clientMsgId"] == "m1", "her message").await;
    // She is not online any more, and her socket is not counted.
    let since = Instant::now();
    loop {
        let body = json!({ "user_ids": ["alice"] });
        let online = server.http.post("/user/get_users_online_status", &bob.token, body).await;
        let is_online = online.data()[0]["status"] == 1;
        let open = metric(&server, "nexo_connections").await;
        if !is_online && open.as_deref() == Some("1") {
            break;
        }
        assert!(since.elapsed() < Duration::from_secs(30), "{} {open:?}", online.text);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Both go on.
    let (mut a, _) = server.connect(&alice).await;
    assert_eq!(b.send("alice", "m2", "two").await["ackType"], "saved");
    a.find(|frame| frame["clientMsgId"] == "m2", "his answer").await;
    assert_eq!(metric(&server, "nexo_panics_total").await.as_deref(), Some("1"));
}

#[tokio::test]
async fn many_panics_wear_nothing_out() {
    let server = start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let mut listener = DialectClient::connect(&server.http, &bob, ClientDialect::Typed).await;
    for round in 0..30 {
        // More than the sockets that a user may have: none is left behind.
        let (mut socket, _) = server.connect(&alice).await;
        socket.text("TEST_PANIC").await;
        assert_eq!(socket.expect_end().await.1, Some(1011), "{round}");
    }
    for dialect in ClientDialect::ALL {
        let mut client = DialectClient::connect(&server.http, &alice, dialect).await;
        let said = client.say(&Recipient::User("bob".into()), &format!("{dialect:?}"), "hi").await;
        assert_eq!(listener.hear_message().await.id, said.unwrap().id);
    }
    assert_eq!(metric(&server, "nexo_panics_total").await.as_deref(), Some("30"));
}
