//! Settings of a private conversation that are chosen before its first message: for somebody met in a
//! group, who has not written yet and maybe shall not be heard.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::time::Duration;

use nexo_sim::dialect_client::ClientEvent;
use nexo_sim::process::Setup;
use nexo_sim::{ClientDialect, DialectClient, Http, HttpResponse, Person, Recipient, Server};
use serde_json::{Value, json};

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo"))
}

async fn choose(http: &Http, by: &Person, conversation: &str, change: Value) -> HttpResponse {
    let path = format!("/conversation/update?conversation_id={conversation}");
    http.put(&path, &by.token, change).await
}

async fn info(server: &Server, by: &Person, conversation: &str) -> HttpResponse {
    let path = format!("/conversation/info?conversation_id={conversation}");
    server.http.get(&path, &by.token).await
}

/// The conversations in all lists, which are the same everywhere.
async fn listed(server: &Server, by: &Person) -> Vec<String> {
    let get = async |path: &str| server.http.get(path, &by.token).await.data().clone();
    let ids = |lines: &Value, field: &str| -> Vec<String> {
        let lines = lines.as_array().unwrap();
        lines.iter().map(|line| line[field].as_str().unwrap().to_owned()).collect()
    };
    let found = ids(&get("/conversation/list").await["list"], "conversation_id");
    assert_eq!(ids(&get("/conversation/all").await["list"], "conversation_id"), found);
    assert_eq!(ids(&get("/conversation/heads").await["heads"], "conversation_id"), found);
    assert_eq!(ids(&get("/single-chat/conversation/cursor").await, "singleChatId"), found);
    found
}

#[tokio::test]
async fn somebody_who_has_not_written_can_be_blocked_and_it_lasts() {
    let mut server = setup().start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let phone = Person::sign_in(&server.http, "alice", 2).await;
    let (mut a, _) = server.connect(&alice).await;
    let (mut p, _) = server.connect(&phone).await;
    let (mut b, _) = server.connect(&bob).await;
    let before = info(&server, &alice, "si_alice_bob").await;
    assert_eq!(before.data()["recv_msg_opt"], 0, "what would be changed");
    let block = json!({ "recv_msg_opt": 2, "is_pinned": true, "extra": "mine" });
    let chosen = choose(&server.http, &alice, "si_alice_bob", block).await;
    let now = json!({ "conversation_id": "si_alice_bob", "recv_msg_opt": 2, "is_pinned": true,
        "extra": "mine" });
    assert_eq!(chosen.data(), &now);
    for socket in [&mut a, &mut p] {
        let frame = socket.expect("CONVERSATION_SETTINGS").await;
        assert_eq!(
            (&frame["conversationId"], &frame["receive"]),
            (&json!("si_alice_bob"), &json!("blocked"))
        );
    }
    // It is in no list of either, and nothing else can be asked of it.
    for who in [&alice, &bob] {
        assert_eq!(listed(&server, who).await, [] as [&str; 0]);
        let total = server.http.get("/conversation/unread_total", &who.token).await;
        assert_eq!(total.data()["unread_count"], 0);
        for path in ["/msg/pull", "/msg/max_seq", "/conversation/max_read_seq"] {
            let path = format!("{path}?conversation_id=si_alice_bob");
            let refused = server.http.get(&path, &who.token).await;
            assert_eq!(refused.reason(), "conversation_not_found", "{path}");
        }
        for path in ["/conversation/mark_read", "/conversation/hide"] {
            let mut body = json!({ "conversation_id": "si_alice_bob" });
            if path.ends_with("read") {
                body["read_seq"] = json!(1);
            }
            let refused = server.http.post(path, &who.token, body).await;
            assert_eq!(refused.reason(), "conversation_not_found", "{path}");
        }
    }
    let show = json!({ "conversation_id": "si_alice_bob", "hidden": false });
    let refused = server.http.post("/conversation/hide", &bob.token, show).await;
    assert_eq!(refused.reason(), "conversation_not_found");
    let kept = info(&server, &alice, "si_alice_bob").await;
    let line = kept.data();
    assert_eq!((&line["recv_msg_opt"], &line["is_pinned"]), (&json!(2), &json!(true)));
    assert_eq!((&line["max_seq"], &line["unread_count"]), (&json!(0), &json!(0)));
    // A device that was offline asks for it, so that it is silent about the first message.
    let path = "/conversation/heads?include_empty=true";
    let heads = server.http.get(path, &phone.token).await.data()["heads"].clone();
    let head = &heads[0];
    assert_eq!((heads.as_array().unwrap().len(), &head["max_seq"]), (1, &json!(0)), "{heads}");
    assert_eq!((&head["recv_msg_opt"], &head["is_pinned"]), (&json!(2), &json!(true)));
    assert_eq!(server.http.get(path, &bob.token).await.data()["heads"], json!([]));
    assert_eq!(info(&server, &bob, "si_alice_bob").await.data()["recv_msg_opt"], 0);
    b.expect_silence().await; // the other hears nothing of it

    server.kill();
    server.start_again(|setup| setup);
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    b.send("alice", "c1", "hello").await;
    a.expect_silence().await;
    assert_eq!(listed(&server, &alice).await, ["si_alice_bob"], "from the first message on");
    let (_again, missed) = server.connect(&alice).await;
    assert_eq!(missed, [] as [Value; 0], "nor brought later");
    let line = info(&server, &alice, "si_alice_bob").await.data().clone();
    assert_eq!((&line["recv_msg_opt"], &line["extra"]), (&json!(2), &json!("mine")));
    assert_eq!((&line["max_seq"], &line["unread_count"]), (&json!(1), &json!(1)));
    choose(&server.http, &alice, "si_alice_bob", json!({ "recv_msg_opt": 0 })).await.data();
    b.send("alice", "c2", "and now?").await;
    assert_eq!(a.expect("SINGLE_CHAT").await["body"], "and now?");
}

#[tokio::test]
async fn choosing_for_a_stranger_shows_nothing_of_either() {
    let server = setup().start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    for (who, option) in [(&alice, 1), (&bob, 0)] {
        let change = json!({ "recv_msg_opt": option });
        choose(&server.http, who, "si_alice_bob", change).await.data();
    }
    for socket in [&mut a, &mut b] {
        socket.expect("CONVERSATION_SETTINGS").await;
    }
    for (who, other) in [(&alice, "bob"), (&bob, "alice")] {
        let body = json!({ "user_ids": [other] });
        let seen = server.http.post("/user/get_users_online_status", &who.token, body).await;
        assert_eq!(seen.data()[0], json!({ "user_id": other, "status": 0 }), "as to a stranger");
    }
    a.say(json!({ "type": "TYPING", "to": "bob" })).await;
    assert_eq!(a.expect("ERROR").await["reason"], "conversation_not_found");
    let name = json!({ "nickname": "Alice L." });
    server.http.put("/user/update", &alice.token, name).await.data();
    assert_eq!(a.expect("USER_UPDATED").await["nickname"], "Alice L.");
    b.expect_silence().await;
}

#[tokio::test]
async fn only_for_whom_one_could_write_to() {
    let server = setup().start();
    let [alice, bob, carol] = server.people(["alice", "bob", "carol"]).await;
    let (mut a, _) = server.connect(&alice).await;
    for id in [
        "si_alice_nobody",
        "si_alice_alice",
        "si_alice_system",
        "si_Bob_alice",
        "si_bob_alice",
        "si_bob_carol",
        "sg_nowhere",
        "nonsense",
    ] {
        let refused = choose(&server.http, &alice, id, json!({ "recv_msg_opt": 2 })).await;
        assert_eq!((refused.status, refused.reason()), (404, "conversation_not_found"), "{id}");
        let refused = info(&server, &alice, id).await;
        assert_eq!((refused.status, refused.reason()), (404, "conversation_not_found"), "{id}");
    }
    a.expect_silence().await;
    // The system writes first: then there is a conversation like any other.
    let token = std::fs::read_to_string(server.data().join("system.token")).unwrap();
    let body = json!({ "recv_id": "alice", "session_type": 1, "client_msg_id": "s1", "msg_type": 1,
        "content": { "text": "welcome" } });
    server.http.post("/system/send", token.trim(), body).await.data();
    choose(&server.http, &alice, "si_alice_system", json!({ "recv_msg_opt": 1 })).await.data();
    for (who, other) in [(&bob, "si_bob_carol"), (&carol, "si_bob_carol")] {
        choose(&server.http, who, other, json!({ "is_pinned": true })).await.data();
    }
}

#[tokio::test]
async fn heads_come_in_full_pages_between_early_settings() {
    let server = setup().start();
    let alice = server.person("alice").await;
    let mut expect = Vec::new();
    for n in 0..9 {
        let peer = server.person(&format!("p{n}")).await;
        let id = format!("si_alice_p{n}");
        choose(&server.http, &alice, &id, json!({ "is_pinned": true })).await.data();
        if n % 4 == 3 {
            let (mut socket, _) = server.connect(&peer).await;
            socket.send("alice", "c", "hello").await;
            expect.push(id);
        }
    }
    for limit in 1..4 {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/conversation/heads?limit={limit}{cursor}");
            let page = server.http.get(&path, &alice.token).await.data().clone();
            let heads = page["heads"].as_array().unwrap();
            found.extend(heads.iter().map(|it| it["conversation_id"].as_str().unwrap().to_owned()));
            if page["has_more"] != true {
                break;
            }
            assert_eq!(heads.len(), limit);
            cursor = format!("&cursor={}", page["next_cursor"].as_str().unwrap());
        }
        assert_eq!(found, expect, "by {limit}");
    }
}

#[tokio::test]
async fn nothing_of_a_blocked_stranger_is_heard_in_any_dialect() {
    let server = setup().start();
    for dialect in ClientDialect::ALL {
        let name = format!("{dialect:?}").to_lowercase();
        let alice = server.person(&format!("a-{name}")).await;
        let [bob, carol] = [format!("b-{name}"), format!("c-{name}")];
        let [bob, carol] = server.people([&bob, &carol]).await;
        let conversation = format!("si_{}_{}", alice.id, bob.id);
        let mut a = DialectClient::connect(&server.http, &alice, dialect).await;
        choose(&server.http, &alice, &conversation, json!({ "recv_msg_opt": 2 })).await.data();
        let to = Recipient::User(alice.id.clone());
        let mut b = DialectClient::connect(&server.http, &bob, dialect).await;
        b.say(&to, "c1", "unwanted").await.unwrap();
        let mut c = DialectClient::connect(&server.http, &carol, dialect).await;
        c.say(&to, "c1", "wanted").await.unwrap();
        assert_eq!(a.hear_message().await.text, "wanted", "{dialect:?}");
        let is_message = |event: &ClientEvent| matches!(event, ClientEvent::Message(_));
        assert!(!a.has_received(is_message), "{dialect:?}");
        // By its id it is there to read.
        let seen = a.history(&conversation, &Recipient::User(bob.id.clone())).await;
        assert_eq!((seen.len(), seen[0].text.as_str()), (1, "unwanted"), "{dialect:?}");
    }
}

/// The dotted dialect has its own list, and commands that name a conversation by its user.
#[tokio::test]
async fn the_dotted_list_does_not_show_it() {
    let server = setup().start();
    let [alice, _bob] = server.people(["alice", "bob"]).await;
    choose(&server.http, &alice, "si_alice_bob", json!({ "is_pinned": true })).await.data();
    let mut socket = server.socket().await;
    let mut ask = async |cmd: &str, payload: Value| {
        socket.say(json!({ "cmd": cmd, "request_id": cmd, "payload": payload })).await;
        socket.find(|frame| frame["request_id"] == cmd, cmd).await
    };
    assert_eq!(ask("auth.validate_token", json!({ "token": alice.token })).await["code"], 0);
    let list = ask("chat.sync_conversations", json!({})).await;
    assert_eq!(list["payload"]["conversations"], json!([]), "{list}");
    let of_bob = json!({ "chat_id": "bob", "chat_type": 1 });
    for cmd in ["chat.hide_conversation", "chat.mark_read", "chat.get_history"] {
        let refused = ask(cmd, of_bob.clone()).await;
        assert_eq!(refused["code"], 306, "{cmd}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_knows_what_was_chosen_early() {
    let server = setup().nodes(2).start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let connect = async |node: usize, person: &Person| {
        let mut socket = nexo_sim::Socket::open(&server.node(node).authority).await;
        socket.auth(&person.token).await;
        socket.until("RESEND_DONE").await;
        socket
    };
    let mut early = connect(0, &alice).await;
    let block = json!({ "recv_msg_opt": 2 });
    choose(server.node(1), &alice, "si_alice_bob", block).await.data();
    early.expect("CONVERSATION_SETTINGS").await;
    let mut late = connect(0, &alice).await;
    let mut b = connect(1, &bob).await;
    b.send("alice", "c1", "hello").await;
    tokio::time::sleep(Duration::from_millis(500)).await; // two nodes
    for socket in [&mut early, &mut late] {
        socket.expect_silence().await;
    }
}
