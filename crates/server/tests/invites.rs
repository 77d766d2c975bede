//! Invite links: the only way to an account where registration is by invitation.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use nexo_sim::process::{Server, Setup};
use serde_json::{Value, json};

fn start(invites_by: &str) -> (Server, String) {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo"))
        .with("NEXO_AUTH__REGISTRATION", "invite")
        .with("NEXO_AUTH__INVITES_BY", invites_by)
        .start();
    let token = std::fs::read_to_string(server.data().join("system.token")).unwrap();
    (server, token.trim().to_owned())
}

async fn register(server: &Server, id: &str, invite: Option<&str>) -> String {
    let mut body = json!({ "user_id": id, "nickname": id, "password": nexo_sim::person::PASSWORD });
    if let Some(invite) = invite {
        body["invite"] = invite.into();
    }
    let answer = server.http.post("/user/register", "", body).await;
    if answer.status == 200 { String::new() } else { answer.reason().to_owned() }
}

#[tokio::test]
async fn an_account_needs_a_link_that_has_uses_and_time_left() {
    let (server, token) = start("operator");
    assert_eq!(server.http.get("/server/info", "").await.data()["registration"], "invite");
    for wrong in [None, Some(""), Some("AAAA"), Some("' OR 1=1")] {
        assert_eq!(register(&server, "eve", wrong).await, "invite_invalid", "{wrong:?}");
    }
    let made = server.http.post("/admin/invites", &token, json!({ "uses": 2 })).await;
    let code = made.data()["code"].as_str().unwrap().to_owned();
    assert_eq!(made.data()["path"], json!(format!("/#/invite/{code}")));
    assert_eq!(register(&server, "alice", Some(&code)).await, "");
    assert_eq!(register(&server, "Alice", Some(&code)).await, "user_exists", "which costs no use");
    assert_eq!(register(&server, "bob", Some(&code.to_lowercase())).await, "");
    assert_eq!(register(&server, "carol", Some(&code)).await, "invite_invalid");
    let listed = server.http.get("/admin/invites", &token).await;
    let row = &listed.data()[0];
    assert_eq!((&row["uses"], &row["user_ids"]), (&json!(2), &json!(["alice", "bob"])));
    assert!(!listed.text.contains(&code));

    let made = server.http.post("/admin/invites", &token, json!({ "expires_in": 1 })).await;
    let code = made.data()["code"].as_str().unwrap().to_owned();
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(register(&server, "carol", Some(&code)).await, "invite_invalid");

    let made = server.http.post("/admin/invites", &token, json!({})).await;
    let (code, id) = (made.data()["code"].clone(), made.data()["invite_id"].clone());
    let path = format!("/admin/invites/{}", id.as_str().unwrap());
    server.http.delete(&path, &token).await.data();
    assert_eq!(register(&server, "carol", code.as_str()).await, "invite_invalid");
    for (body, field) in
        [(json!({ "uses": 0 }), "uses"), (json!({ "expires_in": 0 }), "expires_in")]
    {
        let refused = server.http.post("/admin/invites", &token, body).await;
        assert!(refused.reason() == "invalid_param" && refused.text.contains(field));
    }
}

#[tokio::test]
async fn a_link_is_used_no_more_often_than_it_says_however_many_try_at_once() {
    let (server, token) = start("operator");
    let made = server.http.post("/admin/invites", &token, json!({ "uses": 3 })).await;
    let code = made.data()["code"].as_str().unwrap().to_owned();
    let tries = (0..10).map(|n| {
        let (http, code) = (server.http.clone(), code.clone());
        tokio::spawn(async move {
            let body = json!({ "user_id": format!("u{n}"), "nickname": "x",
                "password": nexo_sim::person::PASSWORD, "invite": code });
            http.post("/user/register", "", body).await.status
        })
    });
    let mut made = 0;
    for tried in tries.collect::<Vec<_>>() {
        made += u32::from(tried.await.unwrap() == 200);
    }
    assert_eq!(made, 3);
}

#[tokio::test]
async fn members_invite_if_the_operator_lets_them() {
    for (invites_by, allowed) in [("operator", false), ("members", true)] {
        let (server, token) = start(invites_by);
        server
            .http
            .put("/admin/users/alice", &token, json!({ "password": nexo_sim::person::PASSWORD }))
            .await
            .data();
        let alice = nexo_sim::person::Person::sign_in(&server.http, "alice", 5).await;
        let made = server.http.post("/user/invites", &alice.token, json!({})).await;
        if !allowed {
            assert_eq!(made.reason(), "forbidden");
            continue;
        }
        let code = made.data()["code"].as_str().unwrap().to_owned();
        assert_eq!(register(&server, "bob", Some(&code)).await, "");
        let bob = nexo_sim::person::Person::sign_in(&server.http, "bob", 5).await;
        let listed = server.http.get("/user/invites", &alice.token).await;
        assert_eq!(listed.data()[0]["user_ids"], json!(["bob"]));
        assert_eq!(
            server.http.get("/user/invites", &bob.token).await.data(),
            &Value::Array(Vec::new())
        );
        let id = listed.data()[0]["invite_id"].as_str().unwrap().to_owned();
        let path = format!("/user/invites/{id}");
        assert_eq!(server.http.delete(&path, &bob.token).await.reason(), "not_found");
        server.http.delete(&path, &alice.token).await.data();
    }
}
