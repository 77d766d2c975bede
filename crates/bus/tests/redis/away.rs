//! Redis may vanish at any moment, and so may a node.

use std::time::{Duration, Instant};

use nexo_bus::RedisOptions;
use nexo_chat::bus::Bus;
use nexo_chat::ids::ConnectionId;

use crate::passage::Passage;
use crate::scene::{
    Node, ended, eventually, group, lively, message, numbers, options, place, private, user,
};
use crate::server::{Cluster, Server};

/// Far more than it takes, on a machine that does other things too.
const AT_ONCE: Duration = Duration::from_millis(50);

/// Two nodes with bob on the second and a group heard there.
async fn two(server: &Server) -> (Node, Node) {
    let a = Node::reached(lively(&server.url(), 1, "nexo")).await;
    let b = Node::reached(lively(&server.url(), 2, "nexo")).await;
    b.bus.claim(place("bob", 1)).await;
    b.bus.tune_in(vec![group("g")]).await;
    (a, b)
}

async fn is_away(node: &Node) {
    eventually("the bus knows that redis is away", async || node.bus.health().is_err()).await;
}

/// Everything is done at once, and heard here.
async fn works_alone(node: &Node, id: &str) {
    let start = Instant::now();
    assert_eq!(node.bus.claim(place(id, 71)).await, []);
    assert_eq!(numbers(&node.bus.claim(place(id, 72)).await), [71]);
    node.bus.release(&user(id), ConnectionId(71));
    assert_eq!(node.places(id).await, [72]);
    node.bus.tune_in(vec![group(id)]).await;
    node.bus.publish(ended(id));
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    assert_eq!(node.notes.last(), format!("{id} ended"));
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
    let (a, b) = two(&server).await;
    a.bus.claim(place("ann", 5)).await;
    flows(&a, &b, 1).await;
    server.stop();
    for (node, id) in [(&a, "eve"), (&b, "fay")] {
        is_away(node).await;
        works_alone(node, id).await;
    }
    let why = a.bus.health().unwrap_err();
    assert!(why.starts_with("redis cannot be reached: "), "{why}");
    assert_eq!((a.notes.lost(), b.notes.lost()), (0, 0));

    server.restart();
    for node in [&a, &b] {
        node.reach().await;
        eventually("those here know that they missed something", async || node.notes.lost() > 0)
            .await;
    }
    // What was here before, what came meanwhile, and nothing of what went meanwhile.
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
    let impatient = |node| RedisOptions {
        call_timeout: Duration::from_millis(250),
        publish_timeout: Duration::from_millis(500),
        connect_timeout: Duration::from_secs(1),
        ..options(&server.url(), node, "nexo")
    };
    let a = Node::reached(impatient(1)).await;
    a.bus.claim(place("ann", 1)).await;
    a.bus.claim(place("ann", 3)).await;
    server.freeze();
    let start = Instant::now();
    assert_eq!(numbers(&a.bus.claim(place("ann", 2)).await), [1, 3]);
    assert!(start.elapsed() < Duration::from_millis(1500), "{:?}", start.elapsed());
    assert!(a.bus.health().unwrap_err().contains("no answer in 250 ms"));
    works_alone(&a, "eve").await;
    a.bus.release(&user("ann"), ConnectionId(3));
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
    b.bus.claim(place("bob", 1)).await;
    b.bus.tune_in(vec![group("g")]).await;
    works_alone(&a, "eve").await;
    server.restart();
    a.reach().await;
    b.reach().await;
    a.finds("bob", &[1]).await;
    eventually("bob may have missed something", async || b.notes.lost() > 0).await;
    flows(&a, &b, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_forgets_everything() {
    let server = Server::start();
    let (a, b) = two(&server).await;
    a.bus.claim(place("bob", 9)).await;
    assert_eq!(server.cli(&["FLUSHALL"]).trim(), "OK");
    a.finds("bob", &[1, 9]).await;
    eventually("b is told", async || b.notes.lost() > 0).await;
    flows(&a, &b, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_cut() {
    let server = Server::start();
    let (a, b) = two(&server).await;
    for (round, kind) in (1..).zip(["pubsub", "normal", "pubsub"]) {
        let lost = (a.notes.lost(), b.notes.lost());
        server.cli(&["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"]);
        eventually("both noticed", async || a.notes.lost() > lost.0 && b.notes.lost() > lost.1)
            .await;
        a.reach().await;
        b.reach().await;
        flows(&a, &b, round).await;
        assert_eq!(a.places("bob").await, [1]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_fall_silent() {
    let server = Server::start();
    let passage = Passage::to(server.host()).await;
    let patient = lively(&passage.url(), 2, "nexo");
    let a = Node::reached(lively(&server.url(), 1, "nexo")).await;
    let b =
        Node::reached(RedisOptions { publish_timeout: Duration::from_secs(1), ..patient }).await;
    b.bus.claim(place("bob", 1)).await;
    b.bus.tune_in(vec![group("g")]).await;
    flows(&a, &b, 1).await;
    passage.fall_silent();
    eventually("b is told", async || b.notes.lost() > 0).await;
    flows(&a, &b, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_loses_a_part_for_a_while() {
    let mut cluster = Cluster::start();
    let a = Node::reached(lively(&cluster.url(), 1, "nexo")).await;
    let b = Node::reached(lively(&cluster.url(), 2, "nexo")).await;
    b.bus.claim(place("bob", 1)).await;
    b.bus.tune_in(vec![group("g")]).await;
    // The nodes are subscribed to the first; the last is only for keys.
    for (round, part) in [(1, 0), (2, 2)] {
        let lost = b.notes.lost();
        cluster.servers[part].stop();
        is_away(&a).await;
        is_away(&b).await;
        works_alone(&a, &format!("eve{round}")).await;
        cluster.servers[part].restart();
        a.reach().await;
        b.reach().await;
        eventually("b is told", async || b.notes.lost() > lost).await;
        a.finds("bob", &[1]).await;
        flows(&a, &b, round).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_dies_is_forgotten() {
    let server = Server::start();
    let (a, b) = two(&server).await;
    a.bus.claim(place("bob", 7)).await;
    a.bus.tune_in(vec![group("g")]).await;
    assert_eq!(a.places("bob").await, [1, 7]);
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
    let small = RedisOptions { queue_events: 4, ..options(&server.url(), 1, "nexo") };
    let a = Node::reached(small).await;
    let b = Node::reached(options(&server.url(), 2, "nexo")).await;
    let c = Node::reached(options(&server.url(), 3, "nexo")).await;
    b.bus.claim(place("bob", 1)).await;
    // Nothing else runs on this thread meanwhile.
    a.bus.publish_all((1..=10).map(|seq| private("ann", "bob", seq)).collect());
    for node in [&b, &c] {
        eventually("they are told", async || node.notes.lost() == 1).await;
    }
    assert_eq!(a.notes.heard().len(), 10);
    a.bus.publish(private("ann", "bob", 11));
    b.hears("si_ann_bob 11").await;
    assert_eq!(b.notes.heard().len(), 5);
    assert_eq!(b.notes.lost(), 1);
}
