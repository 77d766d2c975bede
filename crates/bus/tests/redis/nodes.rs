//! Several nodes find each other, whatever kind of Redis is between them.

use futures_util::future::LocalBoxFuture;
use nexo_chat::Reason;
use nexo_chat::bus::Bus;
use nexo_chat::event::Event;
use nexo_chat::ids::ConnectionId;

use crate::scene::{
    Node, describe, ended, eventually, group, joined, message, numbers, options, private,
    registration, user,
};
use crate::server::{Cluster, Server};

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
    Case { name: "places_on_all_nodes_come_in_order", run: |n| Box::pin(registrations(n)) },
    Case { name: "claims_at_once_see_each_other_one_way", run: |n| Box::pin(claims_at_once(n)) },
    Case { name: "a_private_message_goes_where_they_are", run: |n| Box::pin(private_message(n)) },
    Case { name: "a_group_message_goes_to_subscribed_nodes", run: |n| Box::pin(group_message(n)) },
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

async fn registrations(Three { a, b, c }: Three) {
    assert_eq!(a.bus.register(registration("ann", 3)).await, []);
    assert_eq!(b.bus.register(registration("ann", 1)).await, [registration("ann", 3)]);
    assert_eq!(numbers(&a.bus.register(registration("ann", 2)).await), [3, 1]);
    assert_eq!(c.registrations("ann").await, [3, 1, 2]);
    assert_eq!(a.registrations("ann").await, [3, 1, 2]);
    a.bus.unregister(&user("ann"), ConnectionId(3));
    assert_eq!(a.registrations("ann").await, [1, 2]);
    c.finds("ann", &[1, 2]).await;
    b.finds("bob", &[]).await;
}

async fn claims_at_once(Three { a, b, .. }: Three) {
    for round in 0..20 {
        let id = format!("ann{round}");
        let (here, there) = tokio::join!(
            a.bus.register(registration(&id, 1)),
            b.bus.register(registration(&id, 2))
        );
        assert_eq!(here.len() + there.len(), 1, "exactly one sees the other");
    }
}

async fn private_message(Three { a, b, c }: Three) {
    a.bus.register(registration("ann", 1)).await;
    b.bus.register(registration("bob", 2)).await;
    b.bus.register(registration("bob", 3)).await;
    c.bus.register(registration("cat", 4)).await;
    a.bus.publish(private("ann", "bob", 1));
    a.bus.publish(private("ann", "cat", 2));
    b.hears("si_ann_bob 1").await;
    c.hears("si_ann_cat 2").await;
    assert_eq!(b.received.events(), ["si_ann_bob 1"], "once, though bob has two sockets");
    assert_eq!(c.received.events(), ["si_ann_cat 2"]);
    assert_eq!(a.received.events(), ["si_ann_bob 1", "si_ann_cat 2"]);
}

async fn group_message(Three { a, b, c }: Three) {
    assert!(b.bus.subscribe_groups(vec![group("g"), group("h")]).await);
    assert!(!b.bus.subscribe_groups(vec![group("g")]).await);
    assert!(b.bus.subscribe_groups(vec![group("g"), group("j")]).await);
    c.bus.subscribe_groups(vec![group("h")]).await;
    a.bus.publish_all(&[message(group("g"), 1, "x"), message(group("h"), 1, "x")]);
    b.hears("sg_h 1").await;
    c.hears("sg_h 1").await;
    assert_eq!(b.received.events(), ["sg_g 1", "sg_h 1"]);
    assert_eq!(c.received.events(), ["sg_h 1"]);

    b.bus.unsubscribe_group(&group("g"));
    b.bus.subscribe_groups(vec![group("i")]).await; // Written after the other, so that is written too.
    a.bus.publish_all(&[message(group("g"), 2, "x"), message(group("i"), 1, "x")]);
    b.hears("sg_i 1").await;
    assert_eq!(b.received.last(), "sg_i 1");
    assert!(!b.received.events().contains(&"sg_g 2".to_owned()));

    b.bus.unsubscribe_group(&group("i"));
    b.bus.subscribe_groups(vec![group("i")]).await;
    a.bus.publish(message(group("i"), 2, "x"));
    b.hears("sg_i 2").await;
}

async fn newcomer(Three { a, b, c }: Three) {
    b.bus.register(registration("bob", 1)).await;
    c.bus.register(registration("cat", 2)).await;
    a.bus.publish(joined("g", 1, &["bob", "eve"]));
    a.bus.publish(ended("cat"));
    b.hears("sg_g change 1").await;
    c.hears("cat ended").await;
    assert_eq!(c.received.events(), ["cat ended"]);
}

async fn kicks(Three { a, b, c }: Three) {
    b.bus.register(registration("bob", 1)).await;
    c.bus.register(registration("bob", 2)).await;
    let (user, connections) = (user("bob"), vec![ConnectionId(1)]);
    let closed = Event::Closed { user, connections, reason: Reason::Kicked };
    a.bus.publish(closed.clone());
    a.bus.publish(ended("bob"));
    for node in [&b, &c] {
        node.hears("bob ended").await;
        assert_eq!(node.received.events(), [describe(&closed), "bob ended".into()]);
    }
}

async fn order(Three { a, b, .. }: Three) {
    b.bus.register(registration("bob", 1)).await;
    b.bus.subscribe_groups(vec![group("g")]).await;
    let mut expect = Vec::new();
    for seq in 1..=1000 {
        let event = match seq % 3 {
            0 => private("ann", "bob", seq),
            _ => message(group("g"), seq, "x"),
        };
        expect.push(describe(&event));
        a.bus.publish(event);
        if seq % 100 == 0 {
            tokio::task::yield_now().await; // So that it does not all go in one batch.
        }
    }
    b.hears("sg_g 1000").await;
    assert_eq!(b.received.events(), expect);
    assert_eq!(b.received.losses(), 0);
}

async fn large(Three { a, b, .. }: Three) {
    b.bus.subscribe_groups(vec![group("g")]).await;
    let body = |size| vec![b'x'; size];
    a.bus.publish_all(
        &(1..=20).map(|seq| message(group("g"), seq, body(200_000))).collect::<Vec<_>>(),
    );
    a.bus.publish(message(group("g"), 21, body(3_000_000)));
    b.hears("sg_g 21").await;
    assert_eq!(b.received.events().len(), 21);
}

async fn leaving(Three { a, b, .. }: Three) {
    b.bus.register(registration("bob", 1)).await;
    a.bus.register(registration("ann", 2)).await;
    b.bus.subscribe_groups(vec![group("g")]).await;
    assert_eq!(a.registrations("bob").await, [1]);
    b.bus.publish(private("ann", "bob", 1));
    b.bus.leave().await;
    assert!(a.registrations("bob").await.is_empty());
    eventually("events published before arrive", async || a.received.events() == ["si_ann_bob 1"])
        .await;
    assert!(b.bus.health().is_err_and(|why| why.contains("left")));
    b.bus.publish(private("ann", "bob", 2));
    assert_eq!(b.received.last(), "si_ann_bob 2");
    assert_eq!(b.registrations("bob").await, [1]);
}
