//! Blocks and consent: whom a user does not want to hear from.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use nexo_sim::TestGroup;
use nexo_sim::person::Person;
use nexo_sim::process::{Server, Setup};
use serde_json::{Value, json};

fn start() -> Server {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).start()
}

async fn post(server: &Server, who: &Person, path: &str, body: Value) -> String {
    let answer = server.http.post(path, &who.token, body).await;
    if answer.status == 200 { String::new() } else { answer.reason().to_owned() }
}

#[tokio::test]
async fn a_blocked_person_reaches_nobody_and_learns_nothing() {
    let server = start();
    let [alice, mallory] = server.people(["alice", "mallory"]).await;
    let (mut a, _) = server.connect(&alice).await;
    let (mut m, _) = server.connect(&mallory).await;
    m.send("alice", "c1", "hello").await;
    let first = a.expect("SINGLE_CHAT").await;
    a.ack("read", "mallory", &first).await;
    m.expect_ack("read").await;
    assert_eq!(post(&server, &alice, "/user/block", json!({ "user_id": "Mallory" })).await, "");
    assert_eq!(
        post(&server, &alice, "/user/block", json!({ "user_id": "mallory" })).await,
        "",
        "again"
    );
    for _ in 0..2 {
        assert_eq!(a.expect("CONVERSATION_SETTINGS").await["receive"], "blocked");
    }
    let ack = m.send("alice", "c2", "are you there?").await;
    assert_eq!(ack["ackType"], "saved", "they are not told");
    a.expect_silence().await;
    // What is read anyway is not reported, and presence is hidden.
    let body = json!({ "conversation_id": "si_alice_mallory", "read_seq": 2 });
    assert_eq!(post(&server, &alice, "/conversation/mark_read", body).await, "");
    m.expect_silence().await;
    let seen = server
        .http
        .post("/user/get_users_online_status", &mallory.token, json!({ "user_ids": ["alice"] }))
        .await;
    assert_eq!(seen.data()[0]["status"], 0);
    assert!(seen.data()[0]["last_seen_at"].is_null());
    // Nor can they put her into a group.
    let group = TestGroup::new(&server.http, &mallory, &[]).await;
    let body = json!({ "group_id": group.id, "user_ids": ["alice"] });
    let invited = server.http.post("/group/invite", &mallory.token, body).await;
    assert_eq!(invited.data()["joined"], json!([]));
    let listed = server.http.get("/user/blocks", &alice.token).await;
    assert_eq!(listed.data()["user_ids"], json!(["mallory"]));
    assert_eq!(post(&server, &alice, "/user/unblock", json!({ "user_id": "mallory" })).await, "");
    m.send("alice", "c3", "and now?").await;
    assert_eq!(a.expect("SINGLE_CHAT").await["body"], "and now?");
    assert_eq!(server.http.get("/user/blocks", &alice.token).await.data()["user_ids"], json!([]));
}

#[tokio::test]
async fn strangers_can_be_blocked_and_nonsense_is_refused() {
    let server = start();
    let [alice, _mallory] = server.people(["alice", "mallory"]).await;
    assert_eq!(post(&server, &alice, "/user/block", json!({ "user_id": "mallory" })).await, "");
    for (user, reason) in
        [("alice", "target_is_self"), ("nobody-here", "user_not_found"), ("a_b", "user_not_found")]
    {
        let body = json!({ "user_id": user });
        assert_eq!(post(&server, &alice, "/user/block", body.clone()).await, reason);
        assert_eq!(post(&server, &alice, "/user/unblock", body).await, reason);
    }
}

#[tokio::test]
async fn the_operator_may_let_blocked_people_know() {
    let server =
        Setup::new(env!("CARGO_BIN_EXE_nexo")).with("NEXO_ACCOUNTS__TELL_BLOCKED", "true").start();
    let [alice, mallory] = server.people(["alice", "mallory"]).await;
    assert_eq!(post(&server, &alice, "/user/block", json!({ "user_id": "mallory" })).await, "");
    let (mut m, _) = server.connect(&mallory).await;
    assert_eq!(m.send("alice", "c1", "hello").await["reason"], "receiver_blocked");
    let (mut a, _) = server.connect(&alice).await;
    assert_eq!(a.send("mallory", "c1", "I may").await["ackType"], "saved");
}

#[tokio::test]
async fn consent_decides_who_begins_a_conversation() {
    let server = start();
    let [alice, bob, carol] = server.people(["alice", "bob", "carol"]).await;
    let (mut b, _) = server.connect(&bob).await;
    let (mut c, _) = server.connect(&carol).await;
    assert_eq!(b.send("alice", "c1", "before").await["ackType"], "saved");
    let choose = async |body: Value| {
        let done = server.http.put("/user/consent", &alice.token, body).await;
        (done.status, done.body)
    };
    assert_eq!(choose(json!({ "write": "nobody", "invite": "nobody" })).await.0, 200);
    assert_eq!(c.send("alice", "c1", "hi").await["reason"], "not_accepting");
    assert_eq!(b.send("alice", "c2", "we talk already").await["ackType"], "saved");
    let group = TestGroup::new(&server.http, &carol, &[]).await;
    let body = json!({ "group_id": group.id, "user_ids": ["alice", "bob"] });
    let invited = server.http.post("/group/invite", &carol.token, body).await;
    assert_eq!(invited.data()["joined"], json!(["bob"]));
    assert_eq!(choose(json!({ "write": "shared_group" })).await.0, 200);
    assert_eq!(c.send("alice", "c2", "hi").await["reason"], "not_accepting");
    let _shared = TestGroup::new(&server.http, &alice, &[&carol]).await;
    assert_eq!(c.send("alice", "c3", "hi").await["ackType"], "saved");
    // She writes first: then she can be answered.
    let dave = server.person("dave").await;
    assert_eq!(choose(json!({ "write": "nobody" })).await.0, 200);
    let (mut a, _) = server.connect(&alice).await;
    a.send("dave", "c9", "hello Dave").await;
    let (mut d, _) = server.connect(&dave).await;
    assert_eq!(d.send("alice", "c1", "hello").await["ackType"], "saved");
    assert_eq!(choose(json!({ "write": "friends" })).await.1["reason"], "invalid_param");
    let shown = server.http.get("/user/consent", &alice.token).await;
    assert_eq!(
        (&shown.data()["write"], &shown.data()["online"]),
        (&json!("nobody"), &json!("everybody"))
    );
}

#[tokio::test]
async fn presence_is_hidden_from_those_it_is_not_for() {
    let server = start();
    let [alice, bob] = server.people(["alice", "bob"]).await;
    let (mut a, _) = server.connect(&alice).await;
    a.send("bob", "c1", "hi").await;
    let seen = async || {
        let body = json!({ "user_ids": ["alice"] });
        let seen = server.http.post("/user/get_users_online_status", &bob.token, body).await;
        seen.data()[0].clone()
    };
    assert_eq!(seen().await["status"], 1);
    let body = json!({ "online": "nobody", "last_seen": "nobody" });
    server.http.put("/user/consent", &alice.token, body).await.data();
    assert_eq!(seen().await["status"], 0);
    drop(a);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert!(seen().await["last_seen_at"].is_null());
}

#[tokio::test]
async fn nobody_begins_conversations_without_end() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo"))
        .with("NEXO_ACCOUNTS__STRANGERS_PER_HOUR", "3")
        .with("NEXO_LIMITS__USER_SENDS_PER_SECOND", "0")
        .start();
    let spammer = server.person("spammer").await;
    let (mut s, _) = server.connect(&spammer).await;
    for n in 0..5 {
        server.person(&format!("victim{n}")).await;
        let answer = s.send(&format!("victim{n}"), &format!("c{n}"), "buy").await;
        if n < 3 {
            assert_eq!(answer["ackType"], "saved");
        } else {
            assert_eq!(answer["reason"], "too_many_strangers");
        }
    }
    assert_eq!(s.send("victim0", "d1", "more").await["ackType"], "saved");
}

#[tokio::test]
async fn a_burst_into_a_new_conversation_counts_once() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo"))
        .with("NEXO_ACCOUNTS__STRANGERS_PER_HOUR", "1")
        .start();
    let [alice, _bob] = server.people(["alice", "bob"]).await;
    let (mut a, _) = server.connect(&alice).await;
    a.burst((0..50).map(|n| nexo_sim::socket::chat("bob", &format!("c{n}"), "hi"))).await;
    for n in 0..50 {
        assert_eq!(a.answer(&format!("c{n}")).await["ackType"], "saved");
    }
}
