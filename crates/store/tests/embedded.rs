//! Runs the conformance cases on the embedded engine.

mod folder;

use nexo_store::conformance::{self, CASES};

#[test]
fn embedded_keeps_the_contract() {
    let failed = conformance::run(CASES, || folder::Folders::new(), |name| println!("{name}"));
    assert!(failed.is_empty(), "broken promises: {failed:#?}");
}
