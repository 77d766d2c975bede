//! Presence and typing, which only users who share a conversation see.

use nexo_sim::process::Setup;
use nexo_sim::{Person, Server};
use serde_json::{Value, json};

fn server() -> Server {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).start()
}

async fn status(server: &Server, who: &Person, of: &str) -> Value {
    let body = json!({ "user_ids": [of] });
    let answer = server.http.post("/user/get_users_online_status", &who.token, body).await;
    answer.data()[0].clone()
}

#[tokio::test]
async fn online_state_follows_the_sockets_and_is_hidden_from_strangers() {
    let server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let carol = server.person("carol").await;
    let phone = Person::sign_in(&server.http, "bob", 2).await;
    let (mut a, _) = server.connect(&alice).await;
    a.send("bob", "c1", "hi").await;
    assert_eq!(status(&server, &alice, "bob").await["status"], 0);
    let (web, _) = server.connect(&bob).await;
    let (mobile, _) = server.connect(&phone).await;
    let seen = status(&server, &alice, "bob").await;
    let platforms = json!([
        { "platform_id": 2, "platform_name": "Android" },
        { "platform_id": 5, "platform_name": "Web" },
    ]);
    assert_eq!((&seen["status"], &seen["detail_platform_status"]), (&json!(1), &platforms));
    assert_eq!(status(&server, &bob, "bob").await["status"], 1, "one knows of oneself");
    let hidden = status(&server, &carol, "bob").await;
    assert_eq!(hidden, json!({ "user_id": "bob", "status": 0 }), "as if offline");
    drop((web, mobile));
    for _ in 0..100 {
        if status(&server, &alice, "bob").await["status"] == 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("Bob has gone and is still shown");
}

#[tokio::test]
async fn bad_requests_are_refused() {
    let server = server();
    let alice = server.person("alice").await;
    let many: Vec<String> = (0..101).map(|i| format!("u{i}")).collect();
    for (ids, reason) in [
        (json!([]), "invalid_param"),
        (json!(many), "invalid_param"),
        (json!(["a_b"]), "bad_user_id"),
        (json!("bob"), "invalid_param"),
    ] {
        let body = json!({ "user_ids": ids });
        let path = "/user/get_users_online_status";
        let refused = server.http.post(path, &alice.token, body).await;
        assert_eq!((refused.status, refused.reason()), (400, reason));
    }
}

#[tokio::test]
async fn typing_reaches_whom_one_talks_with() {
    let server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let carol = server.person("carol").await;
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    let (mut c, _) = server.connect(&carol).await;
    a.send("bob", "c1", "hi").await;
    b.expect("SINGLE_CHAT").await;
    b.say(json!({ "type": "TYPING", "to": "alice", "from": "carol" })).await;
    let heard = a.expect("TYPING").await;
    assert_eq!((&heard["from"], &heard["to"]), (&json!("bob"), &json!("alice")));
    for to in ["alice", "carol", "nobody"] {
        c.say(json!({ "type": "TYPING", "to": to })).await;
        assert_eq!(c.expect("ERROR").await["reason"], "conversation_not_found", "{to}");
    }
    a.expect_silence().await;
}
