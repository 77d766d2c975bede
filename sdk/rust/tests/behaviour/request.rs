//! Requests the SDK has no method for.
use std::time::Duration;

use nexo_sdk::{Client, Error, Reason, Reply};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fake::Fake;
use crate::server::Server;

/// The status of a request made without the SDK.
async fn ask_alone(server: &Server, token: &str) -> u16 {
    let host = server.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!(
        "GET /user/info HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

async fn info(client: &Client) -> Result<Reply<Value>, Error> {
    client.request("GET", "/user/info", None).await
}

#[tokio::test]
async fn a_path_the_sdk_has_no_method_for_is_asked_for_with_the_token() {
    let server = Server::start();
    let alice = server.person("alice").await;
    let query = Some(json!({ "user_id": "alice" }));
    let asked: Reply<Value> = alice.request("get", "/user/info", query).await.unwrap();
    assert_eq!((asked.code, &asked.data["user_id"]), (0, &json!("alice")));
    assert!(!asked.request_id.is_empty());
    let name = Some(json!({ "nickname": "Al" }));
    let changed: Reply<Value> = alice.request("PUT", "/user/update", name).await.unwrap();
    assert_eq!(changed.data["nickname"], "Al");
    let group = Some(json!({ "group_id": "none" }));
    let refused = alice.request::<Value>("GET", "/group/info", group).await.unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::GroupNotFound));
    // A refusal for another reason does not end the sign-in.
    let login = Some(json!({ "user_id": "alice", "password": "wrong one", "platform_id": 5 }));
    let refused = alice.request::<Value>("POST", "/auth/login", login).await.unwrap_err();
    assert_eq!(refused.reason(), Some(Reason::LoginFailed));
    assert_eq!(alice.me().as_deref(), Some("alice"));
}

#[tokio::test]
async fn the_token_is_good_outside_the_client_too_also_when_the_one_before_has_died() {
    let server = Server::with(&[("NEXO_AUTH__ACCESS_TOKEN_SECONDS", "2")]);
    let alice = server.person("alice").await;
    let first = alice.token().await.unwrap();
    assert_eq!(ask_alone(&server, &first).await, 200);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(ask_alone(&server, &first).await, 401);
    assert_eq!(ask_alone(&server, &alice.token().await.unwrap()).await, 200);
    assert_eq!(info(&alice).await.unwrap().code, 0);
}

#[tokio::test]
async fn while_nobody_is_signed_in_what_needs_no_token_is_answered_and_the_rest_is_refused() {
    let server = Server::start();
    let nobody = server.client();
    let about: Reply<Value> = nobody.request("GET", "/server/info", None).await.unwrap();
    assert!(about.data["version"].is_string(), "{about:?}");
    let missing = Some(Reason::MissingToken);
    assert_eq!(info(&nobody).await.unwrap_err().reason(), missing);
    assert_eq!(nobody.token().await.unwrap_err().reason(), missing);
}

#[tokio::test]
async fn the_token_goes_to_no_other_host() {
    let fake = Fake::start().await;
    let me = fake.person(|_| {}).await;
    for path in [".evil.example/x", "@evil.example/x", "https://evil.example/x", "//evil.example/x"]
    {
        let asked = me.request::<Value>("GET", path, None).await;
        assert!(matches!(asked, Err(Error::InvalidRequest(_))), "{path}");
    }
    assert_eq!(fake.asked(".evil") + fake.asked("@evil") + fake.asked("http"), 0);
    assert_eq!(fake.asked("//evil"), 0);
}
