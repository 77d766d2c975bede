//! Request and response heads, over raw sockets: ambiguous lengths are refused, unread bodies are not
//! left on the connection, and no cache stores responses with tokens.

use nexo_sim::Http;
use nexo_sim::process::Setup;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo"))
}

/// The answer to some bytes.
async fn raw(http: &Http, bytes: &str) -> (u16, String) {
    let answer = http.raw(bytes.as_bytes()).await;
    (answer.status, answer.text)
}

#[tokio::test]
async fn a_request_names_one_host() {
    let server = setup().start();
    let http = &server.http;
    let close = "Connection: close\r\n";
    let (status, text) = raw(http, &format!("GET /healthz HTTP/1.1\r\n{close}\r\n")).await;
    assert!(status == 400 && text.contains("Host header is missing"), "{status} {text}");
    let two = format!("GET /healthz HTTP/1.1\r\nHost: a\r\nHost: a\r\n{close}\r\n");
    let (status, text) = raw(http, &two).await;
    assert!(status == 400 && text.contains("more than one Host"), "{status} {text}");
    let one = format!("GET /healthz HTTP/1.1\r\nHost: a\r\n{close}\r\n");
    assert_eq!(raw(http, &one).await.0, 200);
    // Before 1.1 there was no such header.
    assert_eq!(raw(http, "GET /healthz HTTP/1.0\r\n\r\n").await.0, 200);
}

const CHUNKED: &str = "b\r\n{\"a\": \"bcd\"\r\n1\r\n}\r\n0\r\n\r\n";

#[tokio::test]
async fn a_length_is_told_in_one_way() {
    let server = setup().start();
    let http = &server.http;
    let (te, cl) = ("Transfer-Encoding: chunked\r\n", "Content-Length: 29\r\n");
    let odd = "content-length : 29\r\n";
    for (name, first, second) in [("TE, CL", te, cl), ("CL, TE", cl, te), ("odd CL", te, odd)] {
        // Without `Connection: close`: the server closes by itself, so nothing is left to be read as
        // another request.
        let head = format!("POST /auth/login HTTP/1.1\r\nHost: a\r\n{first}{second}\r\n{CHUNKED}");
        let (status, text) = raw(http, &head).await;
        assert_eq!(status, 400, "{name}: {text}");
    }
    // One of them is fine.
    let close = "Connection: close\r\n";
    let head = format!("POST /auth/login HTTP/1.1\r\nHost: a\r\n{close}{te}\r\n{CHUNKED}");
    let (status, text) = raw(http, &head).await;
    assert!(status == 400 && text.contains("invalid_param") && text.contains("user_id"), "{text}");
    for lengths in ["Content-Length: 2\r\nContent-Length: 3\r\n", "Content-Length: -1\r\n"] {
        let head = format!("POST /auth/login HTTP/1.1\r\nHost: a\r\n{close}{lengths}\r\n{{}}");
        assert_eq!(raw(http, &head).await.0, 400, "{lengths}");
    }
}

#[tokio::test]
async fn a_length_is_told_in_one_way_by_every_request_of_a_connection() {
    let server = setup().start();
    let mut stream = TcpStream::connect(&server.http.authority).await.unwrap();
    let good = "POST /auth/login HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";
    let te = "Transfer-Encoding: chunked\r\n";
    let chunked = format!("POST /auth/login HTTP/1.1\r\nHost: a\r\n{te}\r\n{CHUNKED}");
    let mut buffer = vec![0; 16 * 1024];
    for request in [good, &chunked, good, &chunked] {
        stream.write_all(request.as_bytes()).await.unwrap();
        let read = stream.read(&mut buffer).await.unwrap();
        let answer = String::from_utf8_lossy(&buffer[..read]).to_lowercase();
        assert!(answer.contains("user_id"), "it was read as it is: {answer}");
        assert!(!answer.contains("connection: close"), "{answer}");
    }
    let both = chunked.replace(te, &format!("{te}Content-Length: 5\r\n"));
    stream.write_all(both.as_bytes()).await.unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.starts_with("HTTP/1.1 400") && rest.contains("not both"), "{rest}");
}

#[tokio::test]
async fn who_refuses_a_body_unread_closes() {
    let server = setup().start();
    let ask = async |head: &str, body: &str| {
        let mut stream = TcpStream::connect(&server.http.authority).await.unwrap();
        let length = format!("Content-Length: {}\r\n", body.len());
        let request = format!("{head} HTTP/1.1\r\nHost: a\r\n{length}\r\n{body}");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut buffer = vec![0; 16 * 1024];
        let read = stream.read(&mut buffer).await.unwrap();
        String::from_utf8_lossy(&buffer[..read]).to_lowercase()
    };
    let large = "x".repeat(200_000);
    for (head, body, status) in [
        ("POST /msg/send", "{}", "401"),
        ("POST /no/such/path", "{}", "404"),
        ("DELETE /msg/send", "{}", "405"),
        ("POST /auth/login", &large, "413"),
    ] {
        let answer = ask(head, body).await;
        assert!(answer.starts_with(&format!("http/1.1 {status}")), "{head}: {answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{head}: {answer}");
    }
    let answer = ask("POST /auth/login", "{}").await;
    assert!(!answer.contains("connection: close"), "it was read: {answer}");
    let answer = ask("POST /msg/send", "").await;
    assert!(!answer.contains("connection: close"), "there is none to read: {answer}");
}

#[tokio::test]
async fn answers_with_tokens_are_kept_by_nobody() {
    let server = setup().start();
    let alice = server.person("alice").await;
    let body = json!({ "user_id": "alice", "password": nexo_sim::person::PASSWORD });
    let login = server.http.post("/auth/login", "", body).await;
    assert_eq!(login.status, 200);
    assert_eq!(login.header("cache-control"), Some("no-store"));
    let body = json!({ "refresh_token": alice.refresh });
    let refresh = server.http.post("/auth/refresh", "", body).await;
    assert_eq!(refresh.status, 200, "{}", refresh.text);
    assert_eq!(refresh.header("cache-control"), Some("no-store"));
    let list = server.http.get("/conversation/list", &alice.token).await;
    assert_eq!(list.header("cache-control"), Some("no-store"), "{}", list.head);
}
