//! Connections beyond what the server has descriptors or places for: who is signed in goes on, the store always
//! finds its files, health checks are answered, and afterwards everybody connects again.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use nexo_sim::flood::{self, Flood};
use nexo_sim::history::History;
use nexo_sim::process::Setup;
use nexo_sim::socket::chat;
use nexo_sim::{HttpResponse, Server, Socket};
use serde_json::Value;

const FLOODER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 66));
const NEIGHBOUR: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const PATIENCE: Duration = Duration::from_mins(1);

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(0)
}

fn address(server: &Server) -> SocketAddr {
    server.http.authority.parse().unwrap()
}

/// Asks from an address; `None` if the server closed the connection instead.
async fn ask(server: &Server, from: IpAddr, path: &str, more: &str) -> Option<HttpResponse> {
    let stream = flood::connect(address(server), from).await?;
    let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{more}\r\n");
    server.http.try_raw_on(stream, head.as_bytes()).await.filter(|answer| answer.status != 0)
}

/// Asks until there is an answer with this status.
async fn ask_until(server: &Server, from: IpAddr, path: &str, status: u16) -> HttpResponse {
    let since = Instant::now();
    loop {
        let answer = ask(server, from, path, "").await;
        if let Some(answer) = answer.filter(|answer| answer.status == status) {
            return answer;
        }
        assert!(since.elapsed() < PATIENCE, "{path} is not answered");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Connects and signs in, trying again while there is no place.
async fn sign_in(server: &Server, from: IpAddr, token: &str) -> Socket {
    let since = Instant::now();
    loop {
        if let Some(stream) = flood::connect(address(server), from).await
            && let Some(mut socket) = Socket::try_open_on(stream, &server.http.authority).await
        {
            socket.auth(token).await;
            socket.until("RESEND_DONE").await;
            return socket;
        }
        assert!(since.elapsed() < PATIENCE, "there is no place");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A text of 4,000 characters that does not compress.
fn text(of: usize) -> String {
    let mut state = of as u64 + 1;
    let letters = (0..4_000).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
    });
    letters.collect()
}

/// The number of the newest sorted file.
fn newest_table(server: &Server) -> u64 {
    let files = std::fs::read_dir(server.data().join("trees/messages/tables"));
    let names = files.into_iter().flatten().flatten().map(|file| file.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).max().unwrap_or(0)
}

/// Sends messages to erin until the store has begun new files several times; each must be saved.
async fn send_across_rolls(server: &Server, socket: &mut Socket, history: &mut History) {
    let before = newest_table(server);
    let since = Instant::now();
    while newest_table(server) < before + 3 {
        assert!(since.elapsed() < 2 * PATIENCE, "no new files");
        let first = history.count();
        let ids: Vec<String> = (first..first + 50).map(|number| format!("m{number}")).collect();
        let bodies: Vec<String> = (first..first + 50).map(text).collect();
        for (id, body) in ids.iter().zip(&bodies) {
            history.tried(id, body);
        }
        socket.burst(ids.iter().zip(&bodies).map(|(id, body)| chat("erin", id, body))).await;
        for id in &ids {
            let answer = socket.answer(id).await;
            assert_eq!(answer["ackType"], "saved", "{answer}");
            history.acked(&answer);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_beyond_the_descriptors_stops_nobody_who_is_signed_in() {
    let server = setup().with("NEXO_EMBEDDED__MEMTABLE_MIB", "1").after("ulimit -n 600").start();
    let [alice, bob, carol] = server.people(["alice", "bob", "carol"]).await;
    server.person("erin").await;
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    let flood = Flood::start(&server.http.authority, FLOODER, 1_000);
    let since = Instant::now();
    while flood.opened() < 1_500 {
        assert!(since.elapsed() < PATIENCE, "{} connections", flood.opened());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut history = History::default();
    send_across_rolls(&server, &mut a, &mut history).await;
    // From the flood's own address and from another one.
    for from in [NEIGHBOUR, FLOODER] {
        assert_eq!(ask_until(&server, from, "/healthz", 200).await.body["status"], "ok");
        assert_eq!(ask_until(&server, from, "/readyz", 200).await.body["status"], "ready");
    }
    let mut c = sign_in(&server, NEIGHBOUR, &carol.token).await;
    assert_eq!(c.send("bob", "from-carol", "hi").await["ackType"], "saved");
    let heard = b.find(|frame| frame["clientMsgId"] == "from-carol", "carol's message").await;
    assert_eq!(heard["from"], "carol");
    send_across_rolls(&server, &mut a, &mut history).await;
    let flooded = flood.opened();
    flood.end().await;
    let dave = server.person("dave").await;
    let (mut d, _) = server.connect(&dave).await;
    assert_eq!(d.send("bob", "from-dave", "hi").await["ackType"], "saved");
    check_warnings(&server, since.elapsed());
    assert!(flooded > 600, "{flooded}");
    history.check(&server.http, &alice, "erin").await;
}

/// The flood wrote a line per second and kind at most.
fn check_warnings(server: &Server, within: Duration) {
    let log = server.log();
    assert!(
        log.contains("limits.connections_max is more than there are file descriptors"),
        "{log}"
    );
    let warnings = log.lines().filter(|line| line.contains("\"WARN\"")).count();
    let most = 3 * (usize::try_from(within.as_secs()).unwrap() + 2);
    assert!(warnings <= most, "{warnings} in {within:?}:\n{log}");
    assert!(!log.contains("could not accept") && !log.contains("Too many open files"), "{log}");
}

#[tokio::test]
async fn a_full_server_answers_health_checks_and_refuses_the_rest() {
    let mut server = setup().start();
    let alice = server.person("alice").await;
    // Only now so few places: the connections over which she registered may end late.
    server.stop();
    server.start_again(|setup| setup.with("NEXO_LIMITS__CONNECTIONS_MAX", "3"));
    let mut sockets = Vec::new();
    for _ in 0..3 {
        sockets.push(sign_in(&server, FLOODER, &alice.token).await);
    }
    let token = std::fs::read_to_string(server.data().join("metrics.token")).unwrap();
    let flood = Flood::start(&server.http.authority, FLOODER, 50);
    for from in [NEIGHBOUR, FLOODER] {
        ask_until(&server, from, "/healthz", 200).await;
        ask_until(&server, from, "/readyz", 200).await;
        let refused = ask_until(&server, from, "/server/info", 503).await;
        assert_eq!(refused.reason(), "server_busy");
    }
    flood.end().await;
    let more = format!("Authorization: Bearer {}\r\n", token.trim());
    let page = loop {
        if let Some(answer) = ask(&server, NEIGHBOUR, "/metrics", &more).await {
            break answer;
        }
    };
    assert_eq!(page.status, 200);
    let refused = "nexo_connections_refused_total{reason=\"full\"}";
    assert!(page.text.contains(refused), "{}", page.text);
    for socket in &mut sockets {
        socket.expect_silence().await; // still there
    }
    sockets.pop();
    sign_in(&server, NEIGHBOUR, &alice.token).await.expect_silence().await;
}

#[tokio::test]
async fn an_address_has_so_many_connections_and_others_have_theirs() {
    let server = setup().with("NEXO_LIMITS__CONNECTIONS_PER_ADDRESS", "3").start();
    let alice = server.person("alice").await;
    let mut sockets = Vec::new();
    for _ in 0..3 {
        sockets.push(sign_in(&server, FLOODER, &alice.token).await);
    }
    assert_eq!(ask_until(&server, FLOODER, "/ws", 503).await.reason(), "server_busy");
    ask_until(&server, FLOODER, "/healthz", 200).await;
    sockets.push(sign_in(&server, NEIGHBOUR, &alice.token).await);
    sockets.remove(0);
    sockets.push(sign_in(&server, FLOODER, &alice.token).await);
    for socket in &mut sockets {
        socket.expect_silence().await;
    }
}

/// Opens a socket as a proxy does; returns its status.
async fn upgrade(server: &Server, client: &str) -> (u16, Option<Value>, tokio::net::TcpStream) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = flood::connect(address(server), FLOODER).await.unwrap();
    let head = format!(
        "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         X-Forwarded-For: {client}\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut bytes = [0; 2048];
    let read = stream.read(&mut bytes).await.unwrap();
    let answer = String::from_utf8_lossy(&bytes[..read]).into_owned();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok());
    (status, body, stream)
}

#[tokio::test]
async fn behind_a_trusted_network_sockets_count_by_the_forwarded_address() {
    let server = setup()
        .with("NEXO_LIMITS__CONNECTIONS_PER_ADDRESS", "2")
        .with("NEXO_GATEWAY__TRUSTED_PROXIES", "127.0.0.0/8")
        .with("NEXO_GATEWAY__AUTH_TIMEOUT_MS", "60000")
        .start();
    let mut kept = Vec::new();
    for (client, expect) in [
        ("9.9.9.9", 101),
        ("9.9.9.9", 101),
        ("9.9.9.9", 429),
        ("2001:db8::1", 101),
        ("2001:db8::2", 101),
        ("2001:db8::3", 429),
        ("2001:db8:1::3", 101),
        ("::ffff:9.9.9.9", 429),
    ] {
        let (status, body, stream) = upgrade(&server, client).await;
        assert_eq!(status, expect, "{client}");
        if expect == 429 {
            assert_eq!(body.unwrap()["reason"], "too_many_connections", "{client}");
        }
        kept.push(stream);
    }
}

#[tokio::test]
async fn a_server_with_too_few_descriptors_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let output = setup().after("ulimit -n 200").command(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("needs at least 256"), "{said}");
}
