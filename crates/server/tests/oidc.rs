//! Signing in through the browser with an `OpenID` Connect provider.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use nexo_sim::identity_provider::{CLIENT_ID, CLIENT_SECRET};
use nexo_sim::process::Setup;
use nexo_sim::{HttpResponse, IdentityProvider, Server};
use serde_json::{Value, json};

/// As people reach the server; in these tests nobody resolves it.
const SERVER: &str = "http://chat.example";

fn setup(provider: &IdentityProvider) -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo"))
        .with("NEXO_AUTH__OIDC__ISSUER", &provider.issuer)
        .with("NEXO_AUTH__OIDC__CLIENT_ID", CLIENT_ID)
        .with("NEXO_AUTH__OIDC__CLIENT_SECRET", CLIENT_SECRET)
        .with("NEXO_AUTH__OIDC__REDIRECT_URL", &format!("{SERVER}/auth/oidc/callback"))
        .with("NEXO_AUTH__OIDC__NAME", "Example ID")
}

/// A browser with its cookies.
struct Browser<'a> {
    server: &'a Server,
    cookie: String,
}

impl<'a> Browser<'a> {
    fn new(server: &'a Server) -> Self {
        Self { server, cookie: String::new() }
    }

    async fn ask(&mut self, line: &str, body: &str) -> HttpResponse {
        let head = format!(
            "{line} HTTP/1.1\r\nHost: chat.example\r\nConnection: close\r\nCookie: a=1; {}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.cookie,
            body.len()
        );
        let answer = self.server.http.raw(head.as_bytes()).await;
        if let Some(cookie) = answer.header("set-cookie") {
            cookie.split(';').next().unwrap().clone_into(&mut self.cookie);
        }
        answer
    }

    /// The provider's page that it is sent to.
    async fn start(&mut self, query: &str) -> String {
        let answer = self.ask(&format!("GET /auth/oidc/start{query}"), "").await;
        assert_eq!(answer.status, 302, "{}", answer.text);
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        answer.header("location").unwrap().to_owned()
    }

    /// Follows the address that the provider sends it back to; returns where it ends.
    async fn come_back(&mut self, address: &str) -> String {
        let path = address.strip_prefix(SERVER).unwrap();
        let answer = self.ask(&format!("GET {path}"), "").await;
        assert_eq!(answer.status, 302, "{}", answer.text);
        answer.header("location").unwrap().to_owned()
    }

    async fn finish(&mut self, location: &str) -> HttpResponse {
        let code = location.split_once("#oidc=").unwrap_or_else(|| panic!("{location}")).1;
        let body = json!({ "code": code, "platform_id": 5 }).to_string();
        self.ask("POST /auth/oidc/finish", &body).await
    }
}

#[tokio::test]
async fn a_person_signs_in_at_the_provider() {
    let provider = IdentityProvider::start().await;
    let server = setup(&provider).start();
    let info = server.http.get("/server/info", "").await;
    assert_eq!(info.data()["sign_in"]["oidc"], json!({ "name": "Example ID" }));
    let mut browser = Browser::new(&server);
    let page = browser.start("?return_to=/rooms?tab=1").await;
    let back = provider.sign_in(&page, "alice", &json!({}));
    let end = browser.come_back(&back).await;
    assert!(end.starts_with("/rooms?tab=1#oidc="), "{end}");
    let signed = browser.finish(&end).await;
    assert_eq!(signed.data()["user_info"]["nickname"], "alice of the app");
    let token = signed.data()["token"].as_str().unwrap();
    assert_eq!(server.http.get("/user/info", token).await.data()["id"], "alice");
    assert_eq!(browser.finish(&end).await.reason(), "token_refused", "the code was used");
    // And once more, into the same account.
    let page = browser.start("").await;
    let end = browser.come_back(&provider.sign_in(&page, "alice", &json!({}))).await;
    assert!(end.starts_with("/#oidc="), "{end}");
    assert_eq!(browser.finish(&end).await.data()["user_info"]["id"], "alice");
}

#[tokio::test]
async fn the_cookie_is_for_this_browser_and_this_server_only() {
    let provider = IdentityProvider::start().await;
    let server = setup(&provider).start();
    let cookie = async |server: &Server| {
        let answer = server.http.get("/auth/oidc/start", "").await;
        answer.header("set-cookie").unwrap().to_owned()
    };
    let plain = cookie(&server).await;
    for part in ["nexo-oidc=", "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=600"] {
        assert!(plain.contains(part), "{part}: {plain}");
    }
    let over_tls = setup(&provider)
        .with("NEXO_AUTH__OIDC__REDIRECT_URL", "https://chat.example/auth/oidc/callback")
        .start();
    let over_tls = cookie(&over_tls).await;
    assert!(
        over_tls.starts_with("__Host-nexo-oidc=") && over_tls.contains("; Secure"),
        "{over_tls}"
    );
}

#[tokio::test]
async fn nobody_goes_on_in_another_browser() {
    let provider = IdentityProvider::start().await;
    let server = setup(&provider).start();
    let (mut alice, mut eve) = (Browser::new(&server), Browser::new(&server));
    let page = alice.start("").await;
    let eves_page = eve.start("").await;
    // Eve has Alice follow an address that ends Eve's sign-in.
    let eves_back = provider.sign_in(&eves_page, "eve", &json!({}));
    assert_eq!(alice.come_back(&eves_back).await, "/#oidc_error=token_refused");
    let eves_end = eve.come_back(&eves_back).await;
    assert_eq!(alice.finish(&eves_end).await.reason(), "token_refused", "Eve's code");
    assert_eq!(
        Browser::new(&server).finish(&eves_end).await.reason(),
        "token_refused",
        "no cookie"
    );
    // Eve steals the address that Alice is sent back to.
    let back = provider.sign_in(&page, "alice", &json!({}));
    assert_eq!(eve.come_back(&back).await, "/#oidc_error=token_refused");
    let end = alice.come_back(&back).await;
    assert_eq!(eve.finish(&end).await.reason(), "token_refused");
    assert_eq!(alice.finish(&end).await.data()["user_info"]["id"], "alice");
    assert_eq!(
        alice.come_back(&back).await,
        "/#oidc_error=token_refused",
        "the provider's code was used"
    );
}

#[tokio::test]
async fn what_the_provider_says_is_checked() {
    let provider = IdentityProvider::start().await;
    let mut server = setup(&provider).start();
    for (why, user, claims) in [
        ("wrong_nonce", "alice", json!({ "nonce": "another" })),
        ("wrong_nonce", "alice", json!({ "nonce": null })),
        ("wrong_audience", "alice", json!({ "aud": "nexo" })),
        ("wrong_audience", "alice", json!({ "aud": [CLIENT_ID, "b"], "azp": "b" })),
        ("wrong_issuer", "alice", json!({ "iss": "http://evil" })),
        ("expired", "alice", json!({ "exp": 1 })),
        ("bad_user_id", "google|123", json!({})),
        ("reserved_user_id", "system", json!({})),
    ] {
        let mut browser = Browser::new(&server);
        let page = browser.start("").await;
        let end = browser.come_back(&provider.sign_in(&page, user, &claims)).await;
        assert_eq!(end, "/#oidc_error=token_refused", "{why}");
        server.http.get("/healthz", "").await;
    }
    let mut browser = Browser::new(&server);
    let page = browser.start("").await;
    let state = page.split("state=").nth(1).unwrap().split('&').next().unwrap();
    let refused = format!("{SERVER}/auth/oidc/callback?error=access_denied&state={state}");
    assert_eq!(browser.come_back(&refused).await, "/#oidc_error=token_refused");
    let invented = format!("{SERVER}/auth/oidc/callback?code=invented&state={state}");
    assert_eq!(browser.come_back(&invented).await, "/#oidc_error=token_refused");
    let none = format!("{SERVER}/auth/oidc/callback");
    assert_eq!(browser.come_back(&none).await, "/#oidc_error=token_refused");
    for code in ["", "x", "a.b", &"x".repeat(5000)] {
        let body = json!({ "code": code }).to_string();
        let answer = browser.ask("POST /auth/oidc/finish", &body).await;
        assert_eq!(answer.reason(), "token_refused", "{code}");
    }
    server.stop();
    let log = server.log();
    for why in
        ["wrong_nonce", "wrong_audience", "refused_by_provider", "wrong_browser", "wrong_code"]
    {
        assert!(log.contains(&format!("\"reason\":\"{why}\"")), "{why}\n{log}");
    }
    for secret in [CLIENT_SECRET, state] {
        assert!(!log.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn people_return_to_this_server_only() {
    let provider = IdentityProvider::start().await;
    let server = setup(&provider).start();
    for evil in [
        "https://evil.example",
        "//evil.example",
        "/%5Cevil.example",
        "/a%0d%0ab",
        "evil",
        "/a%23b",
    ] {
        let answer = server.http.get(&format!("/auth/oidc/start?return_to={evil}"), "").await;
        assert_eq!((answer.status, answer.reason()), (400, "invalid_param"), "{evil}");
    }
}

#[tokio::test]
async fn a_provider_that_is_away_is_told_in_words() {
    let provider = IdentityProvider::start().await;
    provider.set_away(true);
    let server = setup(&provider).start();
    let answer = server.http.get("/auth/oidc/start", "").await;
    assert_eq!(answer.header("location"), Some("/#oidc_error=server_busy"));
    let without = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    for path in ["/auth/oidc/start", "/auth/oidc/callback?code=a&state=b"] {
        assert_eq!(without.http.get(path, "").await.reason(), "forbidden", "{path}");
    }
    let finish = without.http.post("/auth/oidc/finish", "", json!({ "code": "x" })).await;
    assert_eq!(finish.reason(), "forbidden");
    let info = without.http.get("/server/info", "").await;
    let ways: &Value = &info.data()["sign_in"];
    assert_eq!(*ways, json!({ "password": true, "token": false }));
}
