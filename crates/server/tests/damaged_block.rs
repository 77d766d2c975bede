//! One flipped bit in an old block costs only the messages of that block: everything around it is read,
//! everybody else goes on, and the operator is told.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::fs;
use std::path::PathBuf;

use nexo_sim::person::Person;
use nexo_sim::process::{Server, Setup};
use nexo_sim::socket::{chat, seq};
use serde_json::{Value, json};

const COUNT: u64 = 700;

/// Text that does not compress, so that a block has about one message.
fn body(n: u64) -> String {
    let mut state = n;
    let letters = (0..4_000).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
    });
    letters.collect()
}

/// Flips a bit in the middle of the largest table of messages.
fn flip_a_bit(server: &Server) {
    let tables = fs::read_dir(server.data().join("trees/messages/tables")).unwrap();
    let tables = tables.map(|entry| entry.unwrap().path());
    let table: PathBuf = tables.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = fs::read(&table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(table, bytes).unwrap();
}

/// Pulls a conversation in pages; returns the seqs of messages and the damaged ones.
async fn pull(server: &Server, reader: &Person, conversation: &str) -> (Vec<u64>, Vec<u64>) {
    let (mut found, mut damaged, mut next) = (Vec::new(), Vec::new(), 1);
    loop {
        let path = format!("/msg/pull?conversation_id={conversation}&begin_seq={next}&limit=100");
        let page = server.http.get(&path, &reader.token).await;
        let page = page.data();
        found.extend(
            page["messages"].as_array().unwrap().iter().map(|it| it["seq"].as_u64().unwrap()),
        );
        for range in page["damaged"].as_array().into_iter().flatten() {
            damaged.extend(range["from"].as_u64().unwrap()..=range["to"].as_u64().unwrap());
        }
        if page["has_more"] == false {
            return (found, damaged);
        }
        let end = found.iter().chain(&damaged).max().unwrap() + 1;
        assert!(end > next, "the same page again");
        next = end;
    }
}

#[tokio::test]
async fn one_damaged_block_costs_only_its_own_messages() {
    let setup = Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(0);
    let mut server = setup.with("NEXO_EMBEDDED__MEMTABLE_MIB", "1").start();
    let [alice, bob, carol] = server.people(["alice", "bob", "carol"]).await;
    let (mut a, _) = server.connect(&alice).await;
    for n in 1..=COUNT {
        a.say(chat("bob", &format!("b-{n}"), &body(n))).await;
        a.expect_ack("saved").await;
    }
    a.send("carol", "c-1", "hello").await;
    assert_eq!(server.stop(), Some(0));
    flip_a_bit(&server);
    server.start_again(|setup| setup);

    // The history around it.
    let (found, damaged) = pull(&server, &bob, "si_alice_bob").await;
    assert!((1..=4).contains(&damaged.len()), "{damaged:?}");
    let mut all = [found.clone(), damaged.clone()].concat();
    all.sort_unstable();
    assert_eq!(all, (1..=COUNT).collect::<Vec<_>>(), "each is there or damaged, once");
    let lost = damaged[0];
    let only = format!("/msg/pull?conversation_id=si_alice_bob&begin_seq={lost}&end_seq={lost}");
    let refused = server.http.get(&only, &bob.token).await;
    assert_eq!((refused.status, refused.reason()), (500, "damaged"));
    let since =
        format!("/single-chat/message/since?peerUserId=alice&sinceSeq={}&limit=9", lost - 2);
    let since = server.http.get(&since, &bob.token).await;
    assert_eq!(since.body["damaged"][0]["from"], lost.to_string(), "{}", since.text);
    assert_eq!(seq(&since.body["data"][0]), lost - 1);

    // Catching up goes around it, and ends.
    let (mut b, mut frames) = server.connect(&bob).await;
    for page in 1.. {
        b.say(json!({ "type": "RESEND" })).await;
        let (resent, done) = b.up_to("RESEND_DONE").await;
        frames.extend(resent);
        if done["hasMore"] == false {
            break;
        }
        assert!(page < 20, "it never ends");
    }
    let is_chat = |frame: &&Value| frame["type"] == "SINGLE_CHAT";
    let mut caught: Vec<u64> = frames.iter().filter(is_chat).map(seq).collect();
    caught.sort_unstable();
    assert_eq!(caught, found);

    // The conversation goes on, and nothing is stored twice.
    let (mut a, _) = server.connect(&alice).await;
    assert_eq!(seq(&a.send("bob", "b-new", "goes on").await), COUNT + 1);
    a.say(chat("bob", &format!("b-{lost}"), &body(lost))).await;
    assert_eq!(a.expect("ERROR").await["reason"], "damaged");
    a.say(chat("bob", &format!("b-{}", lost - 1), &body(lost - 1))).await;
    assert_eq!(seq(&a.expect_ack("saved").await), lost - 1, "a retry beside it is a duplicate");

    // Everybody else.
    assert_eq!(seq(&a.send("carol", "c-2", "hello again").await), 2);
    assert_eq!(pull(&server, &carol, "si_alice_carol").await, (vec![1, 2], vec![]));
    let all = server.http.get("/conversation/all", &alice.token).await;
    assert_eq!(all.data()["list"].as_array().unwrap().len(), 2);

    // The operator.
    let token = fs::read_to_string(server.data().join("metrics.token")).unwrap();
    let ready = server.http.get("/readyz", "").await;
    assert_eq!((ready.status, &ready.body), (200, &json!({ "status": "degraded" })));
    let ready = server.http.get("/readyz", token.trim()).await;
    assert!(ready.body["damaged_places"].as_u64().unwrap() > 0, "{}", ready.text);
    let metrics = server.http.get("/metrics", token.trim()).await.text;
    for name in ["nexo_store_damaged_places", "nexo_store_damaged_reads_total"] {
        let line = metrics.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(!line.ends_with(" 0"), "{line}");
    }
    assert_eq!(server.stop(), Some(0));
    let log = server.log();
    let lines = log.lines().filter(|line| line.contains("stored data is damaged")).count();
    assert!((1..=3).contains(&lines), "{lines} lines about one place");
}
