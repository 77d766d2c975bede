//! The examples work as they are: one small client per dialect.

use std::process::Command;

use nexo_sim::process::Setup;

#[test]
fn each_example_talks_to_a_real_server() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    // Not the python3 of the path, which may have no packages at all.
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/venv/bin/python");
    for dialect in ["typed", "numbered", "dotted"] {
        let output = Command::new(python)
            .arg(format!("{folder}/{dialect}.py"))
            .arg(format!("http://{}", server.http.authority))
            .output()
            .expect("target/venv, which `make tools` makes");
        let said = String::from_utf8_lossy(&output.stdout);
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{dialect}: {said}{wrong}");
        assert!(said.contains("saved as 1, bob heard: Hello, Bob"), "{dialect}: {said}");
        assert!(said.contains("alice hears: read"), "{dialect}: {said}");
    }
}
