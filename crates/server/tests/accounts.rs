//! Accounts: ids that look alike, closed registration, failed sign-ins, and how a user who forgot
//! their password gets in again.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::process::Command;

use nexo_sim::person::PASSWORD;
use nexo_sim::process::Setup;
use nexo_sim::{
    ClientDialect, DialectClient, MariaDb, Person, Recipient, Server, Socket, TestGroup,
};
use serde_json::{Value, json};

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo"))
}

async fn register(server: &Server, id: &str) -> String {
    let body = json!({ "user_id": id, "nickname": id, "password": PASSWORD });
    let answer = server.http.post("/user/register", "", body).await;
    if answer.status == 200 { String::new() } else { answer.reason().to_owned() }
}

/// Asks by `cmd`, before or after signing in.
async fn ask(socket: &mut Socket, cmd: &str, payload: Value) -> Value {
    socket.say(json!({ "cmd": cmd, "request_id": "r", "payload": payload })).await;
    socket.find(|frame| frame["request_id"] == "r", cmd).await
}

#[tokio::test]
async fn nobody_registers_an_id_that_looks_like_another() {
    let server = setup().start();
    assert_eq!(register(&server, "Bill0").await, "");
    for alike in ["bill0", "BILL0", "Billo", "B1ll0", "bIIlO"] {
        assert_eq!(register(&server, alike).await, "user_exists", "{alike}");
    }
    for other in ["Bill-0", "bill00"] {
        assert_eq!(register(&server, other).await, "", "{other}");
    }
    let mut socket = server.socket().await;
    let account = json!({ "username": "b1llo", "password": PASSWORD });
    assert_eq!(ask(&mut socket, "auth.register", account).await["code"], 105);
    for reserved in ["system", "System", "admin", "ADM1N", "r00t", "nexo", "support", "everyone"] {
        assert_eq!(register(&server, reserved).await, "reserved_user_id", "{reserved}");
    }
    let account = json!({ "username": "adm1n", "password": PASSWORD });
    assert_eq!(ask(&mut socket, "auth.register", account).await["code"], 106);
}

#[tokio::test]
async fn a_typed_name_finds_its_person_whatever_its_case() {
    for two_phase in ["false", "true"] {
        let server = setup().with("NEXO_TWO_PHASE__ENABLED", two_phase).start();
        let [bob, alice] = server.people(["Bob", "alice"]).await;
        let mut b = DialectClient::connect(&server.http, &bob, ClientDialect::Typed).await;
        for dialect in ClientDialect::ALL {
            let mut a = DialectClient::connect(&server.http, &alice, dialect).await;
            let name = format!("{dialect:?}");
            let said = a.say(&Recipient::User("bOB".into()), &name, "hi").await.unwrap();
            let heard = b.hear_message().await;
            assert_eq!((&*heard.conversation, &heard.id), ("si_Bob_alice", &said.id), "{name}");
            let again = a.say(&Recipient::User("Bob".into()), &name, "hi").await.unwrap();
            assert_eq!(again.id, said.id, "{name}: it is the same message");
            // What only looks alike is somebody else, or nobody.
            let other = a.say(&Recipient::User("b0b".into()), &format!("{name}-2"), "hi").await;
            assert_eq!(other, Err("user_not_found".into()), "{name}");
            let itself = a.say(&Recipient::User("Alice".into()), &format!("{name}-3"), "hi").await;
            assert_eq!(itself, Err("cannot_send_to_self".into()), "{name}");
            let history = a.history("si_Bob_alice", &Recipient::User("BOB".into())).await;
            assert!(history.iter().any(|it| it.id == said.id), "{name}: {history:?}");
        }
    }
}

#[tokio::test]
async fn everything_that_names_a_person_finds_them_whatever_the_case() {
    let server = setup().start();
    let [bob, alice] = server.people(["Bob", "alice"]).await;
    let post = async |path: &str, body: Value| server.http.post(path, &alice.token, body).await;
    let send = |to: &str, id: &str| {
        json!({ "session_type": 1, "recv_id": to, "client_msg_id": id, "msg_type": 1,
            "content": { "text": "hi" } })
    };
    let said = post("/msg/send", send("BOB", "c1")).await;
    assert_eq!(said.data()["conversation_id"], "si_Bob_alice", "{}", said.text);
    assert_eq!(post("/msg/send", send("b0b", "c2")).await.reason(), "user_not_found");
    let token = std::fs::read_to_string(server.data().join("system.token"));
    if let Ok(token) = token {
        let said = server.http.post("/system/send", token.trim(), send("boB", "s1")).await;
        assert_eq!(said.data()["conversation_id"], "si_Bob_system");
        let to_system = post("/msg/send", send("System", "c3")).await;
        assert_eq!(to_system.reason(), "user_not_found", "nobody writes to the operator");
    }

    let info =
        async |of: &str| server.http.get(&format!("/user/info?user_id={of}"), &alice.token).await;
    assert_eq!(info("bob").await.data()["user_id"], "Bob");
    assert_eq!(info("b0b").await.reason(), "user_not_found");
    let body = json!({ "user_ids": ["bOb", "ALICE"] });
    let online = post("/user/get_users_online_status", body).await;
    let ids = |of: &Value| of.as_array().unwrap().iter().map(|it| it["user_id"].clone()).collect();
    assert_eq!(ids(online.data()), Vec::from([json!("Bob"), json!("alice")]));
    for path in ["message/cursor", "message/since", "member/state"] {
        let path = format!("/single-chat/{path}?peerUserId=bob");
        server.http.get(&path, &alice.token).await.data();
    }

    let carol = server.person("carol").await;
    let body = json!({ "name": "g", "member_ids": ["BOB"] });
    let group = post("/group/create", body).await.data()["id"].as_str().unwrap().to_owned();
    let invite = json!({ "group_id": group, "user_ids": ["Carol"] });
    post("/group/invite", invite).await.data();
    let path = format!("/group/members?group_id={group}");
    let members = server.http.get(&path, &carol.token).await;
    let members: Vec<Value> = ids(&members.data()["list"]);
    assert_eq!(members, ["Bob", "alice", "carol"]);
    post("/group/kick", json!({ "group_id": group, "user_id": "CAROL" })).await.data();
    assert_eq!(server.http.get(&path, &carol.token).await.status, 403);

    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    a.say(json!({ "type": "TYPING", "to": "BOB" })).await;
    assert_eq!(b.expect("TYPING").await["from"], "alice");
}

#[tokio::test]
async fn somebody_signs_in_whatever_the_case_and_guesses_are_counted_together() {
    let server = setup().start();
    server.person("Bob").await;
    let login = async |id: &str, password: &str| {
        let body = json!({ "user_id": id, "password": password, "platform_id": 5 });
        server.http.post("/auth/login", "", body).await
    };
    assert_eq!(login("BOB", PASSWORD).await.data()["user_info"]["user_id"], "Bob");
    assert_eq!(login("b0b", PASSWORD).await.reason(), "login_failed", "that is somebody else");
    let mut socket = server.socket().await;
    let right = json!({ "username": "boB", "password": PASSWORD, "device_type": "web" });
    assert_eq!(ask(&mut socket, "auth.login", right).await["payload"]["user_id"], "Bob");
    // `boB` was right, so there are five tries a minute: capitals and look-alikes give nobody more. Beyond them one
    // at a time is looked at, after a while.
    let ids = ["bob", "BOb", "bOb", "boB", "BOB", "B0B", "b0b", "Bob"];
    let guesses = ids.iter().cycle().take(40).map(|id| login(id, "a guess"));
    let answers = futures_util::future::join_all(guesses).await;
    let count = |of: &str| answers.iter().filter(|answer| answer.reason() == of).count();
    let (failed, refused) = (count("login_failed"), count("too_many_requests"));
    assert_eq!(failed + refused, 40);
    assert!((6..=15).contains(&failed), "{failed} guesses were looked at");
}

#[tokio::test]
async fn where_many_fail_everybody_still_gets_in() {
    let server = setup().start();
    for id in ["alice", "bob"] {
        assert_eq!(register(&server, id).await, "");
    }
    let login = async |id: String, password: &str| {
        let body = json!({ "user_id": id, "password": password, "platform_id": 5 });
        server.http.post("/auth/login", "", body).await
    };
    // All of them share one address, as behind a proxy that is not trusted.
    for round in 0..11 {
        let wrong = (0..10).map(|number| login(format!("wrong-{round}-{number}"), "a guess"));
        let answers = futures_util::future::join_all(wrong).await;
        assert!(answers.iter().all(|answer| answer.status == 401), "{round}");
    }
    let failing = async {
        for number in 0.. {
            login(format!("more-{number}"), "a guess").await;
        }
    };
    let signing_in = async {
        for id in ["alice", "bob"] {
            assert_eq!(login(id.to_owned(), PASSWORD).await.status, 200, "{id}");
        }
    };
    tokio::select! {
        () = failing => {}
        () = signing_in => {}
    }
}

#[tokio::test]
async fn a_closed_server_takes_no_new_accounts() {
    for (name, value) in
        [("NEXO_AUTH__REGISTRATION", "closed"), ("NEXO_LIMITS__REGISTRATIONS_PER_MINUTE", "0")]
    {
        let server = setup().with(name, value).start();
        let body = json!({ "user_id": "alice", "nickname": "Alice", "password": PASSWORD });
        let refused = server.http.post("/user/register", "", body).await;
        assert_eq!((refused.status, refused.reason()), (403, "registration_closed"), "{name}");
        let mut socket = server.socket().await;
        let account = json!({ "username": "alice", "password": PASSWORD });
        assert_eq!(ask(&mut socket, "auth.register", account).await["code"], 6, "{name}");
        let info = server.http.get("/server/info", "").await;
        assert_eq!(info.data()["registration"], "closed", "{name}");
    }
    let server = setup().start();
    assert_eq!(server.http.get("/server/info", "").await.data()["registration"], "open");
    let folder = tempfile::tempdir().unwrap();
    let setup = setup().with("NEXO_AUTH__REGISTRATION", "sometimes");
    let output = setup.command(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("`open`, `invite` or `closed`"), "{said}");
}

#[tokio::test]
async fn failed_sign_ins_are_logged_and_counted_without_the_password() {
    let server = setup().nodes(0).start();
    server.person("alice").await;
    let login = async |id: &str| {
        let body = json!({ "user_id": id, "password": "s3cr3t-guess", "platform_id": 5 });
        server.http.post("/auth/login", "", body).await
    };
    let odd = format!("a\n\u{202e}{}", "x".repeat(500));
    assert_eq!(login("alice").await.reason(), "login_failed");
    assert_eq!(login("nobody-here").await.reason(), "login_failed");
    assert_eq!(login(&odd).await.reason(), "login_failed");
    // Four more of five are looked at, one at a time has to wait, and the others are refused.
    let answers = futures_util::future::join_all((0..10).map(|_| login("alice"))).await;
    let refused = answers.iter().filter(|answer| answer.status == 429).count();
    assert!((1..=5).contains(&refused), "{refused}");
    let mut lines: Vec<Value> = Vec::new();
    for _ in 0..100 {
        let log = server.log();
        lines = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        lines.retain(|line: &Value| line["target"] == "nexo::auth");
        if lines.len() >= 13 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let field = |at: usize, name: &str| lines[at][name].clone();
    assert_eq!((field(0, "user"), field(0, "reason")), (json!("alice"), json!("wrong_password")));
    assert_eq!((field(0, "address"), &lines[0]["level"]), (json!("127.0.0.1"), &json!("WARN")));
    assert_eq!(field(1, "reason"), "unknown_user");
    // It may be a password in the wrong field.
    assert_eq!(field(2, "user"), "(no user id)");
    let logged = lines.iter().filter(|line| line["reason"] == "too_many_tries").count();
    assert_eq!(logged, refused);
    assert!(!server.log().contains("s3cr3t"), "{}", server.log());

    let token = std::fs::read_to_string(server.data().join("metrics.token")).unwrap();
    let page = server.http.get("/metrics", token.trim()).await.text;
    for (reason, count) in
        [("wrong_password", 11 - refused), ("unknown_user", 2), ("too_many_tries", refused)]
    {
        let line = page
            .lines()
            .find(|line| line.starts_with("nexo_sign_in_failures_total") && line.contains(reason));
        let line = line.unwrap_or_else(|| panic!("{reason}: {page}"));
        assert!(
            line.contains("what=\"sign_in\"") && line.ends_with(&format!(" {count}")),
            "{line}"
        );
    }
}

/// Makes a code as an operator does.
fn reset_code(arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nexo"));
    let output = command.env_clear().args(["user", "reset-code"]).args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
    (output.status.success(), said.concat())
}

async fn reset(server: &Server, id: &str, code: &str, password: &str) -> String {
    let body = json!({ "user_id": id, "code": code, "new_password": password });
    let answer = server.http.post("/user/reset_password", "", body).await;
    if answer.status == 200 { String::new() } else { answer.reason().to_owned() }
}

async fn code_lets_in(server: &Server, alice: &Person, code: &str) {
    let (mut socket, _) = server.connect(alice).await;
    assert_eq!(reset(server, "nobody", code, "a new password").await, "reset_failed");
    assert_eq!(
        reset(server, "alice", "AAAA-AAAA-AAAA-AAAA", "a new password").await,
        "reset_failed"
    );
    assert_eq!(reset(server, "alice", code, "short").await, "bad_password");
    let typed = code.to_lowercase().replace('-', " ");
    assert_eq!(reset(server, "Alice", &typed, "a new password").await, "");
    let (frames, end) = socket.expect_end().await;
    assert_eq!(end, Some(4401), "every sign-in ends: {frames:?}");
    assert_eq!(server.http.get("/user/info", &alice.token).await.status, 401);
    assert_eq!(reset(server, "alice", code, "other password").await, "reset_failed", "used");
    let login = async |password: &str| {
        let body = json!({ "user_id": "alice", "password": password, "platform_id": 5 });
        server.http.post("/auth/login", "", body).await.status
    };
    assert_eq!((login(PASSWORD).await, login("a new password").await), (401, 200));
}

#[tokio::test]
async fn who_forgot_their_password_gets_in_by_a_code_once() {
    let mut server = setup().nodes(0).start();
    let alice = server.person("alice").await;
    let data = server.data();
    let data = data.to_str().unwrap();
    let (is_made, said) = reset_code(&["alice", "--data", data]);
    assert!(!is_made && said.contains("in use by another process"), "{said}");
    assert_eq!(server.stop(), Some(0));
    let (is_made, said) = reset_code(&["nobody", "--data", data]);
    assert!(!is_made && said.contains("there is no user nobody"), "{said}");
    let (is_made, said) = reset_code(&["alice", "--data", "/nowhere"]);
    assert!(!is_made && said.contains("has no data"), "{said}");
    let (_, first) = reset_code(&["alice", "--data", data]);
    let (is_made, said) = reset_code(&["ALICE", "--data", data]);
    assert!(is_made && said.contains("alice sets a new password"), "{said}");
    server.start_again(|setup| setup);
    let code = |said: &str| said.lines().next().unwrap().to_owned();
    assert_eq!(code(&said).len(), 19, "80 bits in four groups: {said}");
    assert_eq!(reset(&server, "alice", &code(&first), "a new password").await, "reset_failed");
    code_lets_in(&server, &alice, &code(&said)).await;
}

#[tokio::test]
async fn a_code_is_made_beside_a_running_server_on_a_database() {
    let url = MariaDb::shared().fresh_database();
    let server = setup().nodes(0).with("NEXO_STORE", &url).start();
    let alice = server.person("alice").await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let (is_made, said) = reset_code(&["alice", "--store", &url, "--data", data]);
    assert!(is_made, "{said}");
    code_lets_in(&server, &alice, said.lines().next().unwrap()).await;
}

#[tokio::test]
async fn guessing_codes_is_throttled_like_guessing_passwords() {
    let server = setup().start();
    server.person("alice").await;
    let codes: Vec<String> = (0..40).map(|n| format!("AAAA-{n}")).collect();
    let guesses = codes.iter().map(|code| reset(&server, "alice", code, "a new password"));
    let reasons = futures_util::future::join_all(guesses).await;
    let count = |of: &str| reasons.iter().filter(|reason| *reason == of).count();
    let (failed, refused) = (count("reset_failed"), count("too_many_requests"));
    assert!(failed + refused == 40 && (6..=15).contains(&failed), "{reasons:?}");
}

#[tokio::test]
async fn names_are_kept_in_one_form_and_a_profile_tells_when_it_changed() {
    let server = setup().start();
    let alice = server.person("alice").await;
    let before = server.http.get("/user/info", &alice.token).await.data().clone();
    assert_eq!(before["updated_at"], before["created_at"]);
    let update = async |nickname: &str| {
        server.http.put("/user/update", &alice.token, json!({ "nickname": nickname })).await
    };
    let updated = update("  Ame\u{301}lie ").await;
    assert_eq!(updated.data()["nickname"], "Am\u{e9}lie");
    for bad in ["\u{200b}", "bob\u{202e}nimda", "a\u{2066}b", "a\nb", " ", &"x".repeat(129)] {
        assert_eq!(update(bad).await.reason(), "bad_nickname", "{bad:?}");
    }
    let after = server.http.get("/user/info", &alice.token).await.data().clone();
    assert_eq!(
        (&after["nickname"], &after["created_at"]),
        (&json!("Am\u{e9}lie"), &before["created_at"])
    );
    assert!(after["updated_at"].as_u64() > before["updated_at"].as_u64(), "{after}");
    assert_eq!(&after, updated.data());

    let group =
        TestGroup::with(&server.http, &alice, &[], json!({ "name": " Cafe\u{301} " })).await;
    let info = format!("/group/info?group_id={}", group.id);
    assert_eq!(server.http.get(&info, &alice.token).await.data()["name"], "Caf\u{e9}");
    let body = json!({ "group_id": group.id, "name": "a\u{202e}b" });
    let refused = server.http.put("/group/update", &alice.token, body).await;
    assert_eq!(refused.reason(), "bad_group_name");
}
