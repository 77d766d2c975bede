//! Several nodes find each other, whatever kind of Redis is between them.

use futures_util::future::LocalBoxFuture;
use nexo_chat::Reason;
use nexo_chat::bus::Bus;
use nexo_chat::command::Event;
use nexo_chat::ids::ConnectionId;

use crate::scene::{
    Node, ended, eventually, group, joined, message, numbers, options, place, private, told, user,
};
use crate::server::{Cluster, Server};

/// Three nodes.
struct Three {
    a: Node,
    b: Node,
    c: Node,
}

struct Case {
    name: &'static str,
    run: fn(Three) -> LocalBoxFuture<'static, ()>,
}

const CASES: &[Case] = &[
    Case { name: "places_on_all_nodes_come_in_order", run: |n| Box::pin(places(n)) },
    Case { name: "claims_at_once_see_each_other_one_way", run: |n| Box::pin(claims_at_once(n)) },
    Case { name: "a_private_message_goes_where_they_are", run: |n| Box::pin(private_message(n)) },
    Case { name: "a_group_is_heard_where_it_is_tuned_in", run: |n| Box::pin(group_message(n)) },
    Case { name: "a_newcomer_hears_that_they_joined", run: |n| Box::pin(newcomer(n)) },
    Case { name: "ends_and_closings_cross_nodes", run: |n| Box::pin(kicks(n)) },
    Case { name: "the_order_of_a_sender_is_kept", run: |n| Box::pin(order(n)) },
    Case { name: "large_events_arrive", run: |n| Box::pin(large(n)) },
    Case { name: "who_leaves_is_gone_at_once", run: |n| Box::pin(leaving(n)) },
];

async fn run_all(url: &str) {
    for (number, case) in CASES.iter().enumerate() {
        eprintln!("case {}", case.name);
        let prefix = format!("nodes{number}");
        let node = async |id| Node::reached(options(url, id, &prefix)).await;
        (case.run)(Three { a: node(1).await, b: node(2).await, c: node(3).await }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_single_server() {
    run_all(&Server::start().url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_cluster() {
    run_all(&Cluster::start().url()).await;
}

async fn places(Three { a, b, c }: Three) {
    assert_eq!(a.bus.claim(place("ann", 3)).await, []);
    assert_eq!(b.bus.claim(place("ann", 1)).await, [place("ann", 3)]);
    assert_eq!(numbers(&a.bus.claim(place("ann", 2)).await), [3, 1]);
    assert_eq!(c.places("ann").await, [3, 1, 2]);
    assert_eq!(a.places("ann").await, [3, 1, 2]);
    a.bus.release(&user("ann"), ConnectionId(3));
    assert_eq!(a.places("ann").await, [1, 2]);
    c.finds("ann", &[1, 2]).await;
    b.finds("bob", &[]).await;
}

async fn claims_at_once(Three { a, b, .. }: Three) {
    for round in 0..20 {
        let id = format!("ann{round}");
        let (here, there) = tokio::join!(a.bus.claim(place(&id, 1)), b.bus.claim(place(&id, 2)));
        assert_eq!(here.len() + there.len(), 1, "exactly one sees the other");
    }
}

async fn private_message(Three { a, b, c }: Three) {
    a.bus.claim(place("ann", 1)).await;
    b.bus.claim(place("bob", 2)).await;
    b.bus.claim(place("bob", 3)).await;
    c.bus.claim(place("cat", 4)).await;
    a.bus.publish(private("ann", "bob", 1));
    a.bus.publish(private("ann", "cat", 2));
    b.hears("si_ann_bob 1").await;
    c.hears("si_ann_cat 2").await;
    assert_eq!(b.notes.heard(), ["si_ann_bob 1"], "once, though bob has two sockets");
    assert_eq!(c.notes.heard(), ["si_ann_cat 2"]);
    assert_eq!(a.notes.heard(), ["si_ann_bob 1", "si_ann_cat 2"]);
}

async fn group_message(Three { a, b, c }: Three) {
    assert!(b.bus.tune_in(vec![group("g"), group("h")]).await);
    assert!(!b.bus.tune_in(vec![group("g")]).await);
    assert!(b.bus.tune_in(vec![group("g"), group("j")]).await);
    c.bus.tune_in(vec![group("h")]).await;
    a.bus.publish_all(vec![message(group("g"), 1, "x"), message(group("h"), 1, "x")]);
    b.hears("sg_h 1").await;
    c.hears("sg_h 1").await;
    assert_eq!(b.notes.heard(), ["sg_g 1", "sg_h 1"]);
    assert_eq!(c.notes.heard(), ["sg_h 1"]);

    b.bus.tune_out(&group("g"));
    b.bus.tune_in(vec![group("i")]).await; // Written after the other, so that is written too.
    a.bus.publish_all(vec![message(group("g"), 2, "x"), message(group("i"), 1, "x")]);
    b.hears("sg_i 1").await;
    assert_eq!(b.notes.last(), "sg_i 1");
    assert!(!b.notes.heard().contains(&"sg_g 2".to_owned()));

    b.bus.tune_out(&group("i"));
    b.bus.tune_in(vec![group("i")]).await;
    a.bus.publish(message(group("i"), 2, "x"));
    b.hears("sg_i 2").await;
}

async fn newcomer(Three { a, b, c }: Three) {
    b.bus.claim(place("bob", 1)).await;
    c.bus.claim(place("cat", 2)).await;
    a.bus.publish(joined("g", 1, &["bob", "eve"]));
    a.bus.publish(ended("cat"));
    b.hears("sg_g change 1").await;
    c.hears("cat ended").await;
    assert_eq!(c.notes.heard(), ["cat ended"]);
}

async fn kicks(Three { a, b, c }: Three) {
    b.bus.claim(place("bob", 1)).await;
    c.bus.claim(place("bob", 2)).await;
    let (user, connections) = (user("bob"), vec![ConnectionId(1)]);
    let closed = Event::Closed { user, connections, reason: Reason::Kicked };
    a.bus.publish(closed.clone());
    a.bus.publish(ended("bob"));
    for node in [&b, &c] {
        node.hears("bob ended").await;
        assert_eq!(node.notes.heard(), [told(&closed), "bob ended".into()]);
    }
}

async fn order(Three { a, b, .. }: Three) {
    b.bus.claim(place("bob", 1)).await;
    b.bus.tune_in(vec![group("g")]).await;
    let mut expect = Vec::new();
    for seq in 1..=1000 {
        let event = match seq % 3 {
            0 => private("ann", "bob", seq),
            _ => message(group("g"), seq, "x"),
        };
        expect.push(told(&event));
        a.bus.publish(event);
        if seq % 100 == 0 {
            tokio::task::yield_now().await; // So that it does not all go in one batch.
        }
    }
    b.hears("sg_g 1000").await;
    assert_eq!(b.notes.heard(), expect);
    assert_eq!(b.notes.lost(), 0);
}

async fn large(Three { a, b, .. }: Three) {
    b.bus.tune_in(vec![group("g")]).await;
    let body = |size| vec![b'x'; size];
    a.bus.publish_all((1..=20).map(|seq| message(group("g"), seq, body(200_000))).collect());
    a.bus.publish(message(group("g"), 21, body(3_000_000)));
    b.hears("sg_g 21").await;
    assert_eq!(b.notes.heard().len(), 21);
}

async fn leaving(Three { a, b, .. }: Three) {
    b.bus.claim(place("bob", 1)).await;
    a.bus.claim(place("ann", 2)).await;
    b.bus.tune_in(vec![group("g")]).await;
    assert_eq!(a.places("bob").await, [1]);
    b.bus.publish(private("ann", "bob", 1));
    b.bus.leave().await;
    assert!(a.places("bob").await.is_empty());
    eventually("what was published before is heard", async || a.notes.heard() == ["si_ann_bob 1"])
        .await;
    assert!(b.bus.health().is_err_and(|why| why.contains("left")));
    b.bus.publish(private("ann", "bob", 2));
    assert_eq!(b.notes.last(), "si_ann_bob 2");
    assert_eq!(b.places("bob").await, [1]);
}
