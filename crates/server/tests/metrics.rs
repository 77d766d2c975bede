//! What operators see: a page of metrics that any Prometheus can read, and a trail of what became of
//! messages.

#![allow(clippy::unwrap_used, reason = "only tests are here")]
#![allow(clippy::float_cmp, reason = "counts are whole numbers")]

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use nexo_sim::process::{Server, Setup};
use nexo_sim::socket::chat;
use nexo_sim::{ClientDialect, DialectClient, Recipient, TestGroup};
use serde_json::{Value, json};

/// One node: what is counted is counted where it happens.
fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(0)
}

/// A family of the page.
#[derive(Default)]
struct Family {
    help: String,
    kind: String,
    /// Name, labels as they stand, value.
    samples: Vec<(String, String, f64)>,
}

struct Page(BTreeMap<String, Family>);

impl Page {
    async fn of(server: &Server) -> Self {
        let token = std::fs::read_to_string(server.data().join("metrics.token")).unwrap();
        let answer = server.http.get("/metrics", token.trim()).await;
        assert_eq!(answer.status, 200);
        Self::parse(&answer.text)
    }

    /// Reads the text format strictly: HELP, then TYPE, then the samples of each family together.
    fn parse(text: &str) -> Self {
        let mut families: BTreeMap<String, Family> = BTreeMap::new();
        let mut current: Option<String> = None;
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect("a name and words");
                assert!(!help.trim().is_empty(), "{line}");
                let family = Family { help: help.to_owned(), ..Family::default() };
                assert!(families.insert(name.to_owned(), family).is_none(), "{name} twice");
                current = Some(name.to_owned());
                continue;
            }
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a name and a kind");
                assert_eq!(current.as_deref(), Some(name), "HELP comes before TYPE");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                let family = families.get_mut(name).unwrap();
                assert!(family.kind.is_empty() && family.samples.is_empty(), "{line}");
                kind.clone_into(&mut family.kind);
                continue;
            }
            assert!(!line.starts_with('#'), "{line}");
            let (place, value) = line.rsplit_once(' ').expect("a value");
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
            let (name, labels) = match place.split_once('{') {
                Some((name, labels)) => (name, labels.strip_suffix('}').expect("closed")),
                None => (place, ""),
            };
            let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(name.chars().all(is_name), "{name}");
            let family = current.as_ref().expect("a family before its samples");
            let suffix = name.strip_prefix(family.as_str());
            let suffix = suffix.unwrap_or_else(|| panic!("{name} is among those of {family}"));
            let known = families.get_mut(family).unwrap();
            let suffixes: &[&str] = match known.kind.as_str() {
                "histogram" => &["_bucket", "_sum", "_count"],
                "" => panic!("{family} has no TYPE"),
                _ => &[""],
            };
            assert!(suffixes.contains(&suffix), "{name} of a {}", known.kind);
            known.samples.push((name.to_owned(), labels.to_owned(), value));
        }
        for (name, family) in &families {
            assert!(!family.kind.is_empty(), "{name} has no TYPE");
            assert!(!family.samples.is_empty(), "{name} has no value");
            let count = |suffix: &str, fits: &str| {
                let full = format!("{name}{suffix}");
                let of =
                    |(it, labels, _): &&(String, String, f64)| *it == full && labels.contains(fits);
                family.samples.iter().filter(of).count()
            };
            if family.kind == "histogram" {
                assert_eq!(count("_bucket", "le=\"+Inf\""), count("_count", ""), "{name}");
                assert_eq!(count("_sum", ""), count("_count", ""), "{name}");
            }
        }
        Self(families)
    }

    /// The value of a sample that has these labels; zero if there is none.
    fn value(&self, name: &str, labels: &[&str]) -> f64 {
        let suffixes = ["_count", "_sum"];
        let base = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix));
        let family = self.0.get(name).or_else(|| self.0.get(base?));
        let samples = family.map_or(&[][..], |family| &family.samples);
        let found = samples
            .iter()
            .find(|(it, known, _)| it == name && labels.iter().all(|label| known.contains(label)));
        found.map_or(0.0, |(_, _, value)| *value)
    }
}

async fn wait_for(mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..100 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never came");
}

#[tokio::test]
async fn every_metric_says_what_it_is() {
    let server = setup()
        .with("NEXO_TWO_PHASE__ENABLED", "true")
        .with("NEXO_TWO_PHASE__DELIVER_BEFORE_SAVED", "true")
        .start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    a.send("bob", "c1", "hi").await;
    b.expect("SINGLE_CHAT").await;
    server.http.get("/no/such/path", "").await;
    drop(b);
    let page = Page::of(&server).await;
    assert!(page.0.len() > 30, "{}", page.0.len());
    for (name, family) in &page.0 {
        assert_eq!(name.ends_with("_total"), family.kind == "counter", "{name}");
        assert!(family.help.len() > 10, "{name}: {}", family.help);
    }
    let info = server.http.get("/server/info", "").await.data()["version"].clone();
    let version = format!("version=\"{}\"", info.as_str().unwrap());
    assert_eq!(page.value("nexo_build_info", &[&version]), 1.0, "the version that it says");
    for name in [
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_max_fds",
        "process_start_time_seconds",
        "nexo_data_disk_free_bytes",
        "nexo_data_disk_size_bytes",
        "nexo_store_log_bytes",
    ] {
        assert!(page.value(name, &[]) > 0.0, "{name}");
    }
    let open = page.value("process_open_fds", &[]);
    let (_c, _) = server.connect(&bob).await;
    let page = Page::of(&server).await;
    assert!(page.value("process_open_fds", &[]) > open - 2.0);
    assert!(
        page.value("nexo_data_disk_free_bytes", &[]) < page.value("nexo_data_disk_size_bytes", &[])
    );
}

#[tokio::test]
async fn acknowledgements_are_counted_by_type_and_timed() {
    let server = setup().start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    a.send("bob", "c1", "hi").await;
    let push = b.expect("SINGLE_CHAT").await;
    tokio::time::sleep(Duration::from_millis(120)).await;
    b.ack("delivered", "alice", &push).await;
    a.expect_ack("delivered").await;
    tokio::time::sleep(Duration::from_millis(250)).await;
    b.ack("read", "alice", &push).await;
    a.expect_ack("read").await;
    b.ack("read", "alice", &push).await; // again
    b.ack("delivered", "alice", &json!({ "serverMsgId": "nonsense" })).await; // refused
    b.expect("ERROR").await;
    // Over HTTP.
    a.send("bob", "c2", "again").await;
    let body = json!({ "conversation_id": "si_alice_bob", "read_seq": 2 });
    server.http.post("/conversation/mark_read", &bob.token, body).await.data();
    a.expect_ack("read").await;
    let recalled = json!({ "server_msg_id": push["serverMsgId"] });
    let answer = server.http.post("/msg/recall", &alice.token, recalled).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let page = Page::of(&server).await;
    let acks = |kind: &str, result: &str| {
        let (kind, result) = (format!("type=\"{kind}\""), format!("result=\"{result}\""));
        page.value("nexo_acks_total", &[&kind, &result])
    };
    assert_eq!((acks("saved", "ok"), acks("delivered", "ok"), acks("read", "ok")), (2.0, 1.0, 2.0));
    assert_eq!((acks("read", "repeated"), acks("revoked", "ok")), (1.0, 1.0));
    let single = &["chat_type=\"single\""][..];
    assert_eq!(page.value("nexo_saved_to_delivered_seconds_count", single), 1.0);
    let took = page.value("nexo_saved_to_delivered_seconds_sum", single);
    assert!((0.11..10.0).contains(&took), "{took}");
    assert_eq!(page.value("nexo_delivered_to_read_seconds_count", single), 1.0);
    let took = page.value("nexo_delivered_to_read_seconds_sum", single);
    assert!((0.24..10.0).contains(&took), "{took}");
}

#[tokio::test]
async fn acknowledgements_in_groups_are_timed_apart() {
    let server = setup().start();
    let [alice, bob, carol] = server.people(["alice", "bob", "carol"]).await;
    let group = TestGroup::new(&server.http, &alice, &[&bob, &carol]).await;
    let (mut a, _) = server.connect(&alice).await;
    let mut readers = [server.connect(&bob).await.0, server.connect(&carol).await.0];
    group.say(&mut a, "c1", "hi").await;
    for reader in &mut readers {
        let push = reader.expect("GROUP_CHAT").await;
        for kind in ["delivered", "read"] {
            tokio::time::sleep(Duration::from_millis(120)).await;
            let id = &push["serverMsgId"];
            reader.say(json!({ "type": "ACK", "ackType": kind, "serverMsgId": id })).await;
        }
        reader.say(json!({ "type": "PING" })).await;
        reader.until("PONG").await;
    }
    let page = Page::of(&server).await;
    for name in ["nexo_saved_to_delivered_seconds", "nexo_delivered_to_read_seconds"] {
        let value = |part: &str, kind: &str| {
            page.value(&format!("{name}_{part}"), &[&format!("chat_type=\"{kind}\"")])
        };
        assert_eq!((value("count", "group"), value("count", "single")), (2.0, 0.0), "{name}");
        assert!((0.22..20.0).contains(&value("sum", "group")), "{name}");
    }
}

/// A server that accepts messages first, and one that saves them at once, count and log the same.
#[tokio::test]
async fn an_accepted_message_is_counted_and_logged_when_it_is_saved() {
    let level = "info,nexo::ack=debug,nexo::perf=debug";
    let mut server = setup()
        .with("NEXO_TWO_PHASE__ENABLED", "true")
        .with("NEXO_TWO_PHASE__GROUPS", "true")
        .with("NEXO_LOG__LEVEL", level)
        .start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let group = TestGroup::new(&server.http, &alice, &[&bob]).await;
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    let to_bob = |number: u64| chat("bob", &format!("c{number}"), "hi");
    for number in 1..=3 {
        a.say(to_bob(number)).await;
        a.expect_ack("saved").await;
    }
    a.say(group.chat("g1", "hi")).await;
    a.expect_ack("saved").await;
    // Bob has not received what Alice said: his own message moves his read cursor alone.
    b.say(chat("alice", "b1", "hi")).await;
    b.expect_ack("saved").await;
    let page = Page::of(&server).await;
    assert_eq!(page.value("nexo_acks_total", &["type=\"saved\"", "result=\"ok\""]), 5.0);
    assert_eq!(server.stop(), Some(0));
    let perf = lines(&server, "nexo::perf");
    for (what, count) in [("ws_perf single_chat", 4), ("ws_perf group_chat", 1)] {
        let saved: Vec<&Value> = perf.iter().filter(|it| it["message"] == what).collect();
        assert_eq!(saved.len(), count, "{perf:#?}");
        for line in saved {
            let ms = |name: &str| line[name].as_f64().unwrap_or_else(|| panic!("{name}: {line}"));
            assert!((ms("checkMs") + ms("saveMs") - ms("ackMs")).abs() < 0.001, "{line}");
        }
    }
    let acks = lines(&server, "nexo::ack");
    let moves = |user: &str, chat: &str| -> Vec<[u64; 4]> {
        let is_it = |it: &&Value| it["ackUserId"] == user && it["chatId"] == chat;
        let cursors = ["prevCursor", "newCursor", "prevDelivered", "newDelivered"];
        let of = |it: &Value| cursors.map(|name| it[name].as_u64().unwrap());
        acks.iter().filter(is_it).map(of).collect()
    };
    assert_eq!(moves("alice", "si_alice_bob"), [[0, 1, 0, 1], [1, 2, 1, 2], [2, 3, 2, 3]]);
    assert_eq!(moves("alice", &group.conversation()), [[0, 1, 0, 1]]);
    assert_eq!(moves("bob", "si_alice_bob"), [[0, 4, 0, 0]]);
    for line in &acks {
        assert_eq!((&line["ackType"], &line["result"]), (&json!("Read"), &json!("ok")), "{line}");
        assert_eq!(line["instanceId"].as_str().map(str::len), Some(32), "{line}");
        assert!(line["serverMsgId"].is_string() && line.get("deviceId").is_none(), "{line}");
        assert_eq!(line["fromUserId"], line["ackUserId"], "{line}");
    }
}

#[tokio::test]
async fn refusals_are_counted_by_reason_and_requests_by_status() {
    let server = setup().start();
    let alice = server.person("alice").await;
    let (mut a, _) = server.connect(&alice).await;
    a.send("nobody", "c1", "hi").await;
    a.send("nobody", "c2", "hi").await;
    for dialect in [ClientDialect::Numbered, ClientDialect::Dotted] {
        let mut client = DialectClient::connect(&server.http, &alice, dialect).await;
        let refused = client.say(&Recipient::User("nobody".into()), "c3", "hi").await;
        assert_eq!(refused, Err("user_not_found".into()));
    }
    let mut stranger = server.socket().await;
    stranger.say(json!({ "type": "AUTH", "token": "nonsense" })).await;
    stranger.expect_end().await;
    for _ in 0..3 {
        server.http.get("/user/info?user_id=nobody", &alice.token).await;
    }
    server.http.get("/user/info", &alice.token).await;
    server.http.get("/user/info", "").await;
    server.http.get("/no/such/path", "").await;
    let page = Page::of(&server).await;
    let refused = |via: &str, reason: &str| {
        let (via, reason) = (format!("via=\"{via}\""), format!("reason=\"{reason}\""));
        page.value("nexo_refusals_total", &[&via, &reason])
    };
    assert_eq!(refused("typed", "user_not_found"), 2.0);
    assert_eq!(refused("numbered", "user_not_found"), 1.0);
    assert_eq!(refused("dotted", "user_not_found"), 1.0);
    assert_eq!(refused("typed", "invalid_token"), 1.0);
    assert_eq!((refused("http", "user_not_found"), refused("http", "missing_token")), (3.0, 1.0));
    assert_eq!(refused("http", "not_found"), 1.0);
    let requests = |route: &str, status: &str| {
        let (route, status) = (format!("route=\"{route}\""), format!("status=\"{status}\""));
        page.value("nexo_http_requests_total", &[&route, &status])
    };
    assert_eq!((requests("/user/info", "200"), requests("/user/info", "404")), (1.0, 3.0));
    assert_eq!((requests("/user/info", "401"), requests("other", "404")), (1.0, 1.0));
}

/// The lines of a part of the log, as far as they are written.
fn lines(server: &Server, target: &str) -> Vec<Value> {
    let log = server.log();
    let all = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    all.filter(|line| line["target"] == target).collect()
}

#[tokio::test]
async fn every_move_of_a_cursor_leaves_a_line() {
    let level = "info,nexo::ack=debug,nexo::resend=debug,nexo::push=debug";
    let mut server = setup().with("NEXO_LOG__LEVEL", level).start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let mut a = DialectClient::connect(&server.http, &alice, ClientDialect::Typed).await;
    let to = |id: &str| Recipient::User(id.to_owned());
    // In every dialect, then over HTTP.
    for (number, dialect) in ClientDialect::ALL.into_iter().enumerate() {
        let mut b = DialectClient::connect(&server.http, &bob, dialect).await;
        a.say(&to("bob"), &format!("c{number}"), "xyzzy").await.unwrap();
        let said = b.hear_message().await;
        b.read(&said, &to("alice")).await;
        let seq = said.seq;
        wait_for(async || {
            lines(&server, "nexo::ack").iter().any(|line| {
                line["newCursor"] == seq
                    && line["ackUserId"] == "bob"
                    && line["ackType"] == "Read"
                    && line["chatId"] == "si_alice_bob"
            })
        })
        .await;
    }
    let last = a.say(&to("bob"), "last", "xyzzy").await.unwrap();
    let body = json!({ "conversation_id": "si_alice_bob", "read_seq": last.seq });
    server.http.post("/conversation/mark_read", &bob.token, body).await.data();
    // What was missed is brought again.
    a.say(&to("bob"), "later", "xyzzy").await.unwrap();
    let (b, resent) = server.connect(&bob).await;
    assert_eq!(resent.len(), 1, "{resent:?}");
    drop(b);
    assert_eq!(server.stop(), Some(0));
    let acks = lines(&server, "nexo::ack");
    // Bob's over HTTP, and Alice's by saying it.
    for who in ["bob", "alice"] {
        let is_it = |line: &&Value| line["newCursor"] == last.seq && line["ackUserId"] == who;
        let moves: Vec<&Value> = acks.iter().filter(is_it).collect();
        assert_eq!(moves.len(), 1, "{acks:#?}");
        assert_eq!(moves[0]["serverMsgId"], last.id.as_str());
        assert_eq!(moves[0]["prevCursor"], last.seq - 1);
        // Both cursors move together here: Bob reads what he had not acknowledged as delivered.
        assert_eq!(moves[0]["prevDelivered"], last.seq - 1, "{}", moves[0]);
        assert_eq!(moves[0]["newDelivered"], last.seq, "{}", moves[0]);
    }
    let resends = lines(&server, "nexo::resend");
    let again = resends
        .iter()
        .find(|line| line["chatId"] == "si_alice_bob" && line["newCursor"] == last.seq + 1);
    let again = again.unwrap_or_else(|| panic!("{resends:#?}"));
    assert_eq!((&again["userId"], &again["prevCursor"]), (&json!("bob"), &json!(last.seq)));
    let mut instances = HashMap::new();
    for line in acks.iter().chain(&resends) {
        *instances.entry(line["instanceId"].as_str().unwrap_or_default()).or_insert(0) += 1;
        for field in ["userId", "ackUserId"] {
            assert!(line.get(field).is_none_or(Value::is_string), "{line}");
        }
    }
    assert_eq!(instances.len(), 1, "one process, one name: {instances:?}");
    assert!(instances.keys().all(|name| name.len() == 32), "{instances:?}");
    assert!(!server.log().contains("xyzzy"), "never text");
}

#[tokio::test]
async fn a_connect_that_misses_nothing_is_no_news() {
    let mut server = setup().start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let (mut a, _) = server.connect(&alice).await;
    for _ in 0..3 {
        drop(server.connect(&bob).await);
    }
    a.send("bob", "c1", "hi").await;
    let (b, resent) = server.connect(&bob).await;
    assert_eq!(resent.len(), 1);
    drop((a, b));
    assert_eq!(server.stop(), Some(0));
    let told = lines(&server, "nexo::resend");
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!((&told[0]["userId"], &told[0]["sent"]), (&json!("bob"), &json!(1)));
}
