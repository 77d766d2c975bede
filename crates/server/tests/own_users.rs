//! Own users: people sign in with tokens of the app's own identity provider.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::time::Duration;

use nexo_sim::person::PASSWORD;
use nexo_sim::process::Setup;
use nexo_sim::{HttpResponse, IdentityProvider, Server};
use serde_json::{Value, json};

fn setup(provider: &IdentityProvider) -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo"))
        .with("NEXO_AUTH__TOKEN__JWKS_URL", &provider.jwks_url())
        .with("NEXO_AUTH__TOKEN__ISSUER", &provider.issuer)
        .with("NEXO_AUTH__TOKEN__AUDIENCE", "nexo")
}

async fn sign_in(server: &Server, token: &str) -> HttpResponse {
    let body = json!({ "token": token, "platform_id": 5, "device_name": "a browser" });
    server.http.post("/auth/token", "", body).await
}

/// The token of a sign-in that succeeds.
async fn signed_in(server: &Server, token: &str) -> String {
    sign_in(server, token).await.data()["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_token_of_the_app_signs_in_and_makes_the_account() {
    let provider = IdentityProvider::start().await;
    let server = setup(&provider).start();
    let info = server.http.get("/server/info", "").await;
    assert_eq!(info.data()["sign_in"], json!({ "password": true, "token": true }));
    let alice = provider.token("first", "Alice-7", &json!({}));
    let first = sign_in(&server, &alice).await;
    assert_eq!(first.data()["user_info"]["nickname"], "Alice-7 of the app");
    let token = first.data()["token"].as_str().unwrap();
    let info = server.http.get("/user/info", token).await;
    assert_eq!(info.data()["id"], "Alice-7");
    // The same account again, and one that somebody registered.
    let again = sign_in(&server, &alice).await;
    assert_eq!(again.data()["user_info"], first.data()["user_info"]);
    let bob = server.person("bob").await;
    let token = signed_in(&server, &provider.token("first", "bob", &json!({}))).await;
    let info = server.http.get("/user/info", &token).await;
    assert_eq!(
        info.data()["nickname"],
        server.http.get("/user/info", &bob.token).await.data()["nickname"]
    );
    // A sign-in as any other: it is refreshed, ended, and opens a socket.
    let refresh = json!({ "refresh_token": again.data()["refresh_token"] });
    let renewed = server.http.post("/auth/refresh", "", refresh).await;
    let renewed = renewed.data()["token"].as_str().unwrap().to_owned();
    let mut socket = server.socket().await;
    assert_eq!(socket.auth(&renewed).await["type"], "AUTH_OK");
    server.http.post("/auth/logout", &renewed, Value::Null).await.data();
    assert_eq!(server.http.get("/user/info", &renewed).await.reason(), "session_invalid");
}

#[tokio::test]
async fn an_account_of_the_app_has_no_password() {
    let provider = IdentityProvider::start().await;
    let server = setup(&provider).start();
    let token = signed_in(&server, &provider.token("first", "alice", &json!({}))).await;
    for password in ["", " ", PASSWORD, "$argon2id$v=19$m=8,t=1,p=1$", "\u{0}"] {
        let body = json!({ "user_id": "alice", "password": password });
        let answer = server.http.post("/auth/login", "", body).await;
        assert_eq!(answer.reason(), "login_failed", "{password:?}");
        let body = json!({ "old_password": password, "new_password": "blue otter cooks" });
        let answer = server.http.post("/user/change_password", &token, body).await;
        assert_eq!(answer.reason(), "login_failed", "{password:?}");
    }
    let body = json!({ "user_id": "alice", "nickname": "a", "password": PASSWORD });
    let answer = server.http.post("/user/register", "", body).await;
    assert_eq!(answer.reason(), "user_exists");
}

/// The token with another first character of its signature. Not the last one: most of its bits mean nothing.
fn with_other_signature(token: &str) -> String {
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let first = if signature.starts_with('A') { 'B' } else { 'A' };
    format!("{signed}.{first}{}", &signature[1..])
}

#[tokio::test]
async fn every_refusal_looks_the_same_and_only_the_log_says_why() {
    let provider = IdentityProvider::start().await;
    let mut server = setup(&provider).start();
    let bob = provider.token("first", "bob", &json!({}));
    signed_in(&server, &bob).await;
    let refused = [
        ("expired", provider.token("first", "eve", &json!({ "exp": 1 }))),
        ("no_expiry", provider.token("first", "eve", &json!({ "exp": null }))),
        ("not_yet_valid", provider.token("first", "eve", &json!({ "nbf": 9_999_999_998_u64 }))),
        ("wrong_issuer", provider.token("first", "eve", &json!({ "iss": "http://evil" }))),
        ("wrong_audience", provider.token("first", "eve", &json!({ "aud": "another app" }))),
        ("unknown_key", provider.token("never published", "eve", &json!({}))),
        ("bad_user_id", provider.token("first", "eve@example.com", &json!({}))),
        ("reserved_user_id", provider.token("first", "admin", &json!({}))),
        ("no_user_id", provider.token("first", "eve", &json!({ "sub": null }))),
        ("looks_like_another", provider.token("first", "B0b", &json!({}))),
        ("looks_like_another", provider.token("first", "BOB", &json!({}))),
        ("wrong_signature", with_other_signature(&bob)),
        ("malformed", "nonsense".to_owned()),
        ("malformed", String::new()),
        ("too_large", "x".repeat(9000)),
    ];
    let mut answers = Vec::new();
    for (why, token) in &refused {
        let mut answer = sign_in(&server, token).await;
        answer.body["request_id"] = Value::Null;
        assert_eq!((answer.status, answer.reason()), (401, "token_refused"), "{why}");
        answers.push(answer.body);
    }
    assert!(answers.windows(2).all(|two| two[0] == two[1]), "{answers:#?}");
    let odd = json!({ "token": bob, "device_name": "a\u{202e}b" });
    let odd = server.http.post("/auth/token", "", odd).await;
    assert_eq!(odd.reason(), "invalid_param");
    server.stop();
    let log = server.log();
    for (why, token) in &refused {
        assert!(log.contains(&format!("\"reason\":\"{why}\"")), "{why}\n{log}");
        assert!(token.is_empty() || !log.contains(token.as_str()), "no token is logged");
    }
    assert!(!log.contains("eve@example.com"), "what is no id is not logged");
}

#[tokio::test]
async fn who_is_disabled_or_deleted_is_not_let_in_by_their_provider() {
    let provider = IdentityProvider::start().await;
    let server = setup(&provider).start();
    let bob = provider.token("first", "bob", &json!({}));
    signed_in(&server, &bob).await;
    let system = std::fs::read_to_string(server.data().join("system.token")).unwrap();
    server.http.post("/admin/users/bob/disable", system.trim(), json!({})).await.data();
    assert_eq!(sign_in(&server, &bob).await.reason(), "account_disabled");
    server.http.delete("/admin/users/bob", system.trim()).await.data();
    assert_eq!(sign_in(&server, &bob).await.reason(), "token_refused");
}

#[tokio::test]
async fn without_create_only_people_with_an_account_sign_in() {
    let provider = IdentityProvider::start().await;
    let server = setup(&provider).with("NEXO_AUTH__TOKEN__CREATE", "false").start();
    server.person("bob").await;
    let carol = sign_in(&server, &provider.token("first", "carol", &json!({}))).await;
    assert_eq!(carol.reason(), "token_refused");
    signed_in(&server, &provider.token("first", "bob", &json!({}))).await;
}

#[tokio::test]
async fn a_server_without_a_provider_takes_no_tokens() {
    let provider = IdentityProvider::start().await;
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let answer = sign_in(&server, &provider.token("first", "alice", &json!({}))).await;
    assert_eq!((answer.status, answer.reason()), (403, "forbidden"));
}

#[tokio::test]
async fn new_keys_are_found_and_old_ones_forgotten() {
    let provider = IdentityProvider::start().await;
    let server = setup(&provider).start();
    let first = provider.token("first", "alice", &json!({}));
    signed_in(&server, &first).await;
    let before = provider.key_requests();
    // The provider changes its key. A token that names the new one has the keys fetched again, but not within half a
    // minute of the last time, which was the start.
    provider.publish(&["second"]);
    let second = provider.token("second", "alice", &json!({}));
    let mut is_found = false;
    for _ in 0..40 {
        is_found = sign_in(&server, &second).await.status == 200;
        if is_found {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(is_found, "within half a minute");
    assert_eq!(provider.key_requests(), before + 1, "one more request was enough");
    assert_eq!(sign_in(&server, &first).await.reason(), "token_refused", "that key is gone");
}

#[tokio::test]
async fn invented_keys_do_not_burden_the_provider() {
    let provider = IdentityProvider::start().await;
    let server = setup(&provider).start();
    signed_in(&server, &provider.token("first", "alice", &json!({}))).await;
    // Of one address only so many are looked at; the rest of the ten thousand is in `jwks.rs`.
    for n in 0..90 {
        let token = provider.token(&format!("invented {n}"), "alice", &json!({}));
        assert_eq!(sign_in(&server, &token).await.reason(), "token_refused");
    }
    assert!(provider.key_requests() <= 3, "{}", provider.key_requests());
    signed_in(&server, &provider.token("first", "alice", &json!({}))).await;
}

#[tokio::test]
async fn a_provider_that_is_away_keeps_nobody_out_whose_key_is_known() {
    let provider = IdentityProvider::start().await;
    provider.set_away(true);
    let server = setup(&provider).start();
    let alice = provider.token("first", "alice", &json!({}));
    let busy = sign_in(&server, &alice).await;
    assert_eq!((busy.status, busy.reason()), (503, "server_busy"), "nothing was decided");
    provider.set_away(false);
    tokio::time::sleep(Duration::from_millis(2500)).await;
    signed_in(&server, &alice).await;
    provider.set_away(true);
    signed_in(&server, &alice).await;
    // A key that is not known cannot be asked for now.
    let other = provider.token("second", "alice", &json!({}));
    assert_eq!(sign_in(&server, &other).await.reason(), "token_refused");
    signed_in(&server, &alice).await;
}

#[tokio::test]
async fn an_address_that_sends_nonsense_waits() {
    let provider = IdentityProvider::start().await;
    let server = setup(&provider).start();
    let begun = std::time::Instant::now();
    for _ in 0..103 {
        sign_in(&server, "nonsense").await;
    }
    // 100 are free; then 250 and 500 ms. Meanwhile another one has become free.
    assert!(begun.elapsed() >= Duration::from_millis(750), "{:?}", begun.elapsed());
}
