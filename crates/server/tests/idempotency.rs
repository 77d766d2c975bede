//! One message per (sender, client id), for ever.

use nexo_sim::Server;
use nexo_sim::history::read_all;
use nexo_sim::process::Setup;
use nexo_sim::socket::chat;
use serde_json::json;

fn server() -> Server {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).start()
}

#[tokio::test]
async fn a_thousand_parallel_sends_of_one_id_store_one_message() {
    let server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut b, _) = server.connect(&bob).await;
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let (http, alice) = (server.http.clone(), alice.clone());
            tokio::spawn(async move {
                let mut socket = nexo_sim::Socket::open(&http.authority).await;
                socket.auth(&alice.token).await;
                socket.until("RESEND_DONE").await;
                socket.burst((0..100).map(|_| chat("bob", "the-one", "only once"))).await;
                let mut acks = Vec::new();
                while acks.len() < 100 {
                    acks.push(socket.expect_ack("saved").await);
                }
                acks
            })
        })
        .collect();
    let mut acks = Vec::new();
    for task in tasks {
        acks.extend(task.await.unwrap());
    }
    assert_eq!(acks.len(), 1000);
    assert!(acks.iter().all(|ack| *ack == acks[0]), "all ACKs are equal");
    assert_eq!(acks[0]["msgSeq"], "1");
    assert_eq!(read_all(&server.http, &bob, "alice").await.len(), 1);
    b.expect("SINGLE_CHAT").await;
    b.expect_silence().await;
}

#[tokio::test]
async fn the_same_id_with_other_content_is_refused_and_changes_nothing() {
    let mut server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    server.person("carol").await;
    let (mut a, _) = server.connect(&alice).await;
    let first = a.send("bob", "c1", "the first").await;
    for (to, body) in [("bob", "another"), ("carol", "the first")] {
        let refused = a.send(to, "c1", body).await;
        assert_eq!(
            (&refused["type"], &refused["reason"]),
            (&json!("ERROR"), &json!("client_msg_id_conflict"))
        );
    }
    let next = a.send("bob", "c2", "no seq was used up").await;
    assert_eq!(next["msgSeq"], "2");
    assert_eq!(a.send("bob", "c1", "the first").await, first);
    assert_eq!(read_all(&server.http, &bob, "alice").await[0]["content"], "the first");

    // Also after a crash.
    server.kill();
    server.start_again(|setup| setup);
    let (mut a, _) = server.connect(&alice).await;
    assert_eq!(a.send("bob", "c1", "the first").await, first);
    assert_eq!(a.send("bob", "c1", "another").await["reason"], "client_msg_id_conflict");
}

#[tokio::test]
async fn another_persons_same_id_is_another_message() {
    let server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    let one = a.send("bob", "c1", "from Alice").await;
    let two = b.send("alice", "c1", "from Bob").await;
    assert_ne!(one["serverMsgId"], two["serverMsgId"]);
    assert_eq!((&one["msgSeq"], &two["msgSeq"]), (&json!("1"), &json!("2")));
}

#[tokio::test]
async fn refused_sends_use_no_seq_up() {
    let server = server();
    let alice = server.person("alice").await;
    server.person("bob").await;
    let (mut a, _) = server.connect(&alice).await;
    let long = "x".repeat(4097);
    for (to, id, body, reason) in [
        ("nobody", "c1", "hi", "user_not_found"),
        ("a_b", "c1", "hi", "user_not_found"),
        ("alice", "c1", "hi", "cannot_send_to_self"),
        ("bob", "c1", "", "missing_body"),
        ("bob", "c1", " \u{200b} ", "missing_body"),
        ("bob", "c1", &long, "body_too_long"),
        ("", "c1", "hi", "missing_to"),
        ("bob", "", "hi", "missing_msg_id"),
    ] {
        let refused = a.send(to, id, body).await;
        assert_eq!(refused["reason"], reason, "{refused}");
    }
    let mut frame = chat("bob", "c1", "hi");
    frame["msgType"] = json!("HOLOGRAM");
    a.say(frame).await;
    assert_eq!(a.expect("ERROR").await["reason"], "unknown_msg_type");
    assert_eq!(a.send("bob", "c1", "hi").await["msgSeq"], "1");
}
