//! Malformed and unexpected frames.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::time::Duration;

use futures_util::SinkExt;
use nexo_sim::process::Setup;
use nexo_sim::socket::{SocketEvent, chat};
use nexo_sim::{Server, Socket};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo"))
}

async fn alive(server: &Server) {
    assert_eq!(server.http.get("/healthz", "").await.status, 200);
}

#[tokio::test]
async fn before_auth_only_a_ping_is_answered() {
    let server = setup().start();
    let mut socket = server.socket().await;
    socket.say(json!({ "type": "PING" })).await;
    assert_eq!(socket.next().await["type"], "PONG");
    socket.say(chat("bob", "c1", "hi")).await;
    let (frames, code) = socket.expect_end().await;
    assert_eq!((&frames[0]["reason"], code), (&json!("unauthorized"), Some(4401)));
}

#[tokio::test]
async fn bad_frames_are_answered_and_the_fourth_in_a_row_ends_it() {
    let server = setup().start();
    let alice = server.person("alice").await;
    let deep = format!("{}1{}", "[".repeat(50_000), "]".repeat(50_000));
    let cases = [
        ("nonsense".to_owned(), "bad_json"),
        ("[]".to_owned(), "bad_json"),
        ("{}".to_owned(), "missing_type"),
        (r#"{"type":"DANCE"}"#.to_owned(), "not_implemented"),
        (r#"{"type":7}"#.to_owned(), "bad_json"),
        (r#"{"type":"PING","type":"PING"}"#.to_owned(), "invalid_param"),
        (format!(r#"{{"type":"SINGLE_CHAT","body":{deep}}}"#), "bad_json"),
        (format!(r#"{{"type":"DANCE","ignored":{deep}}}"#), "not_implemented"),
        (
            r#"{"type":"SINGLE_CHAT","clientMsgId":{"$ne":null},"to":"bob","body":"x"}"#.to_owned(),
            "invalid_param",
        ),
        (
            r#"{"type":"SINGLE_CHAT","clientMsgId":1e400,"to":"bob","body":"x"}"#.to_owned(),
            "bad_json",
        ),
        (
            r#"{"type":"SINGLE_CHAT","clientMsgId":"\ud800","to":"bob","body":"x"}"#.to_owned(),
            "bad_json",
        ),
    ];
    for (text, reason) in &cases {
        let (mut socket, _) = server.connect(&alice).await;
        socket.text(text).await;
        assert_eq!(socket.next().await["reason"], *reason, "{text:.80}");
        socket.expect_silence().await;
    }
    let (mut socket, _) = server.connect(&alice).await;
    for _ in 0..4 {
        socket.text("nonsense").await;
    }
    let (frames, code) = socket.expect_end().await;
    assert_eq!((frames.len(), code), (4, Some(4400)));
    alive(&server).await;
}

#[tokio::test]
async fn a_field_of_a_wrong_type_refuses_that_message_by_its_name() {
    let server = setup().start();
    let alice = server.person("alice").await;
    let (mut socket, _) = server.connect(&alice).await;
    for (field, value) in
        [("body", json!({ "a": 1 })), ("mentions", json!("@all")), ("extra", json!({ "w": 1 }))]
    {
        for id in ["c1", "c2"] {
            let mut frame = chat("bob", id, "x");
            frame[field] = value.clone();
            socket.say(frame).await;
            let refused = socket.next().await;
            assert_eq!(
                (&refused["reason"], &refused["clientMsgId"]),
                (&json!("invalid_param"), &json!(id))
            );
        }
    }
    socket.expect_silence().await; // six of them, and the connection stays
}

#[tokio::test]
async fn binary_is_not_this_dialect_and_too_large_is_too_large() {
    let server = setup().start();
    let alice = server.person("alice").await;
    let (mut socket, _) = server.connect(&alice).await;
    socket.stream.send(Message::binary(vec![1, 2, 3])).await.unwrap();
    assert_eq!(socket.next().await["reason"], "bad_json");
    let mut large = chat("bob", "c1", "x");
    large["padding"] = json!("x".repeat(131_072));
    socket.say(large).await;
    let (frames, code) = socket.expect_end().await;
    assert_eq!((&frames[0]["reason"], code), (&json!("frame_too_large"), Some(1009)));
    alive(&server).await;
}

/// Upgrades by hand and sends raw frames; returns the close code once the server has closed.
async fn raw_frames(server: &Server, frames: &[u8]) -> Option<u16> {
    let mut tcp = TcpStream::connect(&server.http.authority).await.unwrap();
    let head = "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    tcp.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 1024];
    let got = tcp.read(&mut answer).await.unwrap();
    assert!(answer[..got].starts_with(b"HTTP/1.1 101"), "upgraded");
    tcp.write_all(frames).await.unwrap();
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(10), tcp.read_to_end(&mut rest)).await;
    assert!(closed.is_ok(), "the server must end this");
    // A close frame from a server: 0x88, its length, the code.
    let at = rest.windows(2).rposition(|pair| pair[0] == 0x88 && pair[1] >= 2)?;
    rest.get(at + 2..at + 4).map(|code| u16::from_be_bytes([code[0], code[1]]))
}

#[tokio::test]
async fn broken_websocket_frames_end_the_connection_without_harm() {
    let server = setup().with("NEXO_GATEWAY__AUTH_TIMEOUT_MS", "1000").start();
    let memory = server.memory_bytes();
    let huge = [0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    let announced = [0x81, 0xff, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0];
    let mut long_ping = [0; 8 + 256];
    long_ping[..3].copy_from_slice(&[0x89, 0xfe, 1]);
    let cases: [(&str, &[u8], u16); 9] = [
        ("announces 2⁶³ bytes", &huge, 1009),
        ("announces 100 MB", &announced, 1009),
        ("is not masked", &[0x81, 0x05, b'h', b'e', b'l', b'l', b'o'], 1002),
        ("has reserved bits", &[0xf1, 0x80, 0, 0, 0, 0], 1002),
        ("has an unknown opcode", &[0x83, 0x80, 0, 0, 0, 0], 1002),
        ("is a ping too long", &long_ping, 1002),
        ("continues nothing", &[0x80, 0x80, 0, 0, 0, 0], 1002),
        ("is not UTF-8", &[0x81, 0x82, 0, 0, 0, 0, 0xff, 0xfe], 1007),
        ("never ends", &[0x01, 0x80, 0, 0, 0, 0, 0x00, 0x80, 0, 0, 0, 0], 4001),
    ];
    for (what, frames, code) in cases {
        assert_eq!(raw_frames(&server, frames).await, Some(code), "a frame that {what}");
    }
    assert!(server.memory_bytes() < memory + 32 * 1024 * 1024, "nothing was set aside for them");
    alive(&server).await;
}

#[tokio::test]
async fn floods_are_stopped_by_their_limits() {
    let server = setup()
        .with("NEXO_LIMITS__CONNECTION_FRAMES_PER_SECOND", "20")
        .with("NEXO_LIMITS__USER_SENDS_PER_SECOND", "5")
        .start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let limits = a_limits(&server, &alice.token).await;
    assert_eq!(limits["connectionFramesPerSecond"], 20);
    a.burst((0..41).map(|_| json!({ "type": "PING" }))).await;
    let (frames, code) = a.expect_end().await;
    assert_eq!(
        (&frames.last().unwrap()["reason"], code),
        (&json!("too_many_requests"), Some(4029))
    );
    // Per user, over all sockets.
    let (mut one, _) = server.connect(&bob).await;
    let (mut two, _) = server.connect(&bob).await;
    one.burst((0..6).map(|i| chat("alice", &format!("x{i}"), "hi"))).await;
    for _ in 0..6 {
        one.expect_ack("saved").await;
    }
    two.burst((0..6).map(|i| chat("alice", &format!("y{i}"), "hi"))).await;
    let (frames, _) = two.expect_end().await;
    assert_eq!(frames.last().unwrap()["reason"], "too_many_requests");
}

async fn a_limits(server: &Server, token: &str) -> serde_json::Value {
    let mut socket = server.socket().await;
    socket.auth(token).await["limits"].clone()
}

#[tokio::test]
async fn pages_of_other_sites_cannot_open_a_socket() {
    let server = setup().with("NEXO_GATEWAY__ALLOWED_ORIGINS", "https://app.example.com").start();
    let authority = server.http.authority.clone();
    for (origin, status) in [
        ("https://evil.example.com", 403),
        ("null", 403),
        ("https://app.example.com.evil.com", 403),
        (&format!("http://{authority}.evil.com"), 403),
        ("https://app.example.com", 101),
        (&format!("http://{authority}"), 101),
    ] {
        let mut tcp = TcpStream::connect(&authority).await.unwrap();
        let head = format!(
            "GET /ws HTTP/1.1\r\nHost: {authority}\r\nOrigin: {origin}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        );
        tcp.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 64];
        let got = tcp.read(&mut answer).await.unwrap();
        let line = String::from_utf8_lossy(&answer[..got]).into_owned();
        assert!(line.starts_with(&format!("HTTP/1.1 {status}")), "{origin}: {line}");
    }
}

#[tokio::test]
async fn auth_said_again_changes_nothing() {
    let server = setup().start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    a.say(json!({ "type": "AUTH", "token": bob.token })).await;
    assert_eq!(a.next().await["from"], "alice");
}

#[tokio::test]
async fn strange_text_comes_back_as_it_went() {
    let server = setup().start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    let texts = [
        "<script>alert(1)</script>",
        "'; DROP TABLE messages; --",
        "line\r\nline\0nul",
        "\u{202e}right to left",
        "👩‍👩‍👧‍👦 é 中文",
        r#"{"type":"ERROR"}"#,
        &"\u{301}".repeat(4096),
    ];
    for (i, text) in texts.iter().enumerate() {
        a.send("bob", &format!("c{i}"), text).await;
        assert_eq!(b.expect("SINGLE_CHAT").await["body"], *text);
    }
}

#[tokio::test]
async fn a_sender_who_leaves_at_once_takes_nothing_away() {
    let server = setup().start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut b, _) = server.connect(&bob).await;
    for i in 0..20 {
        let mut a = Socket::open(&server.http.authority).await;
        a.auth(&alice.token).await;
        a.until("RESEND_DONE").await;
        a.say(chat("bob", &format!("c{i}"), "and gone")).await;
        // Wait until the server has read it, not until it has answered.
        while !matches!(a.hear().await, SocketEvent::Frame(frame) if frame["ackType"] == "saved") {}
        drop(a);
        assert_eq!(b.expect("SINGLE_CHAT").await["clientMsgId"], format!("c{i}"));
    }
}

#[tokio::test]
async fn a_client_that_closes_is_answered() {
    let server = setup().start();
    let alice = server.person("alice").await;
    let (mut a, _) = server.connect(&alice).await;
    let bye = CloseFrame { code: CloseCode::Normal, reason: "".into() };
    a.stream.close(Some(bye)).await.unwrap();
    assert_eq!(a.hear().await, SocketEvent::Closed(Some(1000)));
}
