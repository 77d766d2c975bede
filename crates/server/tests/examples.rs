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

#[tokio::test]
async fn a_backend_brings_its_own_users_in_forty_lines() {
    let server =
        Setup::new(env!("CARGO_BIN_EXE_nexo")).with("NEXO_AUTH__REGISTRATION", "closed").start();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/backend.py");
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/venv/bin/python");
    let system = std::fs::read_to_string(server.data().join("system.token")).expect("a token");
    let body = serde_json::json!({ "name": "shop", "scopes": ["backend"] });
    let made = server.http.post("/admin/keys", system.trim(), body).await;
    let key = server.data().join("backend.key");
    std::fs::write(&key, made.data()["key"].as_str().expect("a key")).expect("a file");
    let url = format!("http://{}", server.http.authority);
    let output = Command::new(python).arg(script).arg(url).arg(key).output().expect("target/venv");
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("saved as 1, Ben reads: Hello, Ben"), "{said}{wrong}");
    let lines = std::fs::read_to_string(script).expect("the example").lines().count();
    assert!(lines <= 45, "{lines} lines");
}
