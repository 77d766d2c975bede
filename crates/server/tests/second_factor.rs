//! A second factor: a code of an authenticator app after the password.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use data_encoding::BASE32_NOPAD;
use nexo_chat::totp;
use nexo_sim::clock::wall_clock;
use nexo_sim::http::HttpResponse;
use nexo_sim::person::{PASSWORD, Person};
use nexo_sim::process::{Server, Setup};
use serde_json::{Value, json};

async fn login(server: &Server, code: Option<&str>) -> HttpResponse {
    let mut body = json!({ "user_id": "alice", "password": PASSWORD });
    if let Some(code) = code {
        body["totp_code"] = code.into();
    }
    server.http.post("/auth/login", "", body).await
}

/// Turns it on. Returns the secret, the next code and the recovery codes.
async fn turn_on(server: &Server, alice: &Person) -> (Vec<u8>, String, Vec<String>) {
    let body = json!({ "password": PASSWORD });
    let begun = server.http.post("/user/totp/begin", &alice.token, body).await;
    let secret = BASE32_NOPAD.decode(begun.data()["secret"].as_str().unwrap().as_bytes()).unwrap();
    assert!(begun.data()["uri"].as_str().unwrap().starts_with("otpauth://totp/Nexo:alice?"));
    assert_eq!(login(server, None).await.status, 200, "not before it is confirmed");
    let wrong =
        server.http.post("/user/totp/confirm", &alice.token, json!({ "code": "000000" })).await;
    assert_eq!(wrong.reason(), "totp_wrong");
    // The next code is accepted already, and still is if its step begins meanwhile.
    let now = wall_clock();
    let [code, next] = [now, now.plus(30_000)].map(|at| totp::shown_at(&secret, at).unwrap());
    let confirmed =
        server.http.post("/user/totp/confirm", &alice.token, json!({ "code": code })).await;
    let codes: &Vec<Value> = confirmed.data()["recovery_codes"].as_array().unwrap();
    (secret, next, codes.iter().map(|code| code.as_str().unwrap().to_owned()).collect())
}

#[tokio::test]
async fn sign_in_asks_for_a_code_which_works_once() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let alice = server.person("alice").await;
    let refused =
        server.http.post("/user/totp/begin", &alice.token, json!({ "password": "wrong" })).await;
    assert_eq!(refused.reason(), "login_failed");
    let (secret, code, recovery) = turn_on(&server, &alice).await;
    assert_eq!(recovery.len(), 10);
    assert_eq!(login(&server, None).await.reason(), "totp_required");
    assert_eq!(login(&server, Some("123")).await.reason(), "totp_wrong");
    assert_eq!(login(&server, Some(&code)).await.status, 200);
    assert_eq!(login(&server, Some(&code)).await.reason(), "totp_wrong", "it was used");
    assert_eq!(login(&server, Some(&recovery[3].to_lowercase())).await.status, 200);
    assert_eq!(login(&server, Some(&recovery[3])).await.reason(), "totp_wrong", "it was used");
    // Whoever lacks the password does not learn that there is a second factor.
    let body = json!({ "user_id": "alice", "password": "wrong password" });
    assert_eq!(server.http.post("/auth/login", "", body).await.reason(), "login_failed");
    let again =
        server.http.post("/user/totp/begin", &alice.token, json!({ "password": PASSWORD })).await;
    assert_eq!(again.reason(), "forbidden");
    let body = json!({ "password": PASSWORD, "code": "000000" });
    assert_eq!(
        server.http.post("/user/totp/remove", &alice.token, body).await.reason(),
        "totp_wrong"
    );
    let body = json!({ "password": PASSWORD, "code": recovery[4] });
    server.http.post("/user/totp/remove", &alice.token, body).await.data();
    assert_eq!(login(&server, None).await.status, 200);
    assert!(!server.log().contains(&BASE32_NOPAD.encode(&secret)));
}

#[tokio::test]
async fn of_two_sign_ins_with_one_code_one_succeeds() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let alice = server.person("alice").await;
    let (_, code, _) = turn_on(&server, &alice).await;
    let (one, two) = tokio::join!(login(&server, Some(&code)), login(&server, Some(&code)));
    let signed_in = [one.status, two.status].iter().filter(|status| **status == 200).count();
    assert_eq!(signed_in, 1, "{} {}", one.text, two.text);
}
