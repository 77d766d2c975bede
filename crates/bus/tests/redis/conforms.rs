//! The bus over Redis keeps the promises of every bus.

use std::sync::Arc;

use nexo_bus::RedisBus;
use nexo_bus::conformance::CASES;
use nexo_chat::bus::Bus;

use crate::scene::{KEY, Node, options};
use crate::server::{Cluster, Server};

async fn conforms(url: &str) {
    for (number, case) in CASES.iter().enumerate() {
        eprintln!("case {}", case.name);
        let prefix = format!("case{number}");
        let options = options(url, 1, &prefix);
        let bus = RedisBus::connect(options, KEY).expect("good options");
        bus.wait_reachable().await;
        (case.run)(Arc::clone(&bus) as Arc<dyn Bus>).await;
        bus.leave().await;
    }
}

#[tokio::test]
async fn with_a_single_server() {
    conforms(&Server::start().url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_cluster() {
    conforms(&Cluster::start().url()).await;
}

#[tokio::test]
async fn without_redis() {
    for case in CASES {
        eprintln!("case {}", case.name);
        let node = RedisBus::connect(options("redis://127.0.0.1:1", 1, "nexo"), [0; 32]);
        (case.run)(node.unwrap()).await;
    }
}

#[tokio::test]
async fn the_prefix_is_safe_in_keys() {
    let bad = options("redis://127.0.0.1:1", 1, "a*b");
    assert!(RedisBus::connect(bad, [0; 32]).is_err());
    drop(Node::start(options("redis://127.0.0.1:1", 1, "a-b")));
}
