//! Clients that want to exhaust or confuse the server.

use std::time::Duration;

use nexo_sim::Server;
use tokio::io::AsyncWriteExt;

use super::client::{Client, upgrade_request};
use super::frames::{
    Answer, CONTINUATION, TEXT, echo, heartbeat, part, ping, raw, refused, text, whole,
};
use super::limits::BYTES_MAX;

const PROTOCOL_ERROR: Answer = Answer::Close(Some(1002));
const MEMORY_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Opens a socket without authenticating.
async fn open(server: &Server) -> Client {
    let mut client = Client::connect(server).await;
    client.send(&[upgrade_request("", "").into_bytes()], usize::MAX).await;
    client.expect_upgrade().await;
    client
}

fn check_memory(server: &Server, before: u64, what: &str) {
    let after = server.memory_bytes();
    assert!(after < before + MEMORY_BYTES_MAX, "{what}: {before} bytes became {after}");
}

#[tokio::test]
async fn headers_that_lie_end_the_connection() {
    let server = super::start();
    let alice = server.person("alice").await;
    let too_large = || vec![refused("frame_too_large"), Answer::Close(Some(1009)), Answer::End];
    let broken = || vec![PROTOCOL_ERROR, Answer::End];
    let announced = |bytes: u64| [&[0x82, 0xff][..], &bytes.to_be_bytes(), &[0; 8]].concat();
    let unmasked = [&[0x81, 36][..], &heartbeat("x")].concat();
    for (name, bytes, expect) in [
        ("2⁶³ bytes", announced(1 << 63), too_large()),
        ("2⁶⁴ - 1 bytes", announced(u64::MAX), too_large()),
        ("4 GiB", announced(1 << 32), too_large()),
        (
            "a ping of 2⁶³ bytes",
            [&[0x89, 0xff][..], &[0x80, 0, 0, 0, 0, 0, 0, 0]].concat(),
            broken(),
        ),
        ("no mask", unmasked, broken()),
        ("a mask of zero", raw(0x81, [0; 4], &heartbeat("zero")), vec![echo("zero")]),
        ("a second request", upgrade_request("", "").into_bytes(), broken()),
    ] {
        let mut client = Client::sign_in(&server, &alice, TEXT).await;
        assert_eq!(client.exchange(&[bytes], usize::MAX, expect.len()).await, expect, "{name}");
    }
}

/// A reset would discard the close frame before the client has read it.
#[tokio::test]
async fn a_client_that_goes_on_after_a_violation_is_told_its_close_code() {
    let server = super::start();
    let alice = server.person("alice").await;
    let much = vec![0; 4 * 1024 * 1024];
    for bytes in [whole(CONTINUATION, ""), text(b"\xff"), vec![0xff, 0xff]] {
        let mut client = Client::sign_in(&server, &alice, TEXT).await;
        let expect = [Answer::Close(Some(if bytes[0] == 0x81 { 1007 } else { 1002 })), Answer::End];
        let answers = client.exchange(&[[bytes, much.clone()].concat()], usize::MAX, 2).await;
        assert_eq!(answers, expect);
    }
}

#[tokio::test]
async fn memory_stays_flat() {
    let server = super::start();
    let alice = server.person("alice").await;
    let mut client = Client::sign_in(&server, &alice, TEXT).await;
    let before = server.memory_bytes();

    // Empty fragments: many are a message, endless ones are not.
    let empty = part(CONTINUATION, "").repeat(10_000);
    let message = [part(TEXT, ""), empty.clone(), whole(CONTINUATION, heartbeat("empty"))];
    assert_eq!(client.exchange(&message, usize::MAX, 1).await, [echo("empty")]);
    let mut endless = Client::sign_in(&server, &alice, TEXT).await;
    let answers = endless.exchange(&[part(TEXT, ""), empty.repeat(2)], usize::MAX, 1).await;
    assert_eq!(answers, [PROTOCOL_ERROR]);
    check_memory(&server, before, "empty fragments");

    // Pings of a client that reads nothing: more than the buffers of the connection take. What it
    // reads later are pongs, then the answer to its message.
    let mut pings = ping([1; 125]).repeat(100_000);
    pings.extend(text(heartbeat("after the pings")));
    client.output.write_all(&pings).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await; // until the server has read them all
    check_memory(&server, before, "pings");
    let mut answer = client.next().await;
    assert_eq!(answer, Answer::Pong(vec![1; 125]));
    while answer == Answer::Pong(vec![1; 125]) {
        answer = client.next().await;
    }
    assert_eq!(answer, echo("after the pings"));

    // Long messages that are announced and never sent.
    let mut waiting = Vec::new();
    for _ in 0..200 {
        let mut client = open(&server).await;
        let frame = whole(TEXT, vec![b' '; BYTES_MAX]);
        client.send(&[frame[..100].to_vec()], usize::MAX).await;
        waiting.push(client);
    }
    assert_eq!(server.http.get("/healthz", "").await.status, 200);
    check_memory(&server, before, "announced messages");
}
