//! What holds for every HTTP request: its id, its limits, its form, and which origins may send it.

use nexo_sim::Http;
use nexo_sim::http::HttpResponse;
use nexo_sim::process::Setup;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo"))
}

/// Asks with more headers, each ended by a line break.
async fn asked(http: &Http, line: &str, headers: &str) -> HttpResponse {
    let head = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
    http.raw(head.as_bytes()).await
}

fn header<'a>(answer: &'a HttpResponse, name: &str) -> Option<&'a str> {
    let lines = answer.head.lines().skip(1).filter_map(|line| line.split_once(": "));
    lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
}

#[tokio::test]
async fn every_answer_names_its_request() {
    let server = setup().start();
    for line in [
        "GET /healthz",
        "GET /readyz",
        "GET /",
        "GET /docs",
        "GET /openapi.json",
        "GET /metrics",
        "GET /ws",
        "GET /no/such/path",
        "DELETE /user/info",
        "GET /user/info",
        "POST /auth/login",
    ] {
        let answer = asked(&server.http, line, "").await;
        let id = header(&answer, "x-request-id").unwrap_or_else(|| panic!("{line} has no name"));
        assert_eq!(id.len(), 16, "{line}");
        if answer.body["code"].is_number() {
            assert_eq!(answer.body["request_id"], id, "{line}: one name");
        }
        let named = asked(&server.http, line, "X-Request-Id: mine-1\r\n").await;
        assert_eq!(header(&named, "x-request-id"), Some("mine-1"), "{line}");
        let odd = asked(&server.http, line, "X-Request-Id: not \"mine\"\r\n").await;
        assert_ne!(header(&odd, "x-request-id"), Some("not \"mine\""), "{line}");
    }
}

#[tokio::test]
async fn logs_name_the_request_and_never_its_query() {
    let mut server = setup().with("NEXO_LOG__LEVEL", "debug").start();
    let line = "GET /user/info?user_id=somebody&token=secret";
    asked(&server.http, line, "X-Request-Id: look-for-me\r\n").await;
    server.stop();
    let log = server.log();
    let line = log.lines().find(|line| line.contains("look-for-me")).expect("a line of the log");
    for word in ["/user/info", "GET", "401", "elapsed"] {
        assert!(line.contains(word), "{word} is not in {line}");
    }
    assert!(!log.contains("somebody") && !log.contains("secret"), "{log}");
}

#[tokio::test]
async fn requests_are_timed_by_their_path() {
    let server = setup().start();
    let alice = server.person("alice").await;
    server.http.get("/user/info?user_id=alice", &alice.token).await;
    server.http.get("/no/such/path", "").await;
    let token = std::fs::read_to_string(server.data().join("metrics.token")).unwrap();
    let page = server.http.get("/metrics", token.trim()).await.text;
    for line in [
        "nexo_http_seconds_count{route=\"/user/info\"} 1",
        "nexo_http_seconds_count{route=\"/user/register\"} 1",
        "nexo_http_seconds_count{route=\"other\"} 1",
        "nexo_http_seconds_bucket{route=\"/user/info\",le=\"0.25\"}",
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
    assert!(!page.contains("no/such"), "whoever asks does not name what is counted");
}

#[tokio::test]
async fn large_answers_are_compressed_for_those_who_ask() {
    let server = setup().start();
    let asking = async |line: &str, headers: &str| {
        let mut stream = TcpStream::connect(&server.http.authority).await.unwrap();
        let head = format!("GET {line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        bytes
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_lowercase();
    let plain = asking("/openapi.json", "").await;
    assert!(!text(&plain).contains("content-encoding"));
    let small = asking("/openapi.json", "Accept-Encoding: gzip, br\r\n").await;
    assert!(text(&small).contains("content-encoding: gzip"));
    assert!(text(&small).contains("vary: accept-encoding"));
    assert!(small.len() * 5 < plain.len(), "{} of {}", small.len(), plain.len());
    for path in ["/healthz", "/server/info"] {
        let answer = asking(path, "Accept-Encoding: gzip\r\n").await;
        assert!(!text(&answer).contains("content-encoding"), "{path} is small");
    }
    let refused = asking("/openapi.json", "Accept-Encoding: gzip;q=0\r\n").await;
    assert!(!text(&refused).contains("content-encoding"));
}

#[tokio::test]
async fn a_socket_is_never_compressed() {
    let server = setup().start();
    let head = "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        Accept-Encoding: gzip\r\n\r\n";
    let mut stream = TcpStream::connect(&server.http.authority).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut bytes = [0; 1024];
    let read = stream.read(&mut bytes).await.unwrap();
    let head = String::from_utf8_lossy(&bytes[..read]).to_lowercase();
    assert!(head.starts_with("http/1.1 101"), "{head}");
    assert!(head.contains("x-request-id: "), "{head}");
    assert!(!head.contains("content-encoding"), "{head}");
}

const PAGE: &str = "https://app.example.com";

#[tokio::test]
async fn only_pages_the_operator_named_may_ask() {
    let server = setup().with("NEXO_GATEWAY__ALLOWED_ORIGINS", PAGE).start();
    let http = &server.http;
    let first = "Access-Control-Request-Method: PUT\r\n";
    let asked_first = |origin: &str| format!("Origin: {origin}\r\n{first}");
    let allowed = asked(http, "OPTIONS /user/update", &asked_first(PAGE)).await;
    assert_eq!(allowed.status, 204);
    assert_eq!(header(&allowed, "access-control-allow-origin"), Some(PAGE));
    assert_eq!(header(&allowed, "access-control-allow-methods"), Some("GET, POST, PUT"));
    let headers = header(&allowed, "access-control-allow-headers").unwrap();
    assert_eq!(headers, "authorization, content-type, x-request-id");
    assert!(header(&allowed, "access-control-max-age").is_some());
    assert!(header(&allowed, "x-request-id").is_some());
    let asked_then = asked(http, "GET /healthz", &format!("Origin: {PAGE}\r\n")).await;
    assert_eq!(header(&asked_then, "access-control-allow-origin"), Some(PAGE));
    assert!(header(&asked_then, "vary").unwrap().contains("origin"));
    let refused = asked(http, "GET /user/info", &format!("Origin: {PAGE}\r\n")).await;
    assert_eq!(refused.status, 401);
    assert_eq!(header(&refused, "access-control-allow-origin"), Some(PAGE), "a page may read why");
    for origin in ["https://evil.com", "null", "https://app.example.com.evil.com", "*"] {
        for (line, headers) in [
            ("OPTIONS /user/update", asked_first(origin)),
            ("GET /healthz", format!("Origin: {origin}\r\n")),
        ] {
            let answer = asked(http, line, &headers).await;
            let told = answer.head.to_lowercase();
            assert!(!told.contains("access-control"), "{origin} {line}: {told}");
        }
    }
}

#[tokio::test]
async fn without_named_pages_nobody_hears_of_it() {
    let server = setup().start();
    let headers = format!("Origin: {PAGE}\r\nAccess-Control-Request-Method: GET\r\n");
    for line in ["OPTIONS /healthz", "GET /healthz"] {
        let answer = asked(&server.http, line, &headers).await;
        assert!(!answer.head.to_lowercase().contains("access-control"), "{}", answer.head);
    }
}

#[tokio::test]
async fn the_server_says_what_it_is() {
    let server = setup()
        .with("NEXO_SESSION__POLICY", "per_platform")
        .with("NEXO_MESSAGES__RECALL_SECONDS", "90")
        .start();
    let told = server.http.get("/server/info", "").await.data().clone();
    assert_eq!(told["name"], "nexo");
    assert_eq!(told["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(told["dialects"], json!(["typed", "numbered", "dotted"]));
    assert_eq!(told["session_policy"], "per_platform");
    assert_eq!(told["limits"]["recallWindowMs"], 90_000);
    let alice = server.person("alice").await;
    let mut socket = server.socket().await;
    let welcome = socket.auth(&alice.token).await;
    assert_eq!(told["limits"], welcome["limits"], "the same that a socket is told");
}

#[tokio::test]
async fn a_person_asks_so_often_and_no_more() {
    let server = setup()
        .with("NEXO_LIMITS__USER_REQUESTS_PER_SECOND", "1")
        .with("NEXO_LIMITS__USER_REQUESTS_BURST", "5")
        .start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let mut refused = 0;
    for _ in 0..20 {
        let answer = server.http.get("/user/info", &alice.token).await;
        if answer.status != 200 {
            assert_eq!((answer.status, answer.reason()), (429, "too_many_requests"));
            assert_eq!(header(&answer, "retry-after"), Some("1"));
            refused += 1;
        }
    }
    assert!((10..=15).contains(&refused), "{refused}");
    assert_eq!(server.http.get("/user/info", &bob.token).await.status, 200, "others may");
    assert_eq!(server.http.get("/healthz", &alice.token).await.status, 200, "what needs no token");
}

#[tokio::test]
async fn the_docs_page_needs_nothing_from_elsewhere() {
    let server = setup().start();
    for path in ["/docs", "/docs/app.js", "/docs/style.css"] {
        let page = server.http.get(path, "").await;
        assert_eq!(page.status, 200, "{path}");
        for elsewhere in ["https://", "http://", "//cdn", "@import", "url("] {
            assert!(!page.text.contains(elsewhere), "{path} has {elsewhere}");
        }
        let policy = header(&page, "content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(header(&page, "x-content-type-options"), Some("nosniff"));
    }
    let page = server.http.get("/docs", "").await.text;
    assert!(!page.contains("<style") && !page.contains("<script>") && !page.contains(" on"));
    let script = server.http.get("/docs/app.js", "").await.text;
    assert!(!script.contains("innerHTML") && !script.contains("eval"), "text, never markup");
    assert_eq!(server.http.get("/docs/other.js", "").await.reason(), "not_found");
}
