//! Private messages: saved, pushed, delivered, read.

use nexo_sim::history::read_all;
use nexo_sim::process::Setup;
use nexo_sim::socket::{chat, seq};
use nexo_sim::{Person, Server};
use serde_json::{Value, json};

fn server() -> Server {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).start()
}

async fn head(server: &Server, person: &Person) -> Value {
    let answer = server.http.get("/conversation/heads", &person.token).await;
    answer.data()["heads"][0].clone()
}

#[tokio::test]
async fn a_message_is_saved_pushed_delivered_and_read() {
    let server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;

    let ack = a.send("bob", "c1", "Hello, Bob").await;
    assert_eq!((&ack["ackType"], &ack["msgSeq"]), (&json!("saved"), &json!("1")), "{ack}");
    let push = b.expect("SINGLE_CHAT").await;
    let expected = json!({
        "type": "SINGLE_CHAT", "from": "alice", "to": "bob", "conversationId": "si_alice_bob",
        "clientMsgId": "c1", "serverMsgId": ack["serverMsgId"], "msgSeq": "1", "msgType": "TEXT",
        "body": "Hello, Bob", "ts": ack["ts"],
    });
    assert_eq!(push, expected);

    b.ack("delivered", "alice", &push).await;
    let delivered = a.expect_ack("delivered").await;
    assert_eq!((&delivered["from"], &delivered["msgSeq"]), (&json!("bob"), &json!("1")));
    b.ack("ack_read", "alice", &push).await;
    let read = a.expect_ack("read").await;
    assert_eq!((&read["from"], &read["serverMsgId"]), (&json!("bob"), &ack["serverMsgId"]));
    let head = head(&server, &bob).await;
    assert_eq!((&head["read_seq"], &head["unread_count"]), (&json!(1), &json!(0)));
}

#[tokio::test]
async fn a_receipt_leaves_with_the_next_frame_or_alone_after_its_delay() {
    let setup = Setup::new(env!("CARGO_BIN_EXE_nexo")).with("NEXO_RECEIPTS__DELAY_MS", "1000");
    let server = setup.start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    a.send("bob", "c1", "one").await;
    let push = b.expect("SINGLE_CHAT").await;
    b.ack("delivered", "alice", &push).await;
    b.say(json!({ "type": "PING" })).await;
    b.expect("PONG").await; // now the server has handled the acknowledgement
    a.say(chat("bob", "c2", "two")).await;
    let frames = [a.next().await, a.next().await];
    let kinds = frames.each_ref().map(|frame| &frame["ackType"]);
    assert_eq!(kinds, [&json!("delivered"), &json!("saved")], "{frames:?}");

    let push = b.expect("SINGLE_CHAT").await;
    b.ack("ack_read", "alice", &push).await;
    a.expect_ack("read").await;
    // A socket that closes writes what still waits.
    let ack = a.send("bob", "c3", "three").await;
    b.ack("delivered", "alice", &ack).await;
    b.say(json!({ "type": "PING" })).await;
    b.expect("PONG").await;
    server.http.post("/auth/logout", &alice.token, json!({})).await;
    let (frames, _) = a.expect_end().await;
    assert!(frames.iter().any(|frame| frame["ackType"] == "delivered"), "{frames:?}");
}

#[tokio::test]
async fn the_sender_is_the_tokens_user_whatever_a_frame_claims() {
    let server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    let mut forged = chat("bob", "c1", "hi");
    for (field, value) in [("from", "carol"), ("serverMsgId", "X"), ("msgSeq", "99"), ("ts", "1")] {
        forged[field] = json!(value);
    }
    a.say(forged).await;
    let push = b.expect("SINGLE_CHAT").await;
    assert_eq!((&push["from"], seq(&push)), (&json!("alice"), 1));
    assert_ne!(push["serverMsgId"], "X");
}

#[tokio::test]
async fn a_pipelined_burst_keeps_its_order() {
    let server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    a.burst((1..=2000).map(|i| chat("bob", &format!("c{i}"), &format!("number {i}")))).await;
    for i in 1..=2000 {
        let ack = a.next().await;
        assert_eq!(ack["clientMsgId"], format!("c{i}"), "{ack}");
        assert_eq!(seq(&ack), i);
    }
    for i in 1..=2000 {
        let push = b.next().await;
        assert_eq!((seq(&push), &push["body"]), (i, &json!(format!("number {i}"))));
    }
}

#[tokio::test]
async fn cursors_only_move_forward_whatever_comes() {
    let server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let carol = server.person("carol").await;
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    let (mut c, _) = server.connect(&carol).await;
    let mut pushes = Vec::new();
    for i in 1..=5 {
        a.send("bob", &format!("c{i}"), "hi").await;
        pushes.push(b.expect("SINGLE_CHAT").await);
    }
    let other = a.send("carol", "c9", "for Carol").await;
    let at = async |delivered: u64, read: u64| {
        let head = head(&server, &bob).await;
        assert_eq!((&head["delivered_seq"], &head["read_seq"]), (&json!(delivered), &json!(read)));
    };

    b.ack("delivered", "alice", &pushes[3]).await;
    a.expect_ack("delivered").await;
    at(4, 0).await;
    for earlier in [0, 3, 1] {
        b.ack("delivered", "alice", &pushes[earlier]).await;
        b.ack("read", "alice", &pushes[0]).await;
    }
    b.expect_silence().await;
    at(4, 1).await;
    b.ack("read", "alice", &pushes[4]).await;
    b.expect_silence().await;
    at(5, 5).await;

    // Somebody else's message, a stranger, a wrong seq, an unknown id: answered, nothing changes.
    let refused = [
        (json!({ "serverMsgId": other["serverMsgId"], "to": "alice" }), "message_not_found"),
        (json!({ "serverMsgId": "A".repeat(26), "to": "alice" }), "message_not_found"),
        (json!({ "serverMsgId": "17", "to": "alice" }), "bad_server_msg_id"),
        (json!({ "serverMsgId": "", "to": "alice" }), "missing_server_msg_id"),
        (json!({ "serverMsgId": pushes[0]["serverMsgId"], "to": "carol" }), "ack_not_allowed"),
        (
            json!({ "serverMsgId": pushes[0]["serverMsgId"], "to": "alice", "msgSeq": "999" }),
            "ack_not_allowed",
        ),
        (
            json!({ "serverMsgId": pushes[0]["serverMsgId"], "to": "alice", "msgSeq": -1 }),
            "ack_not_allowed",
        ),
    ];
    for (mut frame, reason) in refused {
        frame["type"] = json!("ACK");
        frame["ackType"] = json!("read");
        b.say(frame.clone()).await;
        let error = b.expect("ERROR").await;
        assert_eq!(error["reason"], reason, "{frame} → {error}");
    }
    b.say(json!({ "type": "ACK", "ackType": "seen", "serverMsgId": "A" })).await;
    assert_eq!(b.expect("ERROR").await["reason"], "unknown_ack_type");
    c.ack("read", "alice", &pushes[0]).await;
    assert_eq!(c.expect("ERROR").await["reason"], "message_not_found");
    at(5, 5).await;
}

#[tokio::test]
async fn unread_never_counts_own_messages_and_follows_the_read_cursor() {
    let server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    for i in 0..3 {
        a.send("bob", &format!("a{i}"), "hi").await;
    }
    assert_eq!(head(&server, &bob).await["unread_count"], 3);
    assert_eq!(head(&server, &alice).await["unread_count"], 0);
    b.send("alice", "b1", "an answer reads what came before").await;
    assert_eq!(head(&server, &bob).await["unread_count"], 0);
    assert_eq!(head(&server, &alice).await["unread_count"], 1);
}

#[tokio::test]
async fn history_goes_back_and_forth_in_pages() {
    let server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    for i in 1..=50 {
        a.send("bob", &format!("c{i}"), &format!("n{i}")).await;
    }
    let all = read_all(&server.http, &bob, "alice").await;
    assert_eq!(all.iter().map(seq).collect::<Vec<_>>(), (1..=50).collect::<Vec<_>>());
    let page = "/single-chat/message/cursor?peerUserId=alice&limit=30";
    let first = server.http.get(page, &bob.token).await;
    let seqs = |answer: &nexo_sim::HttpResponse| -> Vec<u64> {
        answer.data().as_array().unwrap().iter().map(seq).collect()
    };
    assert_eq!(seqs(&first), (21..=50).rev().collect::<Vec<_>>());
    assert_eq!(first.body["has_more"], true);
    let second = server.http.get(&format!("{page}&lastSeq=21"), &bob.token).await;
    assert_eq!(seqs(&second), (1..=20).rev().collect::<Vec<_>>());
    assert_eq!(second.body["has_more"], false);
    // The exact end is not "more".
    let exact = "/single-chat/message/since?peerUserId=alice&limit=50";
    assert_eq!(server.http.get(exact, &bob.token).await.body["has_more"], false);
}

#[tokio::test]
async fn the_conversation_list_shows_the_latest_first_in_pages() {
    let server = server();
    let bob = server.person("bob").await;
    for name in ["alice", "carol", "dave"] {
        let person = server.person(name).await;
        let (mut socket, _) = server.connect(&person).await;
        socket.send("bob", "c1", &format!("from {name}")).await;
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    let path = "/single-chat/conversation/cursor?limit=2";
    let first = server.http.get(path, &bob.token).await;
    let lines = first.data().as_array().unwrap();
    let peers: Vec<_> = lines.iter().map(|line| line["peerUserId"].as_str().unwrap()).collect();
    assert_eq!((peers, &first.body["has_more"]), (vec!["dave", "carol"], &json!(true)));
    assert_eq!(lines[0]["lastMessage"]["content"], "from dave");
    assert_eq!(lines[0]["unreadCount"], 1);
    let (at, id) = (&lines[1]["updatedAt"], lines[1]["singleChatId"].as_str().unwrap());
    let next = format!("{path}&lastUpdatedAt={at}&lastId={id}");
    let second = server.http.get(&next, &bob.token).await;
    assert_eq!(second.data()[0]["peerUserId"], "alice");
    assert_eq!(second.body["has_more"], false);
    let half = server.http.get(&format!("{path}&lastUpdatedAt=1"), &bob.token).await;
    assert_eq!((half.status, half.reason()), (400, "invalid_param"));
}

#[tokio::test]
async fn a_stranger_reads_nothing() {
    let server = server();
    let (alice, _) = (server.person("alice").await, server.person("bob").await);
    let carol = server.person("carol").await;
    let (mut a, _) = server.connect(&alice).await;
    a.send("bob", "c1", "a secret").await;
    for peer in ["alice", "bob"] {
        for path in ["cursor", "since"] {
            let path = format!("/single-chat/message/{path}?peerUserId={peer}");
            let answer = server.http.get(&path, &carol.token).await;
            assert_eq!(answer.data(), &json!([]), "{path}");
        }
    }
    let heads = server.http.get("/conversation/heads", &carol.token).await;
    assert_eq!(heads.data()["heads"], json!([]));
}

#[tokio::test]
async fn words_of_the_list_are_replaced_and_the_sender_sees_it() {
    let list = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(list.path(), "darn\n").unwrap();
    let setup = Setup::new(env!("CARGO_BIN_EXE_nexo"));
    let path = list.path().to_str().unwrap();
    let mut server = setup.with("NEXO_MESSAGES__WORDS_FILE", path).start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    let ack = a.send("bob", "c1", "Darn, it rains").await;
    assert_eq!(ack["body"], "***, it rains");
    assert_eq!(b.expect("SINGLE_CHAT").await["body"], "***, it rains");
    assert!(a.send("bob", "c2", "it does").await.get("body").is_none(), "nothing was replaced");
    // A retry is known by what was sent, also when the list has changed meanwhile.
    std::fs::write(list.path(), "rains\n").unwrap();
    assert_eq!(server.stop(), Some(0));
    server.start_again(|setup| setup);
    let (mut a, _) = server.connect(&alice).await;
    let retry = a.send("bob", "c1", "Darn, it rains").await;
    assert_eq!((&retry["serverMsgId"], &retry["body"]), (&ack["serverMsgId"], &ack["body"]));
    let other = a.send("bob", "c1", "***, it rains").await;
    assert_eq!(other["reason"], "client_msg_id_conflict");
}

#[tokio::test]
async fn the_times_of_a_message_are_logged_if_that_is_wanted() {
    let times = async |level: &str| {
        let setup = Setup::new(env!("CARGO_BIN_EXE_nexo")).with("NEXO_LOG__LEVEL", level);
        let mut server = setup.start();
        let [alice, _bob] = server.people(["alice", "bob"]).await;
        let (mut a, _) = server.connect(&alice).await;
        a.send("bob", "c1", "hello").await;
        server.stop();
        let log = server.log();
        log.lines().filter(|line| line.contains("ws_perf")).map(str::to_owned).collect::<Vec<_>>()
    };
    let lines = times("info,nexo::perf=debug").await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    for word in ["ws_perf single_chat", "checkMs", "saveMs", "ackMs", "si_alice_bob"] {
        assert!(lines[0].contains(word), "{word} is not in {}", lines[0]);
    }
    assert!(times("info").await.is_empty());
}
