//! API keys: what each scope opens, and that nothing else does.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::process::Command;

use nexo_sim::process::{Server, Setup};
use serde_json::{Value, json};

fn start() -> Server {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).start()
}

fn system_token(server: &Server) -> String {
    std::fs::read_to_string(server.data().join("system.token")).unwrap().trim().to_owned()
}

async fn new_key(server: &Server, body: Value) -> (String, String) {
    let made = server.http.post("/admin/keys", &system_token(server), body).await;
    let text = |field: &str| made.data()[field].as_str().unwrap().to_owned();
    (text("key"), text("key_id"))
}

#[tokio::test]
async fn a_key_opens_what_its_scopes_say() {
    let server = start();
    server.person("alice").await;
    let hello = json!({ "client_msg_id": "1", "session_type": 1, "recv_id": "alice", "msg_type": 1,
        "content": { "text": "hi" } });
    for (scope, users, groups, system, metrics) in [
        ("backend", 200, 403, 403, 403),
        ("admin", 200, 200, 403, 403),
        ("system", 403, 403, 200, 403),
        ("metrics", 403, 403, 403, 200),
    ] {
        let (key, _) = new_key(&server, json!({ "name": scope, "scopes": [scope] })).await;
        assert!(key.starts_with("nk_") && key.len() == 46, "{key}");
        assert_eq!(server.http.get("/admin/users", &key).await.status, users, "{scope}");
        assert_eq!(server.http.get("/admin/groups", &key).await.status, groups, "{scope}");
        let said = server.http.post("/system/send", &key, hello.clone()).await;
        assert_eq!(said.status, system, "{scope}");
        assert_eq!(server.http.get("/metrics", &key).await.status, metrics, "{scope}");
        let refused = server.http.get("/user/info", &key).await;
        assert_eq!(refused.status, 401, "a key is no sign-in");
    }
}

#[tokio::test]
async fn nobody_gives_a_key_more_than_they_have() {
    let server = start();
    let (admin, _) = new_key(&server, json!({ "name": "a", "scopes": ["admin"] })).await;
    for (scope, status) in [("backend", 200), ("admin", 200), ("metrics", 200), ("system", 403)] {
        let body = json!({ "name": scope, "scopes": [scope] });
        assert_eq!(server.http.post("/admin/keys", &admin, body).await.status, status, "{scope}");
    }
}

#[tokio::test]
async fn wrong_expired_and_revoked_keys_are_refused_alike() {
    let server = start();
    let alice = server.person("alice").await;
    let (key, id) = new_key(&server, json!({ "name": "a", "scopes": ["admin"] })).await;
    let (short, _) =
        new_key(&server, json!({ "name": "b", "scopes": ["admin"], "expires_in": 1 })).await;
    let mut almost = key.clone();
    let last = if almost.pop() == Some('A') { 'B' } else { 'A' };
    almost.push(last);
    server.http.delete(&format!("/admin/keys/{id}"), &system_token(&server)).await.data();
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    for wrong in ["", "nk_", "nk_short", &almost, &key, &short, &alice.token, "' OR 1=1 --"] {
        let refused = server.http.get("/admin/users", wrong).await;
        assert_eq!((refused.status, refused.reason()), (401, "unauthorized"), "{wrong}");
    }
    let again = server.http.delete(&format!("/admin/keys/{id}"), &system_token(&server)).await;
    assert_eq!(again.reason(), "not_found");
}

#[tokio::test]
async fn guesses_are_throttled_and_right_keys_still_work() {
    let server = start();
    let (key, _) = new_key(&server, json!({ "name": "a", "scopes": ["admin"] })).await;
    let mut throttled = 0;
    for n in 0..100 {
        let wrong = format!("nk_{n:043}");
        throttled += u32::from(server.http.get("/admin/users", &wrong).await.status == 429);
    }
    assert!(throttled >= 30, "{throttled} of 100");
    assert_eq!(server.http.get("/admin/users", &key).await.status, 200);
}

#[tokio::test]
async fn keys_are_listed_without_their_secret_and_survive_a_restart() {
    let mut server = start();
    let (key, id) =
        new_key(&server, json!({ "name": "shop", "scopes": ["backend", "metrics"] })).await;
    assert_eq!(server.http.get("/admin/users", &key).await.status, 200);
    server.stop();
    server.start_again(|setup| setup);
    assert_eq!(server.http.get("/admin/users", &key).await.status, 200);
    let listed = server.http.get("/admin/keys", &system_token(&server)).await;
    assert!(!listed.text.contains(&key[3..]), "{}", listed.text);
    let row = &listed.data()[0];
    assert_eq!(row["key_id"], json!(id));
    assert_eq!(row["scopes"], json!(["backend", "metrics"]));
    assert!(row["last_used_at"].as_u64().is_some(), "{row}");
    assert!(!server.log().contains(&key[3..]));
}

#[tokio::test]
async fn wrong_requests_for_keys_name_the_field() {
    let server = start();
    for (body, field) in [
        (json!({ "name": "", "scopes": ["admin"] }), "name"),
        (json!({ "name": "a\nb", "scopes": ["admin"] }), "name"),
        (json!({ "name": "a", "scopes": [] }), "scopes"),
        (json!({ "name": "a", "scopes": ["root"] }), "scopes"),
        (json!({ "name": "a", "scopes": ["admin"], "expires_in": 0 }), "expires_in"),
    ] {
        let refused = server.http.post("/admin/keys", &system_token(&server), body.clone()).await;
        assert_eq!(refused.reason(), "invalid_param", "{body}");
        assert!(refused.text.contains(field), "{}", refused.text);
    }
}

/// Runs `nexo` with these arguments and returns its output.
fn nexo(server: &Server, arguments: &[&str]) -> (bool, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_nexo"))
        .args(arguments)
        .arg("--data")
        .arg(server.data())
        .output()
        .unwrap();
    let text = String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap();
    (done.status.success(), text)
}

#[tokio::test]
async fn the_command_line_works_with_a_running_and_a_stopped_server() {
    let mut server = start();
    server.person("alice").await;
    let url = format!("http://{}", server.http.authority);
    let (ok, made) =
        nexo(&server, &["key", "create", "--name", "x", "--scope", "admin", "--server", &url]);
    assert!(ok, "{made}");
    let key = made.lines().next().unwrap().to_owned();
    assert_eq!(server.http.get("/admin/users", &key).await.status, 200, "{made}");
    server.stop();
    let (ok, listed) = nexo(&server, &["admin", "users", "list"]);
    assert!(ok && listed.contains("\"alice\""), "{listed}");
    let (ok, disabled) =
        nexo(&server, &["admin", "users", "disable", "alice", "--reason", "spam", "--hours", "1"]);
    assert!(ok && disabled.contains("\"disabled\""), "{disabled}");
    let (ok, verified) = nexo(&server, &["admin", "audit", "verify"]);
    assert!(ok && verified.contains("\"is_intact\": true"), "{verified}");
    let (ok, refused) = nexo(&server, &["admin", "users", "show", "nobody-here"]);
    assert!(!ok && refused.contains("no such user"), "{refused}");
    let (ok, refused) = nexo(&server, &["admin", "users", "show", "../keys"]);
    assert!(!ok && refused.contains("is no id"), "{refused}");
    server.start_again(|setup| setup);
    let body = json!({ "user_id": "alice", "password": "long enough" });
    let refused = server.http.post("/auth/login", "", body).await;
    assert_ne!(refused.status, 200);
}
