//! The handshake of the numbered dialect, and the first frames of the dotted one.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use nexo_sim::process::Setup;
use nexo_sim::{Server, Socket};
use serde_json::{Value, json};

async fn upgrade(server: &Server, query: &str) -> (u16, String) {
    let head = format!(
        "GET /ws{query} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.http.authority
    );
    // A refusal closes the connection by itself; only those are asked for here.
    let answer = server
        .http
        .raw(head.replace("Upgrade\r\nUpgrade", "Upgrade, close\r\nUpgrade").as_bytes())
        .await;
    (answer.status, answer.reason().to_owned())
}

#[tokio::test]
async fn token_sender_and_platform_are_checked_before_the_upgrade() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let (token, other) = (&alice.token, &bob.token);
    for (query, status, reason) in [
        ("?token=nonsense&send_id=alice".to_owned(), 401, "invalid_token"),
        (format!("?token={other}&send_id=alice"), 401, "reauth_uid_mismatch"),
        (format!("?token={token}&send_id=alice&platform_id=1"), 401, "invalid_token"),
        (format!("?token={token}"), 400, "invalid_param"),
        ("?send_id=alice".to_owned(), 400, "invalid_param"),
        (format!("?token={token}&send_id=alice&platform_id=x"), 400, "invalid_param"),
    ] {
        assert_eq!(upgrade(&server, &query).await, (status, reason.to_owned()), "{query}");
    }
    let query = format!("?token={token}&send_id=alice&platform_id=5&sdk_type=JS");
    let mut socket = Socket::open_with(&server.http.authority, &query).await;
    socket.say(json!({ "req_identifier": 1001, "data": { "conversation_ids": [] } })).await;
    assert_eq!(socket.next().await["data"], json!({ "seqs": {} }));
    // Signing out ends it, and the token opens nothing any more.
    server.http.post("/auth/logout", token, json!({})).await.data();
    let (frames, code) = socket.expect_end().await;
    assert_eq!((&frames[0]["req_identifier"], code), (&json!(2002), Some(4401)));
    assert_eq!(upgrade(&server, &query).await.0, 401);
}

#[tokio::test]
async fn the_handshake_is_answered_by_a_frame_if_that_is_wanted() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let named = |token: &str| format!("?token={token}&send_id=alice&sdk_type=js&operation_id=o1");
    let query = named(&alice.token) + "&is_msg_resp=true";
    let mut socket = Socket::open_with(&server.http.authority, &query).await;
    let welcome = socket.next().await;
    assert_eq!((&welcome["req_identifier"], &welcome["err_code"]), (&json!(0), &json!(0)));
    assert_eq!((&welcome["operation_id"], &welcome["msg_incr"]), (&json!("o1"), &json!("")));
    assert_eq!(welcome["data"]["user_id"], "alice");
    // A browser does not see the status of a handshake that was refused.
    for (token, reason, code) in
        [(&*bob.token, "reauth_uid_mismatch", 4402), ("nonsense", "invalid_token", 4401)]
    {
        let query = named(token) + "&is_msg_resp=1";
        let mut socket = Socket::open_with(&server.http.authority, &query).await;
        let (frames, closed) = socket.expect_end().await;
        assert_eq!((frames.len(), closed), (1, Some(code)), "{frames:?}");
        assert_eq!(
            (&frames[0]["operation_id"], &frames[0]["req_identifier"]),
            (&json!("o1"), &json!(0))
        );
        assert_eq!(frames[0]["data"]["reason"], reason);
        assert_ne!(frames[0]["err_code"], 0);
        assert_eq!(upgrade(&server, &named(token)).await, (401, reason.to_owned()));
    }
}

#[tokio::test]
async fn everything_about_the_handshake_may_be_in_v() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let alice = server.person("alice").await;
    let bundle = json!({ "token": alice.token, "send_id": "alice", "sdk_type": "js" }).to_string();
    let bundle = data_encoding::BASE64URL_NOPAD.encode(bundle.as_bytes());
    let single = format!("?token={}&send_id=alice&sdk_type=js&v=1", alice.token);
    for query in [format!("?v={bundle}"), single] {
        let mut socket = Socket::open_with(&server.http.authority, &query).await;
        socket.say(json!({ "req_identifier": 1001, "data": { "conversation_ids": [] } })).await;
        assert_eq!(socket.next().await["data"], json!({ "seqs": {} }));
    }
    for query in [format!("?v=2&token={}&send_id=alice", alice.token), "?v={".to_owned()] {
        assert_eq!(upgrade(&server, &query).await, (400, "invalid_param".to_owned()), "{query}");
    }
}

#[tokio::test]
async fn a_frame_in_the_name_of_somebody_else_is_refused() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let query = format!("?token={}&send_id=alice&sdk_type=js", alice.token);
    let send = |more: Value| {
        let content = json!({ "client_msg_id": "c", "session_type": 1, "recv_id": "bob",
            "msg_type": 1, "content": { "text": "hi" } });
        let mut frame = json!({ "req_identifier": 1003, "operation_id": "x", "data": content });
        for (name, value) in more.as_object().unwrap() {
            frame[name] = value.clone();
        }
        frame
    };
    for (more, reason, code, closed) in [
        (json!({ "send_id": "bob" }), "reauth_uid_mismatch", 2004, 4402),
        (json!({ "token": bob.token }), "reauth_uid_mismatch", 2004, 4402),
        (json!({ "send_id": "alice", "token": "nonsense" }), "invalid_token", 2001, 4401),
    ] {
        let mut socket = Socket::open_with(&server.http.authority, &query).await;
        socket.say(send(more)).await;
        let (frames, end) = socket.expect_end().await;
        assert_eq!((frames.len(), end), (1, Some(closed)), "{frames:?}");
        assert_eq!(
            (&frames[0]["err_code"], &frames[0]["operation_id"]),
            (&json!(code), &json!("x"))
        );
        assert_eq!(frames[0]["data"]["reason"], reason);
    }
    let pulled = server.http.get("/conversation/list", &bob.token).await;
    assert_eq!(pulled.data()["list"], json!([]), "nothing was said");
    let mut socket = Socket::open_with(&server.http.authority, &query).await;
    socket.say(send(json!({ "send_id": "Alice", "token": alice.token }))).await;
    assert_eq!(socket.next().await["err_code"], 0);
    socket.say(send(json!({ "send_id": "", "token": "" }))).await;
    assert_eq!(socket.next().await["err_code"], 0);
}

async fn ask(socket: &mut Socket, cmd: &str, payload: Value) -> Value {
    socket.say(json!({ "cmd": cmd, "request_id": "r", "payload": payload })).await;
    socket.find(|frame| frame["request_id"] == "r", cmd).await
}

#[tokio::test]
async fn a_dotted_client_registers_signs_in_and_renews() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let mut socket = server.socket().await;
    let account = json!({ "username": "dora", "password": "correct horse", "nickname": "Dora" });
    assert_eq!(ask(&mut socket, "auth.register", account.clone()).await["code"], 0);
    assert_eq!(ask(&mut socket, "auth.register", account).await["code"], 105);
    let wrong = json!({ "username": "dora", "password": "wrong horse" });
    assert_eq!(ask(&mut socket, "auth.login", wrong).await["code"], 100);
    let right = json!({ "username": "dora", "password": "correct horse", "device_type": "ios" });
    let login = ask(&mut socket, "auth.login", right.clone()).await;
    let token = login["payload"]["token"].as_str().unwrap().to_owned();
    let status = json!({ "user_ids": ["dora"] });
    let online = server.http.post("/user/get_users_online_status", &token, status).await;
    assert_eq!(online.data()[0]["detail_platform_status"][0]["platform_id"], 1);
    // Once in, one stays who one is.
    assert_eq!(ask(&mut socket, "auth.login", right).await["code"], 6);
    let renewed = ask(&mut socket, "auth.validate_token", json!({ "token": token })).await;
    assert_eq!(renewed["payload"]["user_id"], "dora");
    let other = server.person("eve").await;
    socket
        .say(json!({ "cmd": "auth.validate_token", "request_id": "x",
        "payload": { "token": other.token } }))
        .await;
    let (frames, code) = socket.expect_end().await;
    assert_eq!((frames.len(), code), (1, Some(4402)), "{frames:?}");
}

#[tokio::test]
async fn passwords_are_not_guessed_over_a_socket() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    server.person("alice").await;
    let mut socket = server.socket().await;
    let since = std::time::Instant::now();
    for _ in 0..8 {
        socket
            .say(json!({ "cmd": "auth.login", "request_id": "r",
            "payload": { "username": "alice", "password": "a guess" } }))
            .await;
    }
    socket
        .say(json!({ "cmd": "auth.login", "request_id": "r",
        "payload": { "username": "alice", "password": "a guess" } }))
        .await;
    let (frames, code) = socket.expect_end().await;
    assert_eq!(code, Some(4029));
    assert_eq!(frames.iter().filter(|frame| frame["code"] == 100).count(), 8, "{frames:?}");
    // Five are looked at as they come; the others wait for 1, 2 and 4 seconds.
    assert!(since.elapsed().as_secs() >= 6, "{:?}", since.elapsed());
}

#[tokio::test]
async fn a_connection_has_one_dialect_for_life() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let alice = server.person("alice").await;
    let mut socket = server.socket().await;
    socket.auth(&alice.token).await;
    socket.expect("RESEND_DONE").await;
    socket.say(json!({ "cmd": "heartbeat", "request_id": "1", "payload": {} })).await;
    assert_eq!(socket.next().await["reason"], "missing_type");
    let mut socket = server.socket().await;
    let payload = json!({ "token": alice.token });
    assert_eq!(ask(&mut socket, "auth.validate_token", payload).await["code"], 0);
    socket.say(json!({ "type": "PING" })).await;
    assert_eq!(socket.next().await["payload"]["reason"], "missing_type");
}
