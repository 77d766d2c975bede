//! Devices, tokens, and their end.

use std::time::Duration;

use nexo_sim::person::PASSWORD;
use nexo_sim::process::Setup;
use nexo_sim::{Person, Server, Socket};
use serde_json::{Value, json};

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo"))
}

/// Tries to authenticate; returns the refusal's frame type and reason, and the close code.
async fn refused(server: &Server, token: &str) -> (Value, Value, Option<u16>) {
    let mut socket = server.socket().await;
    socket.say(json!({ "type": "AUTH", "token": token })).await;
    let (frames, code) = socket.expect_end().await;
    let last = frames.last().cloned().unwrap_or_default();
    (last["type"].clone(), last["reason"].clone(), code)
}

async fn expect_error(socket: &mut Socket, reason: &str, code: u16) {
    let (frames, closed) = socket.expect_end().await;
    let last = frames.last().cloned().unwrap_or_default();
    assert_eq!((&last["type"], &last["reason"]), (&json!("ERROR"), &json!(reason)), "{frames:?}");
    assert_eq!(closed, Some(code));
}

#[tokio::test]
async fn single_the_second_login_kicks_the_first_for_good() {
    let server = setup().with("NEXO_SESSION__POLICY", "single").start();
    let first = server.person("alice").await;
    let (mut one, _) = server.connect(&first).await;
    let second = Person::sign_in(&server.http, "alice", 1).await;
    let (mut two, _) = server.connect(&second).await;
    expect_error(&mut one, "kicked", 4403).await;
    let (kind, reason, _) = refused(&server, &first.token).await;
    assert_eq!((kind, reason), (json!("AUTH_FAIL"), json!("session_invalid")));
    let refresh = json!({ "refresh_token": first.refresh });
    assert_eq!(server.http.post("/auth/refresh", "", refresh).await.status, 401);
    assert_eq!(server.http.get("/user/info", &first.token).await.status, 401);
    two.expect_silence().await;
}

#[tokio::test]
async fn single_whoever_connects_last_of_two_waiting_logins_wins() {
    let server = setup().with("NEXO_SESSION__POLICY", "single").start();
    let first = server.person("alice").await;
    let second = Person::sign_in(&server.http, "alice", 5).await;
    let (mut one, _) = server.connect(&first).await;
    let (mut two, _) = server.connect(&second).await;
    expect_error(&mut one, "kicked", 4403).await;
    assert_eq!(refused(&server, &first.token).await.1, json!("session_invalid"));
    two.expect_silence().await;
}

/// A sign-in is a device: its tabs do not put each other out. One socket per user is a setting,
/// which an operator can have too.
#[tokio::test]
async fn single_the_tabs_of_one_sign_in_share_it_unless_there_is_one_socket_only() {
    let single = || setup().with("NEXO_SESSION__POLICY", "single");
    let server = single().start();
    let alice = server.person("alice").await;
    let (mut one, _) = server.connect(&alice).await;
    let (mut two, _) = server.connect(&alice).await;
    one.expect_silence().await;
    two.expect_silence().await;
    let other = Person::sign_in(&server.http, "alice", 5).await;
    let (mut three, _) = server.connect(&other).await;
    expect_error(&mut one, "kicked", 4403).await;
    expect_error(&mut two, "kicked", 4403).await;
    three.expect_silence().await;

    let server = single().with("NEXO_SESSION__CONNECTIONS_MAX", "1").start();
    let alice = server.person("alice").await;
    let (mut one, _) = server.connect(&alice).await;
    let (mut two, _) = server.connect(&alice).await;
    expect_error(&mut one, "kicked", 4403).await;
    two.expect_silence().await;
    let other = Person::sign_in(&server.http, "alice", 5).await;
    let (mut three, _) = server.connect(&other).await;
    expect_error(&mut two, "kicked", 4403).await;
    three.expect_silence().await;
}

#[tokio::test]
async fn per_platform_only_the_same_kind_of_device_gives_way() {
    let server = setup().with("NEXO_SESSION__POLICY", "per_platform").start();
    let web = server.person("alice").await;
    let phone = Person::sign_in(&server.http, "alice", 1).await;
    let (mut w, _) = server.connect(&web).await;
    let (mut p, _) = server.connect(&phone).await;
    w.expect_silence().await;
    let other_phone = Person::sign_in(&server.http, "alice", 1).await;
    let (mut o, _) = server.connect(&other_phone).await;
    expect_error(&mut p, "kicked", 4403).await;
    w.expect_silence().await;
    o.expect_silence().await;
    assert_eq!(refused(&server, &phone.token).await.1, json!("session_invalid"));
}

#[tokio::test]
async fn multi_every_device_hears_everything_and_cursors_merge() {
    let server = setup().start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let alice2 = Person::sign_in(&server.http, "alice", 1).await;
    let bob2 = Person::sign_in(&server.http, "bob", 1).await;
    let (mut a1, _) = server.connect(&alice).await;
    let (mut a2, _) = server.connect(&alice2).await;
    let (mut b1, _) = server.connect(&bob).await;
    let (mut b2, _) = server.connect(&bob2).await;
    let mut pushes = Vec::new();
    for i in 1..=3 {
        a1.send("bob", &format!("c{i}"), "to all").await;
        let push = b1.expect("SINGLE_CHAT").await;
        assert_eq!(b2.expect("SINGLE_CHAT").await, push);
        assert_eq!(a2.expect("SINGLE_CHAT").await, push, "the sender's other device");
        pushes.push(push);
    }
    a1.expect_silence().await;
    b1.ack("delivered", "alice", &pushes[2]).await;
    b2.ack("read", "alice", &pushes[0]).await;
    assert_eq!(b1.expect_ack("read").await["from"], "bob", "the reader's other device hears");
    for sender in [&mut a1, &mut a2] {
        assert_eq!(sender.expect_ack("delivered").await["msgSeq"], "3");
        assert_eq!(sender.expect_ack("read").await["msgSeq"], "1");
    }
    let heads = server.http.get("/conversation/heads", &bob.token).await;
    let head = &heads.data()["heads"][0];
    assert_eq!((&head["delivered_seq"], &head["read_seq"]), (&json!(3), &json!(1)));
}

#[tokio::test]
async fn a_user_has_so_many_sockets_and_no_more() {
    let server = setup().with("NEXO_SESSION__CONNECTIONS_MAX", "3").start();
    let alice = server.person("alice").await;
    let mut sockets = Vec::new();
    for _ in 0..3 {
        sockets.push(server.connect(&alice).await.0);
    }
    // Another device finds no place; the same one takes that of its own oldest socket.
    let other = Person::sign_in(&server.http, "alice", 1).await;
    let (kind, reason, code) = refused(&server, &other.token).await;
    assert_eq!((kind, reason), (json!("AUTH_FAIL"), json!("too_many_connections")));
    assert_eq!(code, Some(4030), "try again later");
    let (mut again, _) = server.connect(&alice).await;
    expect_error(&mut sockets[0], "kicked", 4403).await;
    again.expect_silence().await;
    sockets.truncate(2);
    drop(sockets);
    for _ in 0..50 {
        let mut socket = server.socket().await;
        socket.say(json!({ "type": "AUTH", "token": other.token })).await;
        if socket.next().await["type"] == "AUTH_OK" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("a place that was given back is not taken again");
}

#[tokio::test]
async fn logout_ends_open_sockets_and_tokens_at_once() {
    let server = setup().start();
    let alice = server.person("alice").await;
    let other = Person::sign_in(&server.http, "alice", 1).await;
    let (mut socket, _) = server.connect(&alice).await;
    let (mut untouched, _) = server.connect(&other).await;
    server.http.post("/auth/logout", &alice.token, json!({})).await.data();
    expect_error(&mut socket, "session_invalid", 4401).await;
    assert_eq!(refused(&server, &alice.token).await.1, json!("session_invalid"));
    assert_eq!(server.http.get("/user/info", &alice.token).await.reason(), "session_invalid");
    let refresh = json!({ "refresh_token": alice.refresh });
    assert_eq!(
        server.http.post("/auth/refresh", "", refresh).await.reason(),
        "invalid_refresh_token"
    );
    untouched.expect_silence().await;
}

#[tokio::test]
async fn a_password_change_ends_every_sign_in() {
    let server = setup().start();
    let alice = server.person("alice").await;
    let other = Person::sign_in(&server.http, "alice", 1).await;
    let (mut one, _) = server.connect(&alice).await;
    let (mut two, _) = server.connect(&other).await;
    let change = |old: &str, new: &str| json!({ "old_password": old, "new_password": new });
    let path = "/user/change_password";
    let wrong =
        server.http.post(path, &alice.token, change("not it at all", "a new password")).await;
    assert_eq!((wrong.status, wrong.reason()), (401, "login_failed"));
    let weak = server.http.post(path, &alice.token, change(PASSWORD, "short")).await;
    assert_eq!((weak.status, weak.reason()), (400, "bad_password"));
    one.expect_silence().await;
    server.http.post(path, &alice.token, change(PASSWORD, "a new password")).await.data();
    expect_error(&mut one, "session_invalid", 4401).await;
    expect_error(&mut two, "session_invalid", 4401).await;
    let login = |password: &str| json!({ "user_id": "alice", "password": password });
    assert_eq!(server.http.post("/auth/login", "", login(PASSWORD)).await.status, 401);
    server.http.post("/auth/login", "", login("a new password")).await.data();
}

#[tokio::test]
async fn a_refresh_whose_answer_was_lost_gives_the_same_again() {
    let server = setup().start();
    let alice = server.person("alice").await;
    let refresh = async || {
        let body = json!({ "refresh_token": alice.refresh });
        server.http.post("/auth/refresh", "", body).await
    };
    let (one, two) = tokio::join!(refresh(), refresh());
    let again = refresh().await;
    for answer in [&one, &two, &again] {
        assert_eq!(answer.data()["refresh_token"], one.data()["refresh_token"]);
        let token = answer.data()["token"].as_str().unwrap();
        assert_eq!(server.http.get("/user/info", token).await.status, 200);
    }
    // Once the next one is used, the first is a copy that somebody kept.
    let body = json!({ "refresh_token": one.data()["refresh_token"] });
    server.http.post("/auth/refresh", "", body).await.data();
    assert_eq!(refresh().await.reason(), "invalid_refresh_token");
}

#[tokio::test]
async fn a_refresh_token_works_once_and_its_copy_ends_the_sign_in() {
    let server = setup().with("NEXO_AUTH__REFRESH_GRACE_SECONDS", "0").start();
    let alice = server.person("alice").await;
    let refresh = async |token: &str| {
        server.http.post("/auth/refresh", "", json!({ "refresh_token": token })).await
    };
    let first = refresh(&alice.refresh).await;
    let (access, next) = (&first.data()["token"], &first.data()["refresh_token"]);
    assert_eq!(server.http.get("/user/info", access.as_str().unwrap()).await.status, 200);
    let (mut socket, _) = server.connect(&alice).await;
    // The old one again: somebody has a copy. Nobody keeps the sign-in.
    assert_eq!(refresh(&alice.refresh).await.reason(), "invalid_refresh_token");
    assert_eq!(refresh(next.as_str().unwrap()).await.reason(), "invalid_refresh_token");
    expect_error(&mut socket, "session_invalid", 4401).await;
    for nonsense in ["", "x", &alice.token, &"y".repeat(10_000)] {
        assert_eq!(refresh(nonsense).await.status, 401);
    }
}

#[tokio::test]
async fn a_token_that_expires_ends_the_socket_unless_it_is_renewed() {
    let server = setup().with("NEXO_AUTH__ACCESS_TOKEN_SECONDS", "2").start();
    let alice = server.person("alice").await;
    let bob = server.person("bob").await;
    let (mut left, _) = server.connect(&alice).await;
    let (mut renewed, _) = server.connect(&bob).await;
    tokio::time::sleep(Duration::from_millis(1200)).await;
    let body = json!({ "refresh_token": bob.refresh });
    let answer = server.http.post("/auth/refresh", "", body).await;
    renewed.say(json!({ "type": "REAUTH", "token": answer.data()["token"] })).await;
    renewed.expect("AUTH_OK").await;
    expect_error(&mut left, "token_expired", 4100).await;
    renewed.expect_silence().await;
    assert_eq!(refused(&server, &alice.token).await.1, json!("token_expired"));
    assert_eq!(server.http.get("/user/info", &alice.token).await.reason(), "token_expired");
    expect_error(&mut renewed, "token_expired", 4100).await;
}

#[tokio::test]
async fn reauth_needs_a_token_of_the_same_user_and_sign_in() {
    let server = setup().start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let again = Person::sign_in(&server.http, "alice", 5).await;
    for (token, kind, reason) in [
        (bob.token.as_str(), "ERROR", "reauth_uid_mismatch"),
        (again.token.as_str(), "ERROR", "session_invalid"),
        ("nonsense", "AUTH_FAIL", "invalid_token"),
        ("", "AUTH_FAIL", "missing_token"),
    ] {
        let (mut socket, _) = server.connect(&alice).await;
        socket.say(json!({ "type": "REAUTH", "token": token })).await;
        let (frames, _) = socket.expect_end().await;
        let last = frames.last().unwrap();
        assert_eq!((&last["type"], &last["reason"]), (&json!(kind), &json!(reason)));
    }
}

#[tokio::test]
async fn only_our_own_live_access_tokens_open_a_socket() {
    let server = setup().start();
    let alice = server.person("alice").await;
    let (head, rest) = alice.token.split_once('.').unwrap();
    let (payload, signature) = rest.split_once('.').unwrap();
    let none = "eyJhbGciOiJub25lIn0"; // {"alg":"none"}
    for forged in [
        alice.refresh.clone(),
        format!("{none}.{payload}."),
        format!("{none}.{payload}.{signature}"),
        format!("{head}.{payload}."),
        format!("{}x", alice.token),
        "x".repeat(100_000),
    ] {
        let (kind, reason, code) = refused(&server, &forged).await;
        assert_eq!((kind, reason, code), (json!("AUTH_FAIL"), json!("invalid_token"), Some(4401)));
        assert_eq!(
            server.http.get("/user/info", &forged[..forged.len().min(8000)]).await.status,
            401
        );
    }
    assert_eq!(refused(&server, "").await.1, json!("missing_token"));
}

#[tokio::test]
async fn wrong_passwords_are_throttled_and_unknown_users_look_the_same() {
    let server = setup().start();
    server.person("alice").await;
    let login = async |id: &str, password: &str| {
        let body = json!({ "user_id": id, "password": password, "platform_id": 5 });
        server.http.post("/auth/login", "", body).await
    };
    let (wrong, unknown) = (login("alice", "wrong").await, login("nobody", "wrong").await);
    let without_id = |answer: &nexo_sim::HttpResponse| {
        let mut body = answer.body.clone();
        body["request_id"] = Value::Null;
        (answer.status, body)
    };
    assert_eq!(without_id(&wrong), without_id(&unknown));
    for id in ["a_b", "", &"x".repeat(10_000)] {
        assert_eq!(without_id(&login(id, "wrong").await), without_id(&wrong));
    }
    // Beyond five a minute, the next one waits a second, and the one after it two.
    for _ in 0..4 {
        assert_eq!(login("alice", "wrong").await.status, 401);
    }
    for seconds in [1, 2] {
        let since = std::time::Instant::now();
        assert_eq!(login("alice", "wrong").await.status, 401);
        assert!(since.elapsed().as_secs() >= seconds, "{:?}", since.elapsed());
    }
    // Many at once count like many in a row.
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let http = server.http.clone();
            let body = json!({ "user_id": "nobody2", "password": "wrong", "platform_id": 5 });
            tokio::spawn(async move { http.post("/auth/login", "", body).await.status })
        })
        .collect();
    let mut guesses = 0;
    for task in tasks {
        guesses += u16::from(task.await.unwrap() == 401);
    }
    assert!((5..=12).contains(&guesses), "{guesses} guesses were looked at");
    let more = futures_util::future::join_all((0..8).map(|_| login("alice", "wrong"))).await;
    let refused = more.iter().find(|answer| answer.status == 429).unwrap();
    assert_eq!(refused.reason(), "too_many_requests");
    assert!(refused.head.to_lowercase().contains("retry-after"), "{}", refused.head);
    // Slowly, but the right one gets in, and then mistakes are forgiven.
    assert_eq!(login("alice", PASSWORD).await.status, 200);
    let again = futures_util::future::join_all((0..5).map(|_| login("alice", "wrong"))).await;
    assert!(again.iter().all(|answer| answer.status == 401));
}
