//! The frames on the wire, recorded by a proxy.
use std::time::Duration;

use nexo_sdk::{Client, MessageState, Target};

use crate::server::{Server, person, until};
use crate::tap::{Tap, Way};

async fn world() -> (Server, Tap, Client, Client) {
    let server = Server::start();
    let tap = Tap::before(&server.url).await;
    let alice = server.person("alice").await;
    // The gap stays open for a while, so that the acknowledgements meanwhile can be checked.
    let bob = person(&tap.url, "bob", |options| options.timing.gap_delay_ms = 600).await;
    (server, tap, alice, bob)
}

fn acks(tap: &Tap) -> Vec<(String, u64)> {
    let read = |frame: &serde_json::Value| {
        let place = frame["msgSeq"].as_str().unwrap().parse().unwrap();
        (frame["ackType"].as_str().unwrap().to_owned(), place)
    };
    tap.of(Way::Up, "ACK").iter().map(read).collect()
}

async fn seqs(client: &Client, with: &str) -> Vec<u64> {
    client.messages(Target::to(with)).await.unwrap().iter().map(|one| one.seq).collect()
}

async fn say(client: &Client, to: &str, body: &str) -> u64 {
    let sent = client.send(Target::to(to), body).await.unwrap();
    client.saved(&sent).await.unwrap().seq
}

#[tokio::test]
async fn with_a_hole_only_what_is_before_it_is_acknowledged_then_it_is_filled_then_the_rest() {
    let (_server, tap, alice, bob) = world().await;
    let mut lost = vec!["4", "5"];
    tap.swallow(move |way, frame| {
        let place = lost.iter().position(|seq| frame["msgSeq"] == *seq);
        let is_lost = way == Way::Down && frame["type"] == "SINGLE_CHAT" && place.is_some();
        is_lost && place.map(|index| lost.remove(index)).is_some()
    });
    for number in 1..=8 {
        assert_eq!(say(&alice, "bob", &number.to_string()).await, number);
    }
    until("the others arrive", async || tap.of(Way::Down, "SINGLE_CHAT").len() == 6).await;
    until("an acknowledgement", async || acks(&tap).iter().any(|(_, seq)| *seq == 3)).await;
    assert_eq!(acks(&tap).last().unwrap(), &("delivered".to_owned(), 3));
    assert_eq!(seqs(&bob, "alice").await, [1, 2, 3]);
    until("it is filled", async || seqs(&bob, "alice").await.len() == 8).await;
    until("and acknowledged", async || acks(&tap).last().unwrap().1 == 8).await;
    let places: Vec<u64> = acks(&tap).iter().map(|(_, seq)| *seq).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(!places.iter().any(|seq| (4..8).contains(seq)), "{places:?}");
    let is_pull = |line: &String| line.contains("/msg/pull") && line.contains("begin_seq=4");
    assert!(tap.asked().iter().any(is_pull), "{:?}", tap.asked());
    assert_eq!(bob.conversation(Target::to("alice")).await.unwrap().unwrap().unread, 8);
}

#[tokio::test]
async fn many_messages_are_acknowledged_a_few_times_and_a_lost_acknowledgement_again() {
    let (_server, tap, alice, bob) = world().await;
    for number in 1..=200 {
        alice.send(Target::to("bob"), format!("many {number}")).await.unwrap();
    }
    until("all of them", async || seqs(&bob, "alice").await.len() == 200).await;
    until("acknowledged", async || acks(&tap).last().is_some_and(|ack| ack.1 == 200)).await;
    assert!(acks(&tap).len() < 10, "{:?}", acks(&tap));
    tap.swallow(|way, frame| way == Way::Up && frame["type"] == "ACK");
    bob.mark_read(Target::to("alice"), None).await.unwrap();
    tokio::time::sleep(Duration::from_millis(400)).await;
    tap.swallow(|_, _| false);
    bob.refresh();
    until("acknowledged again", async || acks(&tap).last().unwrap() == &("read".to_owned(), 200))
        .await;
    let heard = async || {
        let messages = alice.messages(Target::to("bob")).await.unwrap();
        messages.last().unwrap().state == MessageState::Read
    };
    until("heard", heard).await;
}

#[tokio::test]
async fn a_message_without_an_answer_goes_again_under_the_same_name_and_is_stored_once() {
    let (_server, tap, alice, bob) = world().await;
    let mut lost = 0;
    tap.swallow(move |way, frame| {
        let is_answer = way == Way::Down && frame["ackType"] == "saved";
        lost += u8::from(is_answer);
        is_answer && lost == 1
    });
    assert_eq!(say(&bob, "alice", "once").await, 1);
    // Either the retry was answered, or comparing heads found it saved before a retry.
    let sent = tap.of(Way::Up, "SINGLE_CHAT");
    assert!(sent.iter().all(|frame| frame["clientMsgId"] == sent[0]["clientMsgId"]));
    until("there", async || seqs(&alice, "bob").await == [1]).await;
}

#[tokio::test]
async fn a_device_with_more_than_a_page_to_catch_up_asks_for_the_next_one() {
    let (_server, tap, alice, bob) = world().await;
    say(&alice, "bob", "before").await;
    until("the first", async || seqs(&bob, "alice").await == [1]).await;
    bob.disconnect();
    for number in 0..450 {
        alice.send(Target::to("bob"), format!("away {number}")).await.unwrap();
    }
    say(&alice, "bob", "the last").await;
    let (resends, asked) = (tap.of(Way::Up, "RESEND").len(), tap.asked().len());
    bob.connect();
    until("all here", async || seqs(&bob, "alice").await.len() == 452).await;
    assert!(tap.of(Way::Up, "RESEND").len() > resends);
    assert!(!tap.asked()[asked..].iter().any(|line| line.contains("/msg/pull")));
    assert_eq!(seqs(&bob, "alice").await, (1..=452).collect::<Vec<_>>());
}
