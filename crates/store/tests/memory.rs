//! Runs the conformance cases on the reference engine.

use std::sync::Arc;

use nexo_chat::store::Store;
use nexo_store::Memory;
use nexo_store::conformance::{self, CASES, Case, Opener};

struct InMemory;

impl Opener for InMemory {
    fn open(&self) -> Arc<dyn Store> {
        Memory::new()
    }

    fn open_after_crash(&self) -> Arc<dyn Store> {
        unreachable!("nothing is left of it after a crash")
    }
}

#[test]
fn memory_keeps_the_contract() {
    let cases: Vec<Case> = CASES.iter().filter(|case| !case.needs_reopen).copied().collect();
    let failed = conformance::run(&cases, || Arc::new(InMemory), |name| println!("{name}"));
    assert!(failed.is_empty(), "broken promises: {failed:#?}");
}
