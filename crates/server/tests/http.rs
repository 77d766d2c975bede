//! HTTP: accounts, profiles, and malformed requests.

use nexo_sim::process::Setup;
use serde_json::json;

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo"))
}

#[tokio::test]
async fn an_account_is_made_once_and_well() {
    let server = setup().start();
    let register = async |body| server.http.post("/user/register", "", body).await;
    let made = register(json!({ "nickname": "Anon", "password": "long enough" })).await;
    let id = made.data()["user_id"].as_str().unwrap().to_owned();
    assert_eq!((id.len(), &made.data()["id"]), (16, &json!(id)), "the server makes an id");
    let good = json!({ "user_id": "alice", "nickname": "Alice", "password": "long enough" });
    for field in ["role", "session_version", "created_at"] {
        let mut odd = good.clone();
        odd[field] = json!(1);
        assert_eq!(register(odd).await.reason(), "invalid_param", "what is not asked for: {field}");
    }
    register(good.clone()).await.data();
    let again = register(good).await;
    assert_eq!((again.status, again.reason()), (409, "user_exists"));
    let long = "x".repeat(65);
    for (field, value, reason) in [
        ("user_id", json!("a_b"), "bad_user_id"),
        ("user_id", json!("аlice"), "bad_user_id"), // a Cyrillic а
        ("user_id", json!("a\u{0}"), "bad_user_id"),
        ("user_id", json!(long), "bad_user_id"),
        ("user_id", json!(""), "bad_user_id"),
        ("user_id", json!({ "$ne": null }), "invalid_param"),
        ("password", json!("short"), "bad_password"),
        ("password", json!("x".repeat(129)), "bad_password"),
        ("nickname", json!(""), "bad_nickname"),
        ("nickname", json!("x".repeat(129)), "bad_nickname"),
        ("nickname", json!("bob\u{202e}nimda"), "bad_nickname"),
        ("avatar", json!("x".repeat(2000)), "bad_profile"),
    ] {
        let mut body = json!({ "user_id": "new", "nickname": "New", "password": "long enough" });
        body[field] = value;
        let refused = register(body).await;
        assert_eq!((refused.status, refused.reason()), (400, reason), "{field}");
        assert!(refused.body["request_id"].is_string());
    }
}

#[tokio::test]
async fn two_registrations_of_one_id_at_once_make_one_account() {
    let server = setup().start();
    let tasks: Vec<_> = (0..20)
        .map(|i| {
            let http = server.http.clone();
            tokio::spawn(async move {
                let body = json!({ "user_id": "one", "nickname": format!("n{i}"), "password": "long enough" });
                http.post("/user/register", "", body).await.status
            })
        })
        .collect();
    let mut statuses = Vec::new();
    for task in tasks {
        statuses.push(task.await.unwrap());
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1);
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 19);
}

#[tokio::test]
async fn profiles_are_read_and_changed_by_their_owner() {
    let server = setup().start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let of_bob = json!({ "nickname": "Alice L.", "user_id": "bob" });
    let refused = server.http.put("/user/update", &alice.token, of_bob).await;
    assert_eq!((refused.status, refused.reason()), (400, "invalid_param"));
    let update = json!({ "nickname": "Alice L.", "extra": "{\"k\":1}" });
    let updated = server.http.put("/user/update", &alice.token, update).await;
    assert_eq!(
        (&updated.data()["id"], &updated.data()["nickname"]),
        (&json!("alice"), &json!("Alice L."))
    );
    let seen = server.http.get("/user/info?user_id=alice", &bob.token).await;
    assert_eq!(
        (&seen.data()["nickname"], &seen.data()["extra"]),
        (&json!("Alice L."), &json!("{\"k\":1}"))
    );
    assert!(!seen.text.contains("argon2"), "no hash ever leaves");
    let own = server.http.get("/user/info", &bob.token).await;
    assert_eq!(own.data()["id"], "bob");
    let unknown = server.http.get("/user/info?user_id=nobody", &bob.token).await;
    assert_eq!((unknown.status, unknown.reason()), (404, "user_not_found"));
    let bad = server.http.put("/user/update", &alice.token, json!({ "nickname": "" })).await;
    assert_eq!(bad.reason(), "bad_nickname");
}

#[tokio::test]
async fn what_needs_a_token_needs_a_good_one() {
    let server = setup().start();
    for (method, path) in [
        ("GET", "/user/info"),
        ("PUT", "/user/update"),
        ("POST", "/user/change_password"),
        ("POST", "/auth/logout"),
        ("GET", "/single-chat/message/cursor?peerUserId=bob"),
        ("GET", "/single-chat/message/since?peerUserId=bob"),
        ("GET", "/single-chat/conversation/cursor"),
        ("GET", "/conversation/heads"),
        ("GET", "/conversation/changes?conversation_id=si_a_b"),
        ("GET", "/conversation/list"),
        ("GET", "/conversation/info?conversation_id=si_a_b"),
        ("POST", "/conversation/mark_read"),
        ("GET", "/conversation/max_read_seq?conversation_id=si_a_b"),
        ("GET", "/conversation/unread_count?conversation_id=si_a_b"),
        ("GET", "/conversation/unread_total"),
        ("GET", "/single-chat/member/state?peerUserId=bob"),
        ("POST", "/user/get_users_online_status"),
        ("POST", "/msg/send"),
        ("POST", "/msg/recall"),
        ("GET", "/msg/pull?conversation_id=si_a_b"),
        ("GET", "/msg/max_seq?conversation_id=si_a_b"),
    ] {
        for (token, reason) in
            [("", "missing_token"), ("Authorization: Bearer x\r\n", "invalid_token")]
        {
            let request = format!(
                "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{token}Content-Length: 2\r\n\r\n{{}}"
            );
            let answer = server.http.raw(request.as_bytes()).await;
            assert_eq!((answer.status, answer.reason()), (401, reason), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn bad_parameters_are_refused_and_limits_are_cut() {
    let server = setup().start();
    let alice = server.person("alice").await;
    for (path, status) in [
        ("/single-chat/message/cursor", 400),
        ("/single-chat/message/cursor?peerUserId=bob&limit=0", 200),
        ("/single-chat/message/cursor?peerUserId=bob&limit=101", 200),
        ("/single-chat/message/cursor?peerUserId=bob&limit=1000000000000", 200),
        ("/single-chat/message/cursor?peerUserId=bob&limit=-1", 400),
        ("/single-chat/message/cursor?peerUserId=bob&limit=many", 400),
        ("/single-chat/message/cursor?peerUserId=bob&lastSeq=-1", 400),
        ("/single-chat/message/cursor?peerUserId=bob&lastSeq=18446744073709551615", 200),
        ("/single-chat/message/since?peerUserId=bob&sinceSeq=18446744073709551615", 200),
        ("/single-chat/message/since?peerUserId=bob&sinceSeq=18446744073709551616", 400),
        ("/single-chat/message/since?peerUserId=bob&limit=201", 200),
        ("/single-chat/message/since?peerUserId=%00", 404),
        ("/single-chat/message/since?peerUserId=a_b", 404),
        ("/single-chat/message/since?peerUserId=alice", 200),
        ("/conversation/heads?limit=1001", 200),
        ("/conversation/heads?limit=-1", 400),
        ("/conversation/heads?cursor=nonsense", 404),
        ("/single-chat/conversation/cursor?lastId=si_a_b", 400),
        ("/no/such/path", 404),
    ] {
        let answer = server.http.get(path, &alice.token).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text);
    }
}

#[tokio::test]
async fn requests_that_break_the_protocol_are_refused() {
    let server = setup().start();
    let long = format!("GET /healthz HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let many = format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{}\r\n", "X: x\r\n".repeat(10_000));
    for (request, expect) in [
        (long.as_str(), 431),
        (&many, 431),
        (
            "POST /auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
            400,
        ),
        ("NONSENSE\r\n\r\n", 400),
        ("DELETE /user/info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 405),
        (
            "POST /auth/login HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n\r\n{{{{",
            400,
        ),
        ("GET /ws HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 400),
    ] {
        // A server that has heard enough may close while we are still speaking.
        if let Some(answer) = server.http.try_raw(request.as_bytes()).await {
            assert_eq!(answer.status, expect, "{request:.60}");
        }
    }
    let large = json!({ "user_id": "alice", "password": "x".repeat(200_000) });
    let answer = server.http.post("/auth/login", "", large).await;
    assert_eq!((answer.status, answer.reason()), (413, "frame_too_large"));
    assert_eq!(server.http.get("/healthz", "").await.status, 200);
}

#[tokio::test]
async fn metrics_are_for_those_who_have_the_token() {
    let server = setup().start();
    let alice = server.person("alice").await;
    for token in ["", "nonsense", &alice.token] {
        assert_eq!(server.http.get("/metrics", token).await.status, 401);
    }
    let token = std::fs::read_to_string(server.data().join("metrics.token")).unwrap();
    let page = server.http.get("/metrics", token.trim()).await;
    assert_eq!(page.status, 200);
    server.person("bob").await;
    let (mut a, _) = server.connect(&alice).await;
    a.send("bob", "c1", "hi").await;
    let page = server.http.get("/metrics", token.trim()).await.text;
    for line in [
        "nexo_connections 1",
        "nexo_store_saved_total 1",
        "nexo_acks_total{type=\"saved\",result=\"ok\"} 1",
        "nexo_store_commit_seconds_bucket",
        "nexo_store_batch_messages_bucket",
        "nexo_save_seconds_count 1",
        "nexo_resent_total 0",
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
}

#[tokio::test]
async fn what_an_app_adds_to_a_message_comes_back() {
    let server = setup().start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let system = std::fs::read_to_string(server.data().join("system.token")).unwrap();
    let extra = json!({ "colour": "red", "size": "7" });
    let said = |id: &str, extra: &serde_json::Value| {
        json!({ "client_msg_id": id, "session_type": 1, "recv_id": "bob", "msg_type": 1,
            "content": { "text": "hello" }, "extra": extra })
    };
    for (path, token) in [
        ("/msg/send", &*alice.token),
        ("/msg/send_without_mark_read", &alice.token),
        ("/system/send", system.trim()),
    ] {
        let sent = server.http.post(path, token, said(path, &extra)).await;
        assert_eq!(sent.data()["extra"], extra, "{path}");
        let again = server.http.post(path, token, said(path, &extra)).await;
        assert_eq!(again.data()["id"], sent.data()["id"], "{path}");
        let other = server.http.post(path, token, said(path, &json!({ "colour": "blue" }))).await;
        assert_eq!(other.reason(), "client_msg_id_conflict", "{path}");
        let conversation = sent.data()["conversation_id"].as_str().unwrap();
        let path = format!("/msg/pull?conversation_id={conversation}");
        let pulled = server.http.get(&path, &bob.token).await;
        for message in pulled.data()["messages"].as_array().unwrap() {
            assert_eq!(message["extra"], extra, "{path}");
        }
    }
    for (bad, reason) in [
        (json!({ "a": 1 }), "invalid_param"),
        (json!({ "a": { "b": "c" } }), "invalid_param"),
        (json!("text"), "invalid_param"),
        (json!({ "a": "x".repeat(70_000) }), "body_too_long"),
    ] {
        let refused = server.http.post("/msg/send", &alice.token, said("bad", &bad)).await;
        assert_eq!((refused.status, refused.reason()), (400, reason));
    }
    let none = server.http.post("/msg/send", &alice.token, said("none", &json!(null))).await;
    assert!(none.data().get("extra").is_none());
}

#[tokio::test]
async fn a_wrong_field_is_named_by_its_path() {
    let server = setup().start();
    let [alice, _bob] = server.people(["alice", "bob"]).await;
    let send = |change: serde_json::Value| {
        let mut body = json!({ "client_msg_id": "1", "session_type": 1, "recv_id": "bob",
            "msg_type": 1, "content": { "text": "hi" } });
        for (field, value) in change.as_object().unwrap() {
            body[field] = value.clone();
        }
        body
    };
    for (path, body, field) in [
        ("/msg/send", send(json!({ "extra": { "a": 1 } })), "extra.a"),
        ("/msg/send", send(json!({ "content": { "text": "hi", "bar": "x" } })), "content.bar"),
        ("/msg/send", send(json!({ "content": { "text": [] } })), "content.text"),
        ("/msg/send", send(json!({ "mentions": ["bob", 7] })), "mentions[1]"),
        ("/msg/send", send(json!({ "session_type": "1" })), "session_type"),
        ("/msg/send", send(json!({ "session_type": 3 })), "session_type"),
        ("/msg/send", send(json!({ "colour": "red" })), "colour"),
        ("/group/create", json!({ "name": "Us", "member_ids": [true] }), "member_ids[0]"),
        ("/group/create", json!({ "name": "Us", "join_type": "magic" }), "join_type"),
        ("/group/mute", json!({ "group_id": "g", "user_id": "bob", "seconds": -2 }), "seconds"),
        ("/user/get_users_online_status", json!({ "user_ids": [] }), "user_ids"),
    ] {
        let refused = server.http.post(path, &alice.token, body.clone()).await;
        assert_eq!((refused.status, refused.reason()), (400, "invalid_param"), "{body}");
        let message = refused.body["message"].as_str().unwrap();
        assert!(message.contains(&format!("`{field}`")), "{body}: {message}");
    }
    for (path, field) in [
        ("/msg/pull?conversation_id=si_alice_bob&limit=many", "limit"),
        ("/msg/pull?conversation_id=si_alice_bob&begin_seq=-1", "begin_seq"),
        ("/msg/pull", "conversation_id"),
    ] {
        let refused = server.http.get(path, &alice.token).await;
        assert_eq!((refused.status, refused.reason()), (400, "invalid_param"), "{path}");
        let message = refused.body["message"].as_str().unwrap();
        assert!(message.contains(field), "{path}: {message}");
    }
}
