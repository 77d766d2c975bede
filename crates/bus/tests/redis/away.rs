//! Redis may go away at any moment, and so may a node.

use std::time::{Duration, Instant};

use nexo_bus::RedisBusOptions;
use nexo_chat::bus::Bus;
use nexo_chat::ids::ConnectionId;

use crate::proxy::SilentProxy;
use crate::scene::{
    Node, ended, eventually, group, lively, message, numbers, options, private, registration, user,
};
use crate::server::{Cluster, Server};

/// Far more than it takes, for a busy machine.
const AT_ONCE: Duration = Duration::from_millis(50);

/// Two nodes; the second has bob and is subscribed to a group.
async fn two_nodes(server: &Server) -> (Node, Node) {
    let a = Node::reached(lively(&server.url(), 1, "nexo")).await;
    let b = Node::reached(lively(&server.url(), 2, "nexo")).await;
    b.bus.register(registration("bob", 1)).await;
    b.bus.subscribe_groups(vec![group("g")]).await;
    (a, b)
}

async fn is_away(node: &Node) {
    eventually("the bus knows that redis is away", async || node.bus.health().is_err()).await;
}

/// Everything works at once, on this node alone.
async fn works_alone(node: &Node, id: &str) {
    let start = Instant::now();
    assert_eq!(node.bus.register(registration(id, 71)).await, []);
    assert_eq!(numbers(&node.bus.register(registration(id, 72)).await), [71]);
    node.bus.unregister(&user(id), ConnectionId(71));
    assert_eq!(node.registrations(id).await, [72]);
    node.bus.subscribe_groups(vec![group(id)]).await;
    node.bus.publish(ended(id));
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    assert_eq!(node.received.last(), format!("{id} ended"));
}

/// Events of `a` reach bob and the group on `b`.
async fn flows(a: &Node, b: &Node, seq: u64) {
    a.bus.publish(private("ann", "bob", seq));
    a.bus.publish(message(group("g"), seq, "x"));
    b.hears(&format!("si_ann_bob {seq}")).await;
    b.hears(&format!("sg_g {seq}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_dies_and_comes_back_empty() {
    let mut server = Server::start();
    let (a, b) = two_nodes(&server).await;
    a.bus.register(registration("ann", 5)).await;
    flows(&a, &b, 1).await;
    server.stop();
    for (node, id) in [(&a, "eve"), (&b, "fay")] {
        is_away(node).await;
        works_alone(node, id).await;
    }
    let why = a.bus.health().unwrap_err();
    assert!(why.starts_with("redis cannot be reached: "), "{why}");
    assert_eq!((a.received.losses(), b.received.losses()), (0, 0));

    server.restart();
    for node in [&a, &b] {
        node.reach().await;
        eventually("the listener knows of the loss", async || node.received.losses() > 0).await;
    }
    // Registrations from before and during the outage, without those that ended during it.
    a.finds("bob", &[1]).await;
    a.finds("fay", &[72]).await;
    b.finds("eve", &[72]).await;
    flows(&a, &b, 2).await;
    a.bus.publish(message(group("fay"), 9, "x"));
    b.hears("sg_fay 9").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_hangs_is_waited_for_once() {
    let server = Server::start();
    let impatient = |node| {
        let mut options = RedisBusOptions {
            call_timeout: Duration::from_millis(250),
            publish_timeout: Duration::from_millis(500),
            ..options(&server.url(), node, "nexo")
        };
        options.redis.connect_timeout = Duration::from_secs(1);
        options
    };
    let a = Node::reached(impatient(1)).await;
    a.bus.register(registration("ann", 1)).await;
    a.bus.register(registration("ann", 3)).await;
    server.freeze();
    let start = Instant::now();
    assert_eq!(numbers(&a.bus.register(registration("ann", 2)).await), [1, 3]);
    assert!(start.elapsed() < Duration::from_millis(1500), "{:?}", start.elapsed());
    assert!(a.bus.health().unwrap_err().contains("no answer in 250 ms"));
    works_alone(&a, "eve").await;
    a.bus.unregister(&user("ann"), ConnectionId(3));
    server.thaw();
    a.reach().await;
    let b = Node::reached(impatient(2)).await;
    b.finds("ann", &[1, 2]).await;
    b.finds("eve", &[72]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_comes_later_than_the_nodes() {
    let mut server = Server::start();
    server.stop();
    let a = Node::start(lively(&server.url(), 1, "nexo"));
    let b = Node::start(lively(&server.url(), 2, "nexo"));
    b.bus.register(registration("bob", 1)).await;
    b.bus.subscribe_groups(vec![group("g")]).await;
    works_alone(&a, "eve").await;
    server.restart();
    a.reach().await;
    b.reach().await;
    a.finds("bob", &[1]).await;
    eventually("bob may have missed something", async || b.received.losses() > 0).await;
    flows(&a, &b, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_forgets_everything() {
    let server = Server::start();
    let (a, b) = two_nodes(&server).await;
    a.bus.register(registration("bob", 9)).await;
    assert_eq!(server.cli(&["FLUSHALL"]).trim(), "OK");
    a.finds("bob", &[1, 9]).await;
    eventually("b knows of the loss", async || b.received.losses() > 0).await;
    flows(&a, &b, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut() {
    let server = Server::start();
    let (a, b) = two_nodes(&server).await;
    for (round, kind) in (1..).zip(["pubsub", "normal", "pubsub"]) {
        let lost = (a.received.losses(), b.received.losses());
        server.cli(&["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"]);
        eventually("both noticed", async || {
            a.received.losses() > lost.0 && b.received.losses() > lost.1
        })
        .await;
        a.reach().await;
        b.reach().await;
        flows(&a, &b, round).await;
        assert_eq!(a.registrations("bob").await, [1]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_fall_silent() {
    let server = Server::start();
    let proxy = SilentProxy::to(server.host()).await;
    let patient = lively(&proxy.url(), 2, "nexo");
    let a = Node::reached(lively(&server.url(), 1, "nexo")).await;
    let b =
        Node::reached(RedisBusOptions { publish_timeout: Duration::from_secs(1), ..patient }).await;
    b.bus.register(registration("bob", 1)).await;
    b.bus.subscribe_groups(vec![group("g")]).await;
    flows(&a, &b, 1).await;
    proxy.fall_silent();
    eventually("b knows of the loss", async || b.received.losses() > 0).await;
    flows(&a, &b, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_loses_a_part_for_a_while() {
    let mut cluster = Cluster::start();
    let a = Node::reached(lively(&cluster.url(), 1, "nexo")).await;
    let b = Node::reached(lively(&cluster.url(), 2, "nexo")).await;
    b.bus.register(registration("bob", 1)).await;
    b.bus.subscribe_groups(vec![group("g")]).await;
    // The nodes are subscribed to the first; the last is only for keys.
    for (round, part) in [(1, 0), (2, 2)] {
        let lost = b.received.losses();
        cluster.servers[part].stop();
        is_away(&a).await;
        is_away(&b).await;
        works_alone(&a, &format!("eve{round}")).await;
        cluster.servers[part].restart();
        a.reach().await;
        b.reach().await;
        eventually("b knows of the loss", async || b.received.losses() > lost).await;
        a.finds("bob", &[1]).await;
        flows(&a, &b, round).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_dies_is_forgotten() {
    let server = Server::start();
    let (a, b) = two_nodes(&server).await;
    a.bus.register(registration("bob", 7)).await;
    a.bus.subscribe_groups(vec![group("g")]).await;
    assert_eq!(a.registrations("bob").await, [1, 7]);
    drop(b);
    a.finds("bob", &[7]).await;
    eventually("nothing of it is left", async || {
        a.bus.publish(message(group("g"), 1, "x"));
        server.cli(&["HLEN", "nexo:at:{bob}"]).trim() == "1"
            && server.cli(&["SCARD", "nexo:in:{sg_g}"]).trim() == "1"
            && server.cli(&["KEYS", "nexo:node:*"]).lines().count() == 1
    })
    .await;
}

#[tokio::test]
async fn what_finds_no_room_is_missed_by_others_and_they_are_told() {
    let server = Server::start();
    let small = RedisBusOptions { queue_events: 4, ..options(&server.url(), 1, "nexo") };
    let a = Node::reached(small).await;
    let b = Node::reached(options(&server.url(), 2, "nexo")).await;
    let c = Node::reached(options(&server.url(), 3, "nexo")).await;
    b.bus.register(registration("bob", 1)).await;
    // Nothing else runs on this thread meanwhile.
    a.bus.publish_all(&(1..=10).map(|seq| private("ann", "bob", seq)).collect::<Vec<_>>());
    for node in [&b, &c] {
        eventually("they know of the loss", async || node.received.losses() == 1).await;
    }
    assert_eq!(a.received.events().len(), 10);
    a.bus.publish(private("ann", "bob", 11));
    b.hears("si_ann_bob 11").await;
    assert_eq!(b.received.events().len(), 5);
    assert_eq!(b.received.losses(), 1);
}
