//! The JSON Schema of the typed dialect is what a real server says and takes.

use std::collections::BTreeSet;

use nexo_sim::process::Setup;
use nexo_sim::schema::SchemaDocument;
use nexo_sim::socket::chat;
use nexo_sim::{Socket, TestGroup};
use serde_json::{Value, json};

/// Says a frame that the schema must know.
async fn say(schema: &Value, socket: &mut Socket, frame: Value) {
    let misfits = misfits(schema, "ClientFrame", &frame);
    assert!(misfits.is_empty(), "{frame}\n{misfits:#?}");
    socket.say(frame).await;
}

/// What does not fit in the form that this frame comes nearest to.
fn misfits(schema: &Value, side: &str, frame: &Value) -> Vec<String> {
    let forms = SchemaDocument(schema);
    let all = schema["$defs"][side]["oneOf"].as_array().expect("frames").iter();
    let nearest = all.map(|form| forms.violations(form, frame)).min_by_key(Vec::len);
    nearest.expect("a form")
}

/// The name of the form that a frame fits in.
fn name(schema: &Value, frame: &Value) -> String {
    let forms = SchemaDocument(schema);
    let mut all = schema["$defs"]["ServerFrame"]["oneOf"].as_array().expect("frames").iter();
    let found = all.find(|form| forms.violations(form, frame).is_empty());
    let found =
        found.unwrap_or_else(|| panic!("{frame}\n{:#?}", misfits(schema, "ServerFrame", frame)));
    found["$ref"].as_str().expect("a reference").to_owned()
}

#[tokio::test]
async fn every_frame_is_as_the_schema_says() {
    let mut server = Setup::new(env!("CARGO_BIN_EXE_nexo"))
        .with("NEXO_GROUPS__STRATEGY", "push")
        .with("NEXO_GATEWAY__PING_AFTER_MS", "300")
        .start();
    let schema = server.http.get("/docs/typed.schema.json", "").await.body;
    let [alice, bob, carol] = server.people(["alice", "bob", "carol"]).await;
    let mut heard = Vec::new();
    let mut sockets = Vec::new();
    for person in [&alice, &alice, &bob, &carol] {
        let mut socket = server.socket().await;
        heard.push(socket.auth(&person.token).await);
        sockets.push(socket);
    }
    let [a, _, b, c] = &mut sockets[..] else { panic!("four sockets") };

    say(&schema, a, json!({ "type": "PING" })).await;
    say(&schema, a, json!({ "type": "PONG" })).await;
    say(&schema, a, json!({ "type": "REAUTH", "token": alice.token })).await;
    let said = json!({ "type": "SINGLE_CHAT", "clientMsgId": 1, "to": "bob", "body": "x",
        "msgType": "IMAGE", "extra": { "a": "b" } });
    say(&schema, a, said).await;
    let message = b.expect("SINGLE_CHAT").await;
    say(&schema, a, json!({ "type": "TYPING", "to": "bob" })).await;
    for kind in ["delivered", "read"] {
        let ack = json!({ "type": "ACK", "ackType": kind, "serverMsgId": message["serverMsgId"],
            "msgSeq": message["msgSeq"], "to": "alice" });
        say(&schema, b, ack).await;
    }
    let answer = json!({ "type": "SINGLE_CHAT", "clientMsgId": "b", "to": "alice", "body": "y",
        "replyToServerMsgId": message["serverMsgId"] });
    say(&schema, b, answer).await;
    let revoke = json!({ "type": "MESSAGE_REVOKE", "serverMsgId": message["serverMsgId"] });
    say(&schema, a, revoke).await;
    heard.push(message);
    say(&schema, a, chat("nobody", "lost", "hello")).await;
    say(&schema, a, json!({ "type": "RESEND", "cursors": { "si_alice_bob": "0" } })).await;

    let group =
        TestGroup::with(&server.http, &alice, &[&bob], json!({ "join_type": "approval" })).await;
    for (by, what, body) in [
        (&carol, "join", json!({ "message": "please" })),
        (&alice, "join_decide", json!({ "user_id": "carol", "accept": true })),
        (&alice, "set_role", json!({ "user_id": "bob", "role": 1 })),
        (&alice, "mute", json!({ "user_id": "carol", "seconds": 60 })),
        (&alice, "mute_all", json!({ "on": true })),
    ] {
        group.ask(by, what, body).await.data();
    }
    let said = json!({ "type": "GROUP_CHAT", "clientMsgId": "g", "groupId": group.id, "body": "all",
        "mentions": ["@all", "bob"] });
    say(&schema, a, said).await;
    heard.push(c.expect("GROUP_CHAT").await);
    let update = json!({ "group_id": group.id, "name": "New", "join_type": "open" });
    server.http.put("/group/update", &alice.token, update).await.data();
    let settings = json!({ "conversation_id": "si_alice_bob", "recv_msg_opt": 1 });
    server.http.put("/conversation/update", &alice.token, settings).await.data();
    let profile = json!({ "nickname": "Alice L." });
    server.http.put("/user/update", &alice.token, profile).await.data();
    for (by, what, body) in [
        (&alice, "kick", json!({ "user_id": "carol" })),
        (&alice, "transfer", json!({ "user_id": "bob" })),
        (&alice, "quit", json!({})),
        (&bob, "dissolve", json!({})),
    ] {
        group.ask(by, what, body).await.data();
    }
    heard.push(a.expect("PING").await);
    let mut stranger = server.socket().await;
    say(&schema, &mut stranger, json!({ "type": "AUTH", "token": "nonsense" })).await;
    heard.extend(stranger.expect_end().await.0);
    server.stop();
    for socket in &mut sockets {
        heard.extend(socket.expect_end().await.0);
    }

    let seen: BTreeSet<String> = heard.iter().map(|frame| name(&schema, frame)).collect();
    for form in schema["$defs"]["ServerFrame"]["oneOf"].as_array().unwrap() {
        let name = form["$ref"].as_str().unwrap();
        // Asked for by other settings, where these are held to the schema.
        let is_rare = ["GroupNotify", "AckAccepted", "AckDropped"];
        let is_rare = is_rare.iter().any(|rare| name.ends_with(rare));
        assert!(is_rare || seen.contains(name), "{name} was not heard");
    }
}
