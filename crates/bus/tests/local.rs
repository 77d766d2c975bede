//! The local bus keeps the promises of every bus.

use std::sync::Arc;

use nexo_bus::LocalBus;
use nexo_bus::conformance::CASES;

#[tokio::test]
async fn conforms() {
    for case in CASES {
        println!("case {}", case.name);
        (case.run)(Arc::new(LocalBus::new())).await;
    }
}
