//! Sending, pulling and reading over the `snake_case` paths of HTTP.

use nexo_sim::process::Setup;
use nexo_sim::{HttpResponse, Person, Server};
use serde_json::{Value, json};

fn server() -> Server {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).start()
}

fn text(client_id: &str, to: &str, text: &str) -> Value {
    json!({ "client_msg_id": client_id, "recv_id": to, "session_type": 1, "msg_type": 1,
        "content": { "text": text } })
}

async fn send(server: &Server, from: &Person, body: Value) -> HttpResponse {
    server.http.post("/msg/send", &from.token, body).await
}

async fn get(server: &Server, who: &Person, path: &str) -> HttpResponse {
    server.http.get(path, &who.token).await
}

#[tokio::test]
async fn http_and_websocket_are_one_conversation() {
    let server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    let sent = send(&server, &alice, text("c1", "bob", "over HTTP")).await;
    let sent = sent.data();
    assert_eq!((&sent["seq"], &sent["conversation_id"]), (&json!(1), &json!("si_alice_bob")));
    assert_eq!(
        (&sent["sender_id"], &sent["content"]["text"]),
        (&json!("alice"), &json!("over HTTP"))
    );
    let push = b.expect("SINGLE_CHAT").await;
    assert_eq!(
        (&push["serverMsgId"], &push["body"]),
        (&sent["server_msg_id"], &json!("over HTTP"))
    );
    assert_eq!(a.expect("SINGLE_CHAT").await, push, "the sender's sockets hear it too");
    // The same id over the other way is the same message.
    let retry = a.send("bob", "c1", "over HTTP").await;
    assert_eq!((&retry["serverMsgId"], &retry["msgSeq"]), (&sent["server_msg_id"], &json!("1")));
    let again = send(&server, &alice, text("c1", "bob", "over HTTP")).await;
    assert_eq!(again.data(), sent);
    let other = send(&server, &alice, text("c1", "bob", "something else")).await;
    assert_eq!((other.status, other.reason()), (409, "client_msg_id_conflict"));
}

#[tokio::test]
async fn bad_sends_are_refused_with_their_reason() {
    let server = server();
    let alice = server.person("alice").await;
    server.person("bob").await;
    for (change, status, reason) in [
        (json!({ "recv_id": "nobody" }), 404, "user_not_found"),
        (json!({ "recv_id": "" }), 400, "missing_to"),
        (json!({ "client_msg_id": "" }), 400, "missing_msg_id"),
        (json!({ "content": {} }), 400, "missing_body"),
        (json!({ "content": { "text": "" } }), 400, "missing_body"),
        (json!({ "content": { "image": "x" } }), 400, "invalid_param"),
        (json!({ "content": { "text": "x", "image": "x" } }), 400, "invalid_param"),
        (json!({ "content": { "text": "x".repeat(4097) } }), 400, "body_too_long"),
        (json!({ "content": "x" }), 400, "invalid_param"),
        (json!({ "msg_type": 7 }), 400, "unknown_msg_type"),
        (json!({ "msg_type": "1" }), 400, "invalid_param"),
        (json!({ "session_type": 2 }), 400, "missing_group_id"),
        (json!({ "session_type": 2, "group_id": "nowhere" }), 404, "group_not_found"),
        (json!({ "session_type": 3 }), 400, "invalid_param"),
    ] {
        let mut body = text("c1", "bob", "hi");
        for (field, value) in change.as_object().unwrap() {
            body[field] = value.clone();
        }
        let refused = send(&server, &alice, body).await;
        assert_eq!((refused.status, refused.reason()), (status, reason), "{change}");
    }
    assert_eq!(send(&server, &alice, text("c1", "bob", "hi")).await.data()["seq"], 1);
}

#[tokio::test]
async fn ranges_are_pulled_within_what_is_visible() {
    let server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let carol = server.person("carol").await;
    for i in 1..=10 {
        send(&server, &alice, text(&format!("c{i}"), "bob", "hi")).await.data();
    }
    let path = "/msg/pull?conversation_id=si_alice_bob";
    for (query, expect, has_more) in [
        ("", (1..=10).collect::<Vec<_>>(), false),
        ("&begin_seq=4&end_seq=6", vec![4, 5, 6], false),
        ("&begin_seq=4&limit=2", vec![4, 5], true),
        ("&begin_seq=9&end_seq=999", vec![9, 10], false),
        ("&begin_seq=11", vec![], false),
        ("&begin_seq=5&end_seq=4", vec![], false),
        ("&begin_seq=8&limit=0", vec![8, 9, 10], false),
        ("&begin_seq=8&limit=101", vec![8, 9, 10], false),
    ] {
        let pulled = get(&server, &bob, &format!("{path}{query}")).await;
        let messages = pulled.data()["messages"].as_array().unwrap();
        let seqs: Vec<_> =
            messages.iter().map(|message| message["seq"].as_u64().unwrap()).collect();
        assert_eq!((seqs, &pulled.data()["has_more"]), (expect, &json!(has_more)), "{query}");
        assert_eq!(pulled.data()["max_seq"], 10);
    }
    for bad in ["&limit=-1", "&limit=x", "&begin_seq=-1", "&end_seq=x"] {
        assert_eq!(get(&server, &bob, &format!("{path}{bad}")).await.status, 400, "{bad}");
    }
    for path in [
        "/msg/pull",
        "/msg/max_seq",
        "/conversation/info",
        "/conversation/max_read_seq",
        "/conversation/unread_count",
    ] {
        for id in ["si_alice_bob", "si_alice_nobody", "nonsense"] {
            let answer = get(&server, &carol, &format!("{path}?conversation_id={id}")).await;
            assert_eq!((answer.status, answer.reason()), (404, "conversation_not_found"), "{path}");
        }
    }
}

#[tokio::test]
async fn reading_is_counted_once_and_told_to_the_other() {
    let server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let carol = server.person("carol").await;
    for i in 1..=5 {
        send(&server, &alice, text(&format!("c{i}"), "bob", "hi")).await.data();
        send(&server, &carol, text(&format!("c{i}"), "bob", "hi")).await.data();
    }
    let total = async || {
        get(&server, &bob, "/conversation/unread_total").await.data()["unread_count"].clone()
    };
    assert_eq!(total().await, 10);
    let (mut a, _) = server.connect(&alice).await;
    let mark = async |seq: u64| {
        let body = json!({ "conversation_id": "si_alice_bob", "read_seq": seq });
        server.http.post("/conversation/mark_read", &bob.token, body).await
    };
    assert_eq!(mark(3).await.data()["unread_count"], 2);
    let receipt = a.expect_ack("read").await;
    assert_eq!((&receipt["from"], &receipt["msgSeq"]), (&json!("bob"), &json!("3")));
    assert_eq!(mark(1).await.data()["read_seq"], 3, "never back");
    assert_eq!(mark(u64::MAX).await.data()["read_seq"], 5, "never beyond");
    assert_eq!(a.expect_ack("read").await["msgSeq"], "5");
    a.expect_silence().await;
    assert_eq!(total().await, 5);

    let state = get(&server, &alice, "/single-chat/member/state?peerUserId=bob").await;
    assert_eq!(state.data()["peerLastReadMsgSeq"], "5");
    let count = "/conversation/unread_count?conversation_id=si_bob_carol";
    assert_eq!(get(&server, &bob, count).await.data()["unread_count"], 5);
    assert_eq!(get(&server, &bob, &format!("{count}&read_seq=4")).await.data()["unread_count"], 1);
    let max = get(&server, &bob, "/conversation/max_read_seq?conversation_id=si_alice_bob").await;
    assert_eq!(max.data(), &json!({ "max_seq": 5, "read_seq": 5, "unread_count": 0 }));
    let strange = json!({ "conversation_id": "si_alice_bob", "read_seq": 1 });
    let refused = server.http.post("/conversation/mark_read", &carol.token, strange).await;
    assert_eq!(refused.reason(), "conversation_not_found");
}

#[tokio::test]
async fn the_list_comes_in_pages_with_or_without_the_last_message() {
    let server = server();
    let bob = server.person("bob").await;
    for name in ["alice", "carol", "dave"] {
        let person = server.person(name).await;
        send(&server, &person, text("c1", "bob", &format!("from {name}"))).await.data();
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    let first = get(&server, &bob, "/conversation/list?limit=2&with_last_message=true").await;
    let list = first.data()["list"].as_array().unwrap();
    assert_eq!(
        (&list[0]["peer_user_id"], &list[1]["peer_user_id"]),
        (&json!("dave"), &json!("carol"))
    );
    assert_eq!(list[0]["last_message"]["content"]["text"], "from dave");
    assert_eq!((&list[0]["unread_count"], &first.data()["has_more"]), (&json!(1), &json!(true)));
    let cursor = &first.data()["next_cursor"];
    let (at, id) = (&cursor["updated_at"], cursor["conversation_id"].as_str().unwrap());
    let next =
        format!("/conversation/list?limit=2&cursor_updated_at={at}&cursor_conversation_id={id}");
    let second = get(&server, &bob, &next).await;
    let list = second.data()["list"].as_array().unwrap();
    assert_eq!((list.len(), &list[0]["peer_user_id"]), (1, &json!("alice")));
    assert!(list[0].get("last_message").is_none());
    assert_eq!(second.data()["has_more"], false);
    let info = get(&server, &bob, "/conversation/info?conversation_id=si_alice_bob").await;
    assert_eq!(info.data()["last_message"]["content"]["text"], "from alice");
}
