//! Requests that are no valid upgrade are refused, and the server stays.

use super::client::{Client, upgrade_request};
use super::frames::{TEXT, echo, heartbeat, whole};

#[tokio::test]
async fn only_a_valid_request_becomes_a_websocket() {
    let server = super::start();
    let connection = "Connection: Upgrade\r\n";
    let version = "Sec-WebSocket-Version: 13\r\n";
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (name, from, to, status) in [
        ("no key", key, "", 400),
        ("no version", version, "", 400),
        ("version 8", "13", "8", 400),
        ("two versions", "13", "13, 8", 400),
        ("no Connection", connection, "", 400),
        ("Connection: close", "Connection: Upgrade", "Connection: close", 400),
        ("Connection: upgrades", "Connection: Upgrade", "Connection: upgrades", 400),
        ("no Upgrade", "Upgrade: websocket\r\n", "", 400),
        ("Upgrade: h2c", "Upgrade: websocket", "Upgrade: h2c", 400),
        ("POST", "GET", "POST", 405),
        ("HEAD", "GET", "HEAD", 400),
        ("HTTP/1.0", "HTTP/1.1", "HTTP/1.0", 400),
        ("HTTP/2.0", "HTTP/1.1", "HTTP/2.0", 400),
        ("no HTTP", "GET /ws HTTP/1.1", "\x16\x03\x01", 400),
        ("a line without a colon", "Host: x", "Host", 400),
    ] {
        // After a refusal the connection would stay open for another request.
        let request =
            upgrade_request(from, to).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
        let answer = server.http.raw(request.as_bytes()).await;
        assert_eq!(answer.status, status, "{name}: {}", answer.head);
        assert_ne!(answer.header("upgrade"), Some("websocket"), "{name}");
    }
    assert_eq!(server.http.get("/healthz", "").await.status, 200);
}

#[tokio::test]
async fn a_refusal_names_the_version_that_is_spoken() {
    let server = super::start();
    let request = upgrade_request("13", "8").replace("Upgrade\r\n", "Upgrade, close\r\n");
    let answer = server.http.raw(request.as_bytes()).await;
    assert_eq!((answer.status, answer.header("sec-websocket-version")), (400, Some("13")));
}

#[tokio::test]
async fn a_valid_request_may_look_unusual() {
    let server = super::start();
    for (from, to) in [
        ("", ""),
        ("Connection: Upgrade", "Connection: keep-alive, UPGRADE"),
        ("Connection: Upgrade", "Connection: keep-alive\r\nConnection: upgrade"),
        ("Upgrade: websocket", "uPGRADE: WebSocket"),
        ("Upgrade: websocket", "Upgrade: h2c, websocket"),
        ("Host: x", "Host: x\r\nSec-WebSocket-Extensions: permessage-deflate"),
        ("Host: x", "Host: x\r\nSec-WebSocket-Protocol: chat, superchat"),
    ] {
        // The first frame comes with the request, or both come byte by byte.
        for piece in [usize::MAX, 1] {
            let mut client = Client::connect(&server).await;
            let request = upgrade_request(from, to).into_bytes();
            client.send(&[[request, whole(TEXT, heartbeat("first"))].concat()], piece).await;
            client.expect_upgrade().await;
            assert_eq!(client.next().await, echo("first"), "{to}");
        }
    }
}
