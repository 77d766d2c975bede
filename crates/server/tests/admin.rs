//! The admin API: accounts, sign-ins, groups, messages and the audit log, as operators and backends use it.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use nexo_sim::TestGroup;
use nexo_sim::process::{Server, Setup};
use serde_json::{Value, json};

/// A server, and an operator's token.
fn start() -> (Server, String) {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let token = std::fs::read_to_string(server.data().join("system.token")).unwrap();
    (server, token.trim().to_owned())
}

async fn login(server: &Server, id: &str) -> nexo_sim::http::HttpResponse {
    let body = json!({ "user_id": id, "password": nexo_sim::person::PASSWORD });
    server.http.post("/auth/login", "", body).await
}

#[tokio::test]
async fn a_backend_makes_users_and_signs_them_in() {
    let (server, token) = start();
    let path = "/admin/users/shopper-1";
    let made = server.http.put(path, &token, json!({ "nickname": "Shopper" })).await;
    assert_eq!(made.data()["created"], true);
    assert_eq!(made.data()["user"]["has_password"], false);
    let changed = server.http.put(path, &token, json!({ "avatar": "a.png" })).await;
    assert_eq!(changed.data()["created"], false);
    assert_eq!(changed.data()["user"]["nickname"], "Shopper");
    let signed =
        server.http.post(&format!("{path}/login"), &token, json!({ "platform_id": 5 })).await;
    let user_token = signed.data()["token"].as_str().unwrap().to_owned();
    assert_eq!(server.http.get("/user/info", &user_token).await.data()["avatar"], "a.png");
    let missing = server.http.post("/admin/users/shopper-2/login", &token, json!({})).await;
    assert_eq!(missing.reason(), "user_not_found");
    let body = json!({ "create": true, "nickname": "Two" });
    let signed = server.http.post("/admin/users/shopper-2/login", &token, body).await;
    assert_eq!(signed.data()["user_info"]["nickname"], "Two");
    // Nobody signs in by password where there is none.
    for password in ["", "x", "long enough"] {
        let body = json!({ "user_id": "shopper-1", "password": password });
        assert_eq!(server.http.post("/auth/login", "", body).await.reason(), "login_failed");
    }
    for reserved in ["admin", "system", "Adm1n"] {
        let refused = server.http.put(&format!("/admin/users/{reserved}"), &token, json!({})).await;
        assert_eq!(refused.reason(), "reserved_user_id", "{reserved}");
    }
    let lookalike = server.http.put("/admin/users/sh0pper-1", &token, json!({})).await;
    assert_eq!(lookalike.reason(), "user_exists");
}

#[tokio::test]
async fn many_users_are_imported_line_by_line() {
    let (server, token) = start();
    let mut lines: Vec<String> = (0..300)
        .map(|n| json!({ "user_id": format!("u{n}"), "nickname": "N" }).to_string())
        .collect();
    lines.insert(10, "{not json".to_owned());
    lines.insert(20, json!({ "user_id": "no spaces" }).to_string());
    lines.push(String::new());
    lines.push(json!({ "user_id": "u0", "nickname": "again", "unknown": 1 }).to_string());
    let body = lines.join("\n");
    let request = format!(
        "POST /admin/users/import HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\
         Authorization: Bearer {token}\r\n\r\n{body}",
        server.http.authority,
        body.len()
    );
    let done = server.http.raw(request.as_bytes()).await;
    let data = done.data();
    assert_eq!(
        (&data["created"], &data["changed"], &data["failed"]),
        (&json!(300), &json!(1), &json!(2))
    );
    assert_eq!(data["failures"][0]["line"], 11);
    let found = server.http.get("/admin/users?limit=1000", &token).await;
    assert_eq!(found.data()["users"].as_array().unwrap().len(), 300);
}

#[tokio::test]
async fn a_bot_never_has_a_password() {
    let (server, token) = start();
    server.person("helper").await;
    let put = async |body: Value| server.http.put("/admin/users/helper", &token, body).await;
    let both = put(json!({ "is_bot": true, "password": "long enough words" })).await;
    assert_eq!(both.reason(), "bad_password");
    assert_eq!(put(json!({ "is_bot": true })).await.data()["user"]["has_password"], false);
    assert_eq!(login(&server, "helper").await.reason(), "login_failed");
    assert_eq!(put(json!({ "password": "long enough words" })).await.reason(), "bad_password");
    let code = server.http.post("/admin/users/helper/reset_code", &token, json!({})).await;
    assert_eq!(code.reason(), "bad_password");
}

#[tokio::test]
async fn users_are_listed_in_pages_and_searched() {
    let (server, token) = start();
    for id in ["anna", "berta", "carla", "dora"] {
        server
            .http
            .put(&format!("/admin/users/{id}"), &token, json!({ "nickname": "Frau" }))
            .await
            .data();
    }
    let mut ids: Vec<Value> = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = server.http.get(&format!("/admin/users?limit=1{cursor}"), &token).await;
        ids.extend(page.data()["users"].as_array().unwrap().iter().map(|it| it["user_id"].clone()));
        match page.data()["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(ids, ["anna", "berta", "carla", "dora"]);
    let found = async |query: &str| {
        let page = server.http.get(&format!("/admin/users?{query}"), &token).await;
        page.data()["users"].as_array().unwrap().len()
    };
    assert_eq!(found("search=ARL").await, 1);
    assert_eq!(found("search=frau").await, 4);
    assert_eq!(found("search=%25").await, 0, "no wildcards");
    assert_eq!(found("status=disabled").await, 0);
    let refused = server.http.get("/admin/users?status=odd", &token).await;
    assert_eq!(refused.reason(), "invalid_param");
}

#[tokio::test]
async fn a_disabled_user_is_out_at_once_and_comes_back_when_enabled() {
    let (server, token) = start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let (mut a, _) = server.connect(&alice).await;
    a.send("bob", "c1", "hi").await;
    let path = "/admin/users/alice";
    let body = json!({ "reason": "spam" });
    let done = server.http.post(&format!("{path}/disable"), &token, body).await;
    assert_eq!(done.data()["status"], "disabled");
    let (frames, code) = a.expect_end().await;
    assert_eq!(code, Some(4405), "{frames:?}");
    assert!(frames.iter().any(|frame| frame["reason"] == "account_disabled"), "{frames:?}");
    assert_eq!(server.http.get("/user/info", &alice.token).await.reason(), "account_disabled");
    let refreshed =
        server.http.post("/auth/refresh", "", json!({ "refresh_token": alice.refresh })).await;
    assert_eq!(refreshed.status, 401);
    assert_eq!(login(&server, "alice").await.reason(), "account_disabled");
    let by_key = server.http.post(&format!("{path}/login"), &token, json!({})).await;
    assert_eq!(by_key.reason(), "account_disabled");
    // Whoever does not know the password learns nothing.
    let wrong = json!({ "user_id": "alice", "password": "wrong password" });
    assert_eq!(server.http.post("/auth/login", "", wrong).await.reason(), "login_failed");
    // Others still see what was said.
    let seen = server.http.get("/single-chat/message/cursor?peerUserId=alice", &bob.token).await;
    assert_eq!(seen.data().as_array().unwrap().len(), 1);
    server.http.post(&format!("{path}/enable"), &token, json!({})).await.data();
    assert_eq!(login(&server, "alice").await.status, 200);
}

#[tokio::test]
async fn a_disabled_user_is_enabled_when_the_time_is_over() {
    let (server, token) = start();
    server.person("alice").await;
    let body = json!({ "reason": "", "seconds": 1 });
    server.http.post("/admin/users/alice/disable", &token, body).await.data();
    assert_eq!(login(&server, "alice").await.reason(), "account_disabled");
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(login(&server, "alice").await.status, 200);
}

#[tokio::test]
async fn a_deleted_user_is_gone_for_good() {
    let (server, token) = start();
    let [alice, bob, carol] = server.people(["alice", "bob", "carol"]).await;
    let (mut a, _) = server.connect(&alice).await;
    a.send("bob", "c1", "secret").await;
    let owned = TestGroup::new(&server.http, &alice, &[&bob, &carol]).await;
    let joined = TestGroup::new(&server.http, &bob, &[&alice]).await;
    let alone = TestGroup::new(&server.http, &alice, &[]).await;
    server.http.delete("/admin/users/alice?messages=remove", &token).await.data();
    a.expect_end().await;
    assert_eq!(login(&server, "alice").await.reason(), "login_failed");
    assert_eq!(server.http.get("/user/info", &alice.token).await.status, 401);
    let body = json!({ "user_id": "alice", "nickname": "x", "password": "long enough" });
    assert_eq!(server.http.post("/user/register", "", body).await.reason(), "user_exists");
    let (mut b, _) = server.connect(&bob).await;
    assert_eq!(b.send("alice", "c2", "there?").await["reason"], "user_not_found");
    let seen = server.http.get("/single-chat/message/cursor?peerUserId=alice", &bob.token).await;
    assert!(!seen.text.contains("secret"), "{}", seen.text);
    let group = |id: &str| format!("/admin/groups/{id}");
    let inherited = server.http.get(&group(&owned.id), &token).await;
    assert_eq!(inherited.data()["owner_id"], "bob");
    assert_eq!(inherited.data()["member_count"], 2);
    assert_eq!(server.http.get(&group(&joined.id), &token).await.data()["member_count"], 1);
    assert_eq!(server.http.get(&group(&alone.id), &token).await.data()["is_ended"], true);
    let shown = server.http.get("/admin/users/alice", &token).await;
    assert_eq!(
        (&shown.data()["status"], &shown.data()["nickname"]),
        (&json!("deleted"), &json!(""))
    );
    for act in ["disable", "enable", "reset_code", "login"] {
        let refused =
            server.http.post(&format!("/admin/users/alice/{act}"), &token, json!({})).await;
        assert_eq!(refused.reason(), "user_not_found", "{act}");
    }
    server.http.delete("/admin/users/alice", &token).await.data(); // again: nothing happens
}

#[tokio::test]
async fn sessions_are_listed_and_ended() {
    let (server, token) = start();
    let alice = server.person("alice").await;
    let other = nexo_sim::person::Person::sign_in(&server.http, "alice", 2).await;
    let (mut a, _) = server.connect(&alice).await;
    let (mut o, _) = server.connect(&other).await;
    let listed = server.http.get("/admin/users/alice/sessions", &token).await;
    let devices = listed.data().as_array().unwrap();
    assert_eq!(devices.len(), 2);
    assert!(devices.iter().all(|it| it["is_online"] == true && it["address"] == "127.0.0.1"));
    // The user sees the same, and which of them they are using.
    let own = server.http.get("/user/devices", &other.token).await;
    let current: Vec<bool> =
        own.data().as_array().unwrap().iter().map(|it| it["is_current"] == true).collect();
    assert_eq!(current, [true, false], "newest first");
    let ended =
        server.http.post("/user/devices/end", &other.token, json!({ "others": true })).await;
    assert_eq!(ended.data()["ended"], 1);
    a.expect_end().await;
    assert_eq!(server.http.get("/user/info", &alice.token).await.status, 401);
    assert_eq!(server.http.get("/user/info", &other.token).await.status, 200);
    let unknown = json!({ "login_id": "AEBAGBAFAYDQQCIKBMGA2DQPCA" });
    let refused = server.http.post("/user/devices/end", &other.token, unknown).await;
    assert_eq!(refused.reason(), "not_found");
    let ended = server.http.post("/admin/users/alice/sessions/end", &token, json!({})).await;
    assert_eq!(ended.data()["ended"], 1);
    o.expect_end().await;
}

#[tokio::test]
async fn the_operator_manages_groups() {
    let (server, token) = start();
    let [olga, max, ida] = server.people(["olga", "max", "ida"]).await;
    let group = TestGroup::new(&server.http, &olga, &[&max]).await;
    let (mut m, _) = server.connect(&max).await;
    let act = async |what: &str, body: Value| {
        server.http.post(&format!("/admin/groups/{}/{what}", group.id), &token, body).await
    };
    assert_eq!(
        act("add", json!({ "user_ids": ["ida", "max"] })).await.data()["joined"],
        json!(["ida"])
    );
    let told = m.expect("GROUP_CHANGED").await;
    assert_eq!((&told["event"], &told["from"]), (&json!("joined"), &json!("system")), "{told}");
    assert_eq!(act("transfer", json!({ "user_id": "max" })).await.data()["owner_id"], "max");
    assert_eq!(act("remove", json!({ "user_id": "max" })).await.reason(), "cannot_touch_owner");
    assert_eq!(act("remove", json!({ "user_id": "olga" })).await.data()["member_count"], 2);
    let members =
        server.http.get(&format!("/admin/groups/{}/members?limit=1", group.id), &token).await;
    assert_eq!(members.data()["members"][0]["user_id"], "ida");
    assert_eq!(members.data()["next_cursor"], "ida");
    assert_eq!(act("dissolve", json!({})).await.data()["is_ended"], true);
    assert_eq!(act("dissolve", json!({})).await.reason(), "group_dissolved");
    let found = server.http.get("/admin/groups?search=max", &token).await;
    assert_eq!(found.data()["groups"][0]["group_id"], json!(group.id));
    assert_eq!(server.http.get("/admin/groups/nowhere", &token).await.reason(), "group_not_found");
    drop(ida);
}

#[tokio::test]
async fn the_operator_reads_around_a_message_and_unsends_it() {
    let (server, token) = start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    let mut ids = Vec::new();
    for n in 0..5 {
        let ack = a.send("bob", &format!("c{n}"), &format!("text {n}")).await;
        ids.push(ack["serverMsgId"].as_str().unwrap().to_owned());
    }
    let path = format!("/admin/messages/{}", ids[2]);
    let around = server.http.get(&format!("{path}/around?before=1&after=1"), &token).await;
    let texts = around.data()["messages"].as_array().unwrap().len();
    assert_eq!(texts, 3, "{}", around.text);
    server.http.post(&format!("{path}/recall"), &token, json!({})).await.data();
    let told = b.find(|frame| frame["type"] == "MESSAGE_REVOKED", "the recall").await;
    assert_eq!(told["serverMsgId"], json!(ids[2]));
    let gone = server.http.get(&path, &token).await;
    assert!(!gone.text.contains("text 2"), "{}", gone.text);
    let unknown = server.http.get("/admin/messages/AAAAAAAAAAAAAAAAAAAAAAAAAA", &token).await;
    assert_eq!(unknown.reason(), "message_not_found");
}

#[tokio::test]
async fn every_act_is_in_the_audit_log_which_is_a_chain() {
    let (server, token) = start();
    server.person("alice").await;
    let wrong = json!({ "user_id": "alice", "password": "wrong password" });
    server.http.post("/auth/login", "", wrong).await;
    server
        .http
        .post("/admin/users/alice/disable", &token, json!({ "reason": "spam" }))
        .await
        .data();
    server.http.post("/admin/users/alice/enable", &token, json!({})).await.data();
    server.http.post("/admin/users/alice/reset_code", &token, json!({})).await.data();
    let listed = server.http.get("/admin/audit?limit=1000", &token).await;
    let entries = listed.data()["entries"].as_array().unwrap();
    let actions: Vec<&str> = entries.iter().map(|it| it["action"].as_str().unwrap()).collect();
    for expected in
        ["sign_in", "sign_in_failed", "user_disabled", "user_enabled", "reset_code_created"]
    {
        assert!(actions.contains(&expected), "{expected} is missing: {actions:?}");
    }
    let disabled = entries.iter().find(|it| it["action"] == "user_disabled").unwrap();
    assert_eq!(disabled["target"], "user:alice");
    assert_eq!(disabled["details"]["reason"], "spam");
    assert_eq!(disabled["address"], "127.0.0.1");
    assert!(disabled["actor"].as_str().unwrap().starts_with("key:system.token"), "{disabled}");
    for pair in entries.windows(2) {
        assert_eq!(pair[0]["previous"], pair[1]["hash"]);
    }
    assert!(!listed.text.contains("wrong password"));
    let verified = server.http.get("/admin/audit/verify", &token).await;
    assert_eq!(verified.data()["is_intact"], true);
    assert_eq!(verified.data()["entries"], json!(entries.len()));
    let page = server.http.get("/admin/audit?limit=2", &token).await;
    let cursor = page.data()["next_cursor"].as_u64().unwrap();
    let next = server.http.get(&format!("/admin/audit?limit=2&cursor={cursor}"), &token).await;
    assert_eq!(next.data()["entries"][0]["number"], cursor - 1);
}

#[tokio::test]
async fn a_broadcast_reaches_everybody_once_also_across_a_restart() {
    let server =
        Setup::new(env!("CARGO_BIN_EXE_nexo")).with("NEXO_ACCOUNTS__BROADCAST_PER_SECOND", "100");
    let mut server = server.start();
    let token =
        std::fs::read_to_string(server.data().join("system.token")).unwrap().trim().to_owned();
    let alice = server.person("alice").await;
    for n in 0..120 {
        server.http.put(&format!("/admin/users/u{n:03}"), &token, json!({})).await.data();
    }
    server.http.put("/admin/users/gone", &token, json!({})).await.data();
    server.http.delete("/admin/users/gone", &token).await.data();
    let made = server.http.post("/admin/broadcast", &token, json!({ "text": "maintenance" })).await;
    let path = format!("/admin/broadcast/{}", made.data()["broadcast_id"].as_str().unwrap());
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    server.kill(); // in the middle
    server.start_again(|setup| setup);
    let started = std::time::Instant::now();
    let done = loop {
        let shown = server.http.get(&path, &token).await;
        if shown.data()["is_done"] == true {
            break shown;
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(30), "{}", shown.text);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    };
    // The one who was deleted is neither reached nor counted.
    assert_eq!((&done.data()["sent"], &done.data()["failed"]), (&json!(121), &json!(0)));
    let pulled = server.http.get("/msg/pull?conversation_id=si_alice_system", &alice.token).await;
    assert_eq!(pulled.data()["messages"].as_array().unwrap().len(), 1, "{}", pulled.text);
    for (body, field) in [
        (json!({ "text": " " }), "text"),
        (json!({ "text": "x".repeat(5000) }), "text"),
        (json!({ "text": "x", "user_ids": [] }), "user_ids"),
    ] {
        let refused = server.http.post("/admin/broadcast", &token, body).await;
        assert!(refused.reason() == "invalid_param" && refused.text.contains(field));
    }
    assert_eq!(server.http.get("/admin/broadcast/nothing", &token).await.reason(), "not_found");
}
