//! Runs the conformance cases on the MySQL engine, with a real MariaDB.

mod database;

use nexo_store::conformance::{self, CASES};

#[test]
fn mysql_keeps_the_contract() {
    let failed = conformance::run(CASES, || database::Database::fresh(), |name| println!("{name}"));
    assert!(failed.is_empty(), "broken promises: {failed:#?}");
}
