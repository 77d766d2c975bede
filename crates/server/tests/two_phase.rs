//! Two-phase acknowledgement: accepted at once, saved soon, and nothing accepted is lost.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use nexo_sim::history::read_all;
use nexo_sim::process::Setup;
use nexo_sim::schema::assert_fits;
use nexo_sim::socket::{chat, seq};
use nexo_sim::{Http, MariaDb, Person, RedisServer, Socket, TestGroup};
use serde_json::{Value, json};

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).with("NEXO_TWO_PHASE__ENABLED", "true")
}

fn deliver_first(setup: Setup) -> Setup {
    setup.with("NEXO_TWO_PHASE__DELIVER_BEFORE_SAVED", "true")
}

async fn connect(server: &Http, person: &Person) -> Socket {
    let mut socket = Socket::open(&server.authority).await;
    socket.auth(&person.token).await;
    socket.until("RESEND_DONE").await;
    socket
}

async fn ack(socket: &mut Socket, kind: &str, client_id: &str) -> Value {
    socket.find(|it| it["ackType"] == kind && it["clientMsgId"] == client_id, kind).await
}

/// Waits until a message is there with its place, shown before or not.
async fn has_place(socket: &mut Socket, client_id: &str) {
    let is_it = |it: &Value| it["clientMsgId"] == client_id && !it["msgSeq"].is_null();
    socket.find(is_it, "a message with its place").await;
    let is_preview = |it: &Value| it["clientMsgId"] == client_id && it["preview"] == true;
    socket.forget(is_preview);
}

/// Blocks saving for as long as another transaction locks the conversations.
const CONVERSATIONS: &str = "SELECT id FROM conversations FOR UPDATE";

/// Whichever comes first, `accepted` or `saved`, has the ids that receivers see.
#[tokio::test(flavor = "multi_thread")]
async fn replaced_words_are_told_with_the_first_answer() {
    let words = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(words.path(), "darn\n").unwrap();
    let path = words.path().to_str().unwrap();
    let server = setup().nodes(0).with("NEXO_MESSAGES__WORDS_FILE", path).start();
    let [alice, _bob] = server.people(["alice", "bob"]).await;
    let mut a = connect(&server.http, &alice).await;
    a.burst((0..200).map(|number| chat("bob", &format!("c{number}"), "darn it"))).await;
    for number in 0..200 {
        let id = format!("c{number}");
        let first = a.find(|it| it["clientMsgId"] == *id, &id).await;
        assert_eq!(first["body"], "*** it", "{first}");
        if first["ackType"] == "accepted" {
            ack(&mut a, "saved", &id).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_app_adds_to_a_message_is_never_lost() {
    let server = deliver_first(setup()).start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let (mut a, mut b) = (connect(&server.http, &alice).await, connect(&server.http, &bob).await);
    let extra = json!({ "colour": "red" });
    let mut frame = chat("bob", "c1", "look");
    frame["extra"] = extra.clone();
    a.say(frame.clone()).await;
    ack(&mut a, "saved", "c1").await;
    let shown = b.find(|it| it["clientMsgId"] == "c1" && it["type"] == "SINGLE_CHAT", "it").await;
    assert_eq!(shown["extra"], extra, "{shown}");
    let path = "/msg/pull?conversation_id=si_alice_bob";
    let pulled = server.http.get(path, &bob.token).await;
    assert_eq!(pulled.data()["messages"][0]["extra"], extra);
    a.say(frame.clone()).await;
    ack(&mut a, "saved", "c1").await;
    frame["extra"] = json!({ "colour": "blue" });
    a.say(frame).await;
    let refused = a.find(|it| it["type"] == "ERROR", "a refusal").await;
    assert_eq!(refused["reason"], "client_msg_id_conflict");
}

#[tokio::test(flavor = "multi_thread")]
async fn accepted_comes_first_and_saved_follows() {
    let server = setup().nodes(0).start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let (mut a, mut b) = (connect(&server.http, &alice).await, connect(&server.http, &bob).await);
    for number in 1..=20 {
        let id = format!("c{number}");
        a.say(chat("bob", &id, "hello")).await;
        let accepted = a.next().await;
        let is_accepted = accepted["ackType"] == "accepted";
        if is_accepted {
            assert_eq!(accepted["clientMsgId"], id.as_str());
            assert_fits(&server.http, "ServerAckAccepted", &accepted).await;
            assert!(accepted["msgSeq"].is_null(), "no place yet: {accepted}");
        }
        let saved = if is_accepted { a.next().await } else { accepted.clone() };
        assert_eq!((&saved["ackType"], seq(&saved)), (&json!("saved"), number), "{saved}");
        assert_eq!(saved["serverMsgId"], accepted["serverMsgId"]);
        let pushed = b.next().await;
        assert_eq!((&pushed["type"], seq(&pushed)), (&json!("SINGLE_CHAT"), number), "{pushed}");
        assert!(pushed["preview"].is_null(), "it is not shown before it is saved");
        assert_eq!(pushed["serverMsgId"], saved["serverMsgId"]);
    }
    // A retry of what is saved is told so at once, also on another socket.
    let mut again = connect(&server.http, &alice).await;
    for socket in [&mut a, &mut again] {
        socket.say(chat("bob", "c7", "hello")).await;
        let answer = socket.next().await;
        assert_eq!((&answer["ackType"], seq(&answer)), (&json!("saved"), 7), "{answer}");
        socket.say(chat("bob", "c7", "other words")).await;
        assert_eq!(socket.next().await["reason"], "client_msg_id_conflict");
    }
    b.expect_silence().await;
    // What is wrong is refused before it is accepted.
    a.say(chat("nobody", "c21", "hello")).await;
    assert_eq!(a.next().await["reason"], "user_not_found");
    assert_eq!(read_all(&server.http, &bob, "alice").await.len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_is_settled_by_its_place_and_moves_no_cursor() {
    let database = MariaDb::start();
    database.create_database("nexo");
    let redis = RedisServer::start();
    let setup = deliver_first(setup()).nodes(2).with_services(&database.url("nexo"), &redis.url());
    let server = setup.start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let mut a = connect(server.node(0), &alice).await;
    let mut phone = connect(server.node(1), &alice).await;
    let mut b = connect(server.node(1), &bob).await;
    a.send("bob", "c1", "the first makes the conversation").await;
    for socket in [&mut b, &mut phone] {
        has_place(socket, "c1").await;
    }
    let holder = database.lock_rows("nexo", CONVERSATIONS);
    a.say(chat("bob", "c2", "early words")).await;
    ack(&mut a, "accepted", "c2").await;
    for socket in [&mut b, &mut phone] {
        let shown = socket.find(|frame| frame["clientMsgId"] == "c2", "a preview").await;
        assert_eq!((&shown["preview"], &shown["body"]), (&json!(true), &json!("early words")));
        assert!(shown["msgSeq"].is_null(), "{shown}");
        assert_fits(&server.http, "ServerSingleChat", &shown).await;
        if shown["from"] == "alice" {
            socket.ack("read", "alice", &shown).await;
            assert_eq!(socket.expect("ERROR").await["reason"], "message_not_found");
        }
    }
    let state = "/conversation/info?conversation_id=si_alice_bob";
    let before = server.http.get(state, &bob.token).await.data().clone();
    assert_eq!(before["max_seq"], 1, "{before}");
    assert_eq!(before["unread_count"], 1, "{before}");
    // The same again while it is on its way, with the same words and with others.
    a.say(chat("bob", "c2", "early words")).await;
    ack(&mut a, "accepted", "c2").await;
    a.say(chat("bob", "c2", "other words")).await;
    assert_eq!(a.expect("ERROR").await["reason"], "client_msg_id_conflict");
    drop(holder);
    for socket in [&mut a, &mut b, &mut phone] {
        let saved =
            socket.find(|it| it["ackType"] == "saved" && it["clientMsgId"] == "c2", "saved");
        let saved = saved.await;
        assert_eq!((seq(&saved), &saved["from"]), (2, &json!("alice")));
    }
    a.forget(|frame| frame["ackType"] == "accepted");
    for socket in [&mut a, &mut b, &mut phone] {
        socket.expect_silence().await;
    }
    let after = server.http.get(state, &bob.token).await.data().clone();
    assert_eq!((&after["max_seq"], &after["unread_count"]), (&json!(2), &json!(2)), "{after}");
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_use_it_where_the_operator_says_so_and_are_never_shown_early() {
    let server = deliver_first(setup()).nodes(0).with("NEXO_TWO_PHASE__GROUPS", "true").start();
    let [alice, bob, carol] = server.people(["alice", "bob", "carol"]).await;
    let group = TestGroup::new(&server.http, &alice, &[&bob]).await;
    let (mut a, mut b) = (connect(&server.http, &alice).await, connect(&server.http, &bob).await);
    let mut c = connect(&server.http, &carol).await;
    for number in 1..=20 {
        a.say(group.chat(&format!("g{number}"), "to all")).await;
        assert_eq!(seq(&a.expect_ack("saved").await), number);
        let heard = b.next().await;
        assert_eq!((&heard["type"], seq(&heard)), (&json!("GROUP_CHAT"), number), "{heard}");
    }
    // Whoever may not speak is not accepted.
    c.say(group.chat("c1", "let me in")).await;
    assert_eq!(c.next().await["reason"], "not_group_member");
    b.expect_silence().await;
}

/// Other dialects, and HTTP, have no word for it: they are answered when it is saved.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_no_word_for_it_hears_of_it_when_it_is_saved() {
    let server = deliver_first(setup()).nodes(0).start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let query =
        format!("?token={}&send_id=bob&platform_id=5&operation_id=o&sdk_type=js", bob.token);
    let mut b = Socket::open_with(&server.http.authority, &query).await;
    let mut a = connect(&server.http, &alice).await;
    a.send("bob", "c1", "hello").await;
    let pushed = b.next().await;
    assert_eq!(pushed["req_identifier"], 2001, "{pushed}");
    assert_eq!(pushed["data"]["msgs"]["si_alice_bob"][0]["seq"], 1, "{pushed}");
    let said = json!({
        "client_msg_id": "h1", "session_type": 1, "recv_id": "alice", "msg_type": 1,
        "content": { "text": "over http" },
    });
    let sent = server.http.post("/msg/send", &bob.token, said).await.data().clone();
    assert_eq!(sent["seq"], 2, "{sent}");
    let heard = a.expect("SINGLE_CHAT").await;
    assert_eq!((seq(&heard), &heard["preview"]), (2, &Value::Null));
}

/// A full backlog refuses further messages.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_saved_in_time_is_refused() {
    let database = MariaDb::start();
    database.create_database("nexo");
    let setup = setup().nodes(0).with("NEXO_STORE", &database.url("nexo"));
    let setup =
        setup.with("NEXO_TWO_PHASE__BACKLOG_MAX", "100").with("NEXO_TWO_PHASE__SHARDS", "1");
    let server = setup.start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let mut a = connect(&server.http, &alice).await;
    a.send("bob", "c0", "the first").await;
    a.expect_ack("accepted").await;
    let holder = database.lock_rows("nexo", CONVERSATIONS);
    a.burst((1..=150).map(|number| chat("bob", &format!("c{number}"), "words"))).await;
    let mut accepted = 0;
    for _ in 0..150 {
        let frame = a.next().await;
        match frame["type"].as_str() {
            Some("ACK") => accepted += 1,
            _ => assert_eq!(frame["reason"], "server_busy", "{frame}"),
        }
    }
    assert_eq!(accepted, 100, "as many as may wait");
    drop(holder);
    for number in 2..=101 {
        assert_eq!(seq(&a.expect_ack("saved").await), number);
    }
    let stored = read_all(&server.http, &bob, "alice").await;
    let ids: Vec<&str> = stored.iter().map(|it| it["clientMsgId"].as_str().unwrap()).collect();
    assert_eq!(ids, (0..=100).map(|number| format!("c{number}")).collect::<Vec<_>>());
    drop(server);
}

/// The end of a server without Redis saves what it accepted.
#[tokio::test(flavor = "multi_thread")]
async fn a_clean_end_saves_what_was_accepted() {
    let mut server = setup().nodes(0).start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let mut a = connect(&server.http, &alice).await;
    a.burst((1..=500).map(|number| chat("bob", &format!("c{number}"), "words"))).await;
    let mut sent = Vec::new();
    for number in 1..=500 {
        let id = format!("c{number}");
        let answer = a.find(|it| it["clientMsgId"] == id.as_str(), "an answer").await;
        assert_eq!(answer["type"], "ACK", "{answer}");
        sent.push(id);
    }
    assert_eq!(server.stop(), Some(0));
    server.start_again(|setup| setup);
    let stored = read_all(&server.http, &bob, "alice").await;
    let ids: Vec<&str> = stored.iter().map(|it| it["clientMsgId"].as_str().unwrap()).collect();
    assert_eq!(ids, sent, "all of what was accepted, in order");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_both_consumer_groups_have_not_finished_can_be_watched() {
    let server = deliver_first(setup()).nodes(0).with("NEXO_TWO_PHASE__SHARDS", "2").start();
    let token = std::fs::read_to_string(server.data().join("metrics.token")).unwrap();
    let mut page = String::new();
    for _ in 0..200 {
        page = server.http.get("/metrics", token.trim()).await.text;
        if page.contains("nexo_two_phase_pending{shard=\"1\"") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    for shard in ["0", "1"] {
        for group in ["save", "deliver"] {
            let line = format!("nexo_two_phase_pending{{shard=\"{shard}\",group=\"{group}\"}} 0");
            assert!(page.contains(&line), "{line} is not in\n{page}");
        }
    }
}
