//! Recalling a message: all members learn of it, and its text is served nowhere.

use nexo_sim::process::Setup;
use nexo_sim::{Person, Server, Socket};
use serde_json::{Value, json};

const TEXT: &str = "xyzzy-what-was-said";

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo"))
}

async fn revoke(socket: &mut Socket, message: &Value) {
    let id = &message["serverMsgId"];
    socket.say(json!({ "type": "MESSAGE_REVOKE", "clientMsgId": "r1", "serverMsgId": id })).await;
}

/// Everything a person can read of a conversation, as text.
async fn all_that_is_served(server: &Server, person: &Person, peer: &str) -> String {
    let mut shown = String::new();
    for path in [
        format!("/single-chat/message/cursor?peerUserId={peer}"),
        format!("/single-chat/message/since?peerUserId={peer}"),
        "/single-chat/conversation/cursor".to_owned(),
        "/conversation/changes?conversation_id=si_alice_bob".to_owned(),
    ] {
        let answer = server.http.get(&path, &person.token).await;
        answer.data();
        shown += &answer.text;
    }
    let mut socket = server.socket().await;
    socket.auth(&person.token).await;
    socket.say(json!({ "type": "RESEND", "cursors": { "si_alice_bob": 0 } })).await;
    socket.until("RESEND_DONE").await;
    for frame in socket.until("RESEND_DONE").await {
        shown += &frame.to_string();
    }
    shown
}

#[tokio::test]
async fn everybody_online_hears_and_the_text_is_served_nowhere() {
    let mut server = setup().start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let (mut a2, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    let sent = a.send("bob", "c1", TEXT).await;
    b.expect("SINGLE_CHAT").await;
    assert!(all_that_is_served(&server, &bob, "alice").await.contains(TEXT), "the test can see");

    revoke(&mut a, &sent).await;
    let ack = a.expect_ack("revoked").await;
    assert_eq!((&ack["clientMsgId"], &ack["serverMsgId"]), (&json!("r1"), &sent["serverMsgId"]));
    for socket in [&mut b, &mut a2, &mut a] {
        let heard = socket.expect("MESSAGE_REVOKED").await;
        assert_eq!(
            (&heard["serverMsgId"], &heard["from"]),
            (&sent["serverMsgId"], &json!("alice"))
        );
        assert_eq!((&heard["msgSeq"], &heard["changeSeq"]), (&json!("1"), &json!("1")));
    }
    a.expect_silence().await;
    // Again: the same answer, and nobody hears it twice.
    revoke(&mut a, &sent).await;
    assert_eq!(a.expect_ack("revoked").await, ack);
    b.expect_silence().await;

    for restart in [false, true] {
        if restart {
            server.kill();
            server.start_again(|setup| setup);
        }
        for (person, peer) in [(&alice, "bob"), (&bob, "alice")] {
            let shown = all_that_is_served(&server, person, peer).await;
            assert!(!shown.contains(TEXT), "{} is shown {shown}", person.id);
            assert!(shown.contains("\"revoked\":true") && shown.contains("\"status\":4"));
        }
    }
    let (mut a, _) = server.connect(&alice).await;
    assert_eq!(a.send("bob", "c1", TEXT).await, sent, "a retry is still the same message");
}

#[tokio::test]
async fn a_device_that_was_away_learns_of_it() {
    let server = setup().start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let mut sent = Vec::new();
    for i in 0..5 {
        sent.push(a.send("bob", &format!("c{i}"), "hi").await);
    }
    // Bob has it all, then goes away.
    let (mut b, got) = server.connect(&bob).await;
    b.ack("read", "alice", &got[4]).await;
    b.expect_silence().await;
    drop(b);
    for message in [&sent[3], &sent[1]] {
        revoke(&mut a, message).await;
        a.expect_ack("revoked").await;
    }
    let (_, resent) = server.connect(&bob).await;
    assert!(resent.is_empty(), "no message is new");
    let heads = server.http.get("/conversation/heads", &bob.token).await;
    let head = &heads.data()["heads"][0];
    assert_eq!((&head["change_seq"], &head["unread_count"]), (&json!(2), &json!(0)));
    let path = "/conversation/changes?conversation_id=si_alice_bob&limit=1";
    let first = server.http.get(&format!("{path}&since=0"), &bob.token).await;
    assert_eq!(first.body["has_more"], true);
    assert_eq!(
        (&first.data()[0]["seq"], &first.data()[0]["kind"]),
        (&json!(4), &json!("recalled"))
    );
    let second = server.http.get(&format!("{path}&since=1"), &bob.token).await;
    assert_eq!((&second.data()[0]["seq"], &second.body["has_more"]), (&json!(2), &json!(false)));
}

#[tokio::test]
async fn only_the_sender_and_only_for_a_while() {
    let server = setup().with("NEXO_MESSAGES__RECALL_SECONDS", "1").start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let carol = server.person("carol").await;
    let (mut sender, _) = server.connect(&alice).await;
    let (mut peer, _) = server.connect(&bob).await;
    let (mut stranger, _) = server.connect(&carol).await;
    let sent = sender.send("bob", "c1", TEXT).await;
    let quick = sender.send("bob", "c2", "taken back in time").await;
    revoke(&mut peer, &sent).await;
    assert_eq!(peer.expect("ERROR").await["reason"], "not_message_sender");
    revoke(&mut stranger, &sent).await;
    assert_eq!(stranger.expect("ERROR").await["reason"], "message_not_found");
    let body = |id: &Value| json!({ "server_msg_id": id });
    let over_http =
        server.http.post("/msg/recall", &alice.token, body(&quick["serverMsgId"])).await;
    assert_eq!(
        (&over_http.data()["status"], &over_http.data()["content"]),
        (&json!(4), &json!(""))
    );
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    revoke(&mut sender, &sent).await;
    assert_eq!(sender.expect("ERROR").await["reason"], "revoke_timeout");
    revoke(&mut sender, &quick).await;
    sender.expect_ack("revoked").await;
    for (id, status, reason) in [
        (json!("nonsense"), 400, "bad_server_msg_id"),
        (json!("A".repeat(26)), 404, "message_not_found"),
        (sent["serverMsgId"].clone(), 403, "revoke_timeout"),
    ] {
        let refused = server.http.post("/msg/recall", &alice.token, body(&id)).await;
        assert_eq!((refused.status, refused.reason()), (status, reason));
    }
    let refused = server.http.post("/msg/recall", &carol.token, body(&quick["serverMsgId"])).await;
    assert_eq!(refused.reason(), "message_not_found");
    let strange = "/conversation/changes?conversation_id=si_alice_bob";
    assert_eq!(server.http.get(strange, &carol.token).await.reason(), "conversation_not_found");
    assert!(all_that_is_served(&server, &bob, "alice").await.contains(TEXT), "it stays");
}

#[tokio::test]
async fn a_page_that_was_read_before_goes_out_without_the_text() {
    let server = setup().with("NEXO_RESEND__PAGE_BYTES", "20000000").start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let padding = "x".repeat(60_000);
    for i in 0..199 {
        let mut frame = nexo_sim::socket::chat("bob", &format!("c{i}"), &padding);
        frame["msgType"] = json!("CUSTOM");
        a.say(frame).await;
        a.expect_ack("saved").await;
    }
    let last = a.send("bob", "last", TEXT).await;
    // Twelve megabytes wait for Bob, who does not read yet; the last message is among them.
    let mut b = server.socket().await;
    b.say(json!({ "type": "AUTH", "token": bob.token })).await;
    let waiting = async || {
        let token = std::fs::read_to_string(server.data().join("metrics.token")).unwrap();
        let page = server.http.get("/metrics", token.trim()).await.text;
        page.contains("nexo_resent_total 200")
    };
    while !waiting().await {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    revoke(&mut a, &last).await;
    a.expect_ack("revoked").await;
    let frames = b.until("RESEND_DONE").await;
    let text = frames.iter().find(|frame| frame["body"] == TEXT);
    assert_eq!(text, None);
    let last = frames.iter().rfind(|frame| frame["type"] == "SINGLE_CHAT").unwrap();
    assert_eq!((&last["msgSeq"], &last["revoked"]), (&json!("200"), &json!(true)));
}
