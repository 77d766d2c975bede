//! Going offline, and catching up.

use std::collections::BTreeMap;

use nexo_sim::process::Setup;
use nexo_sim::socket::{chat, seq};
use nexo_sim::{Server, Socket};
use serde_json::{Value, json};

fn server() -> Server {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).start()
}

async fn send_many(socket: &mut Socket, to: &str, count: u64) {
    socket.burst((1..=count).map(|i| chat(to, &format!("{to}-{i}"), &format!("n{i}")))).await;
    for _ in 0..count {
        socket.expect_ack("saved").await;
    }
}

/// Reads a page: the messages up to `RESEND_DONE`, and whether there is more.
async fn page(socket: &mut Socket) -> (Vec<Value>, bool) {
    let (messages, done) = socket.up_to("RESEND_DONE").await;
    let other = messages.iter().find(|frame| frame["type"] != "SINGLE_CHAT");
    assert!(other.is_none(), "unexpected {other:?}");
    (messages, done["hasMore"] == true)
}

#[tokio::test]
async fn a_thousand_messages_come_in_pages_in_order_and_once() {
    let server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    send_many(&mut a, "bob", 1000).await;

    let mut b = server.socket().await;
    b.auth(&bob.token).await;
    let mut got = Vec::new();
    loop {
        let (messages, has_more) = page(&mut b).await;
        assert!(messages.len() <= 200, "{} in a page", messages.len());
        got.extend(messages);
        assert_eq!(has_more, got.len() < 1000);
        if !has_more {
            break;
        }
        b.say(json!({ "type": "RESEND" })).await;
    }
    assert_eq!(got.iter().map(seq).collect::<Vec<_>>(), (1..=1000).collect::<Vec<_>>());

    // Nothing was acknowledged: another device gets it all again, from the start.
    let mut other = server.socket().await;
    other.auth(&bob.token).await;
    let (messages, has_more) = page(&mut other).await;
    assert_eq!((seq(&messages[0]), has_more), (1, true));

    b.ack("delivered", "alice", &got[999]).await;
    b.expect_silence().await;
    let (_, resent) = server.connect(&bob).await;
    assert_eq!(resent, Vec::<Value>::new(), "nothing twice after the ACK");
}

#[tokio::test]
async fn a_page_after_acks_continues_where_they_stop() {
    let server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    send_many(&mut a, "bob", 250).await;
    let (mut b, first) = server.connect(&bob).await;
    b.ack("delivered", "alice", &first[99]).await;
    b.expect_silence().await;
    drop(b);
    let (_, second) = server.connect(&bob).await;
    assert_eq!((seq(&second[0]), second.len()), (101, 150));
}

#[tokio::test]
async fn a_device_with_cursors_of_its_own_gets_what_it_lacks() {
    let server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    send_many(&mut a, "bob", 10).await;
    let (mut phone, got) = server.connect(&bob).await;
    phone.ack("read", "alice", &got[9]).await;
    phone.expect_silence().await;
    let (mut tablet, nothing) = server.connect(&bob).await;
    assert!(nothing.is_empty());
    for (at, expect) in [(json!("4"), 5..=10), (json!(9), 10..=10), (json!(0), 1..=10)] {
        tablet.say(json!({ "type": "RESEND", "cursors": { "si_alice_bob": at } })).await;
        let (messages, has_more) = page(&mut tablet).await;
        assert_eq!(messages.iter().map(seq).collect::<Vec<_>>(), expect.collect::<Vec<_>>());
        assert!(!has_more);
    }
    // Somebody else's conversation, one that is not, beyond the end: nothing.
    for id in ["si_alice_carol", "si_x_y", "si_alice_bob"] {
        let beyond = json!({ "type": "RESEND", "cursors": { id: u64::MAX } });
        tablet.say(beyond).await;
        assert_eq!(page(&mut tablet).await, (vec![], false));
    }
    for bad in
        [json!({ "nonsense": 1 }), json!({ "si_alice_bob": -1 }), json!({ "si_alice_bob": "x" })]
    {
        tablet.say(json!({ "type": "RESEND", "cursors": bad })).await;
        assert_eq!(tablet.next().await["type"], "ERROR");
    }
}

#[tokio::test]
async fn a_page_is_shared_fairly_among_conversations() {
    let server = server();
    let bob = server.person("bob").await;
    let loud = server.person("loud").await;
    let (mut l, _) = server.connect(&loud).await;
    send_many(&mut l, "bob", 500).await;
    for i in 0..20 {
        let quiet = server.person(&format!("quiet{i}")).await;
        let (mut q, _) = server.connect(&quiet).await;
        send_many(&mut q, "bob", 2).await;
    }
    let (_, first) = server.connect(&bob).await;
    assert_eq!(first.len(), 200);
    let mut by_sender: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for message in &first {
        let from = message["from"].as_str().unwrap().to_owned();
        by_sender.entry(from).or_default().push(seq(message));
    }
    assert_eq!(by_sender.len(), 21, "everybody is in the first page");
    assert_eq!(by_sender["loud"], (1..=160).collect::<Vec<_>>());
    assert!(by_sender.iter().all(|(_, seqs)| seqs.is_sorted()));
}

#[tokio::test]
async fn catching_up_survives_a_restart() {
    let mut server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    send_many(&mut a, "bob", 5).await;
    assert_eq!(server.stop(), Some(0));
    server.start_again(|setup| setup);
    let (mut b, resent) = server.connect(&bob).await;
    assert_eq!(resent.iter().map(seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    b.ack("delivered", "alice", &resent[4]).await;
    b.expect_silence().await;
    // A clean stop keeps the cursor too.
    assert_eq!(server.stop(), Some(0));
    server.start_again(|setup| setup);
    let (_, resent) = server.connect(&bob).await;
    assert!(resent.is_empty());
}

/// All pages from here to the end.
async fn rest(socket: &mut Socket) -> Vec<Value> {
    let mut got = Vec::new();
    loop {
        let (messages, has_more) = page(socket).await;
        got.extend(messages);
        if !has_more {
            return socket.without_duplicates(got);
        }
        socket.say(json!({ "type": "RESEND" })).await;
    }
}

#[tokio::test]
async fn answering_before_catching_up_skips_nothing() {
    let server = server();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    send_many(&mut a, "bob", 500).await;
    let (mut b, first) = server.connect(&bob).await;
    assert_eq!(first.len(), 200);
    b.ack("delivered", "alice", &first[199]).await;
    b.send("alice", "answer", "I am back").await;
    drop(b);
    let mut b = server.socket().await;
    b.auth(&bob.token).await;
    let got = rest(&mut b).await;
    assert_eq!(got.iter().map(seq).collect::<Vec<_>>(), (201..=501).collect::<Vec<_>>());
    // Own messages need no acknowledgement once everything before them is there.
    b.ack("delivered", "alice", &got[299]).await;
    b.expect_silence().await;
    let (_, resent) = server.connect(&bob).await;
    assert!(resent.is_empty());
}

#[tokio::test]
async fn a_page_asked_for_while_another_is_written_comes_after_it() {
    // The page is larger than the outbox, so it is still being written when the second is asked for.
    let setup = Setup::new(env!("CARGO_BIN_EXE_nexo"));
    let setup = setup.with("NEXO_GATEWAY__OUTBOX_LOW_BYTES", "1000");
    let server = setup.with("NEXO_GATEWAY__OUTBOX_HIGH_BYTES", "1000000").start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let body = "x".repeat(3000);
    for i in 0..200 {
        a.send("bob", &format!("c{i}"), &body).await;
    }
    for _ in 0..10 {
        let mut b = server.socket().await;
        let auth = json!({ "type": "AUTH", "token": bob.token });
        b.burst([auth, json!({ "type": "RESEND", "cursors": { "si_alice_bob": 150 } })]).await;
        b.expect("AUTH_OK").await;
        assert_eq!(page(&mut b).await.0.len(), 200);
        assert_eq!(page(&mut b).await.0.len(), 50);
    }
}
