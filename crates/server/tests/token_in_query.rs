//! A token does not have to be in the query of a socket, where proxies log it, and the operator can refuse it there.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use nexo_sim::process::Setup;
use nexo_sim::{Person, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(0)
}

/// Opens a socket; returns the head of the answer and its body.
async fn upgrade(server: &Server, query: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(&server.http.authority).await.unwrap();
    let head = format!(
        "GET /ws?{query} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut bytes = [0; 4096];
    let read = stream.read(&mut bytes).await.unwrap();
    String::from_utf8_lossy(&bytes[..read]).into_owned()
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// The ways to bring a token, as query and headers.
fn ways(alice: &Person) -> [(String, String); 3] {
    let token = &alice.token;
    [
        (format!("send_id=alice&token={token}"), String::new()),
        ("send_id=alice".to_owned(), format!("Authorization: Bearer {token}\r\n")),
        (
            "send_id=alice&is_msg_resp=true".to_owned(),
            format!("Sec-WebSocket-Protocol: nexo, nexo.token.{token}\r\n"),
        ),
    ]
}

#[tokio::test]
async fn a_header_does_as_well_as_the_query_and_no_log_has_it() {
    let mut server = setup().with("NEXO_LOG__LEVEL", "trace").start();
    let alice = server.person("alice").await;
    for (query, headers) in ways(&alice) {
        let answer = upgrade(&server, &query, &headers).await;
        assert_eq!(status(&answer), 101, "{answer}");
        let chosen = answer.to_lowercase().contains("\r\nsec-websocket-protocol: nexo\r\n");
        assert_eq!(chosen, headers.contains("Protocol"), "{answer}");
    }
    let wrong = upgrade(&server, "send_id=alice", "Authorization: Bearer nonsense\r\n").await;
    assert_eq!(status(&wrong), 401);
    server.stop();
    let log = server.log();
    let signature = alice.token.rsplit('.').next().unwrap();
    assert!(!log.contains(signature) && !log.contains("nonsense"), "a token is in the log");
}

#[tokio::test]
async fn where_the_operator_wants_it_the_query_takes_none() {
    let server = setup().with("NEXO_GATEWAY__TOKEN_IN_QUERY", "false").start();
    let alice = server.person("alice").await;
    let [in_query, in_header, in_protocol] = ways(&alice);
    let refused = upgrade(&server, &in_query.0, &in_query.1).await;
    assert_eq!(status(&refused), 400, "{refused}");
    assert!(refused.contains("takes no token in the query"), "{refused}");
    assert!(!refused.contains(&alice.token), "{refused}");
    for (query, headers) in [in_header, in_protocol] {
        let answer = upgrade(&server, &query, &headers).await;
        assert_eq!(status(&answer), 101, "{answer}");
    }
    // The other dialects have theirs in the first frame.
    server.connect(&alice).await.0.expect_silence().await;
}
