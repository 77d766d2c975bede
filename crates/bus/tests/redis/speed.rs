//! How long it takes from one node to another.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nexo_bus::RedisBus;
use nexo_chat::bus::{Bus, Listener};
use nexo_chat::event::Event;
use tokio::sync::mpsc;

use crate::scene::{KEY, Node, options, private, registration};
use crate::server::Server;

struct Bell(mpsc::UnboundedSender<Instant>);

impl Listener for Bell {
    fn on_event(&self, _: &Event) {
        self.0.send(Instant::now()).expect("the test waits");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_elsewhere_in_moments() {
    let server = Server::start();
    let a = Node::reached(options(&server.url(), 1, "nexo")).await;
    let b = RedisBus::connect(options(&server.url(), 2, "nexo"), KEY).unwrap();
    let (sender, mut rings) = mpsc::unbounded_channel();
    b.set_listener(Arc::new(Bell(sender)));
    b.wait_reachable().await;
    b.register(registration("bob", 1)).await;
    let mut times = Vec::new();
    for seq in 1..=300 {
        let start = Instant::now();
        a.bus.publish(private("ann", "bob", seq));
        times.push(rings.recv().await.unwrap() - start);
    }
    times.sort_unstable();
    println!("from node to node: half within {:?}, 99 in 100 within {:?}", times[150], times[297]);
    assert!(times[150] < Duration::from_millis(50), "{:?}", times[150]);
}
