//! `nexo doctor` tells a healthy folder from a damaged one, and a salvaged one can be served.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nexo_sim::process::{Server, Setup};
use nexo_sim::socket::chat;
use serde_json::Value;

const COUNT: u64 = 600;

/// Runs it; returns the exit code and what it said.
fn doctor(data: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nexo"));
    let output = command.arg("doctor").arg("--data").arg(data).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

async fn stopped_server() -> Server {
    let setup = Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(0);
    let mut server = setup.with("NEXO_EMBEDDED__MEMTABLE_MIB", "1").start();
    let [alice, _] = server.people(["alice", "bob"]).await;
    let (mut a, _) = server.connect(&alice).await;
    for n in 1..=COUNT {
        a.say(chat("bob", &format!("b-{n}"), &format!("{n:0>4000}"))).await;
        a.expect_ack("saved").await;
    }
    let (code, said) = doctor(&server.data(), &[]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("a server is using") && said.contains("/readyz"), "{said}");
    assert_eq!(server.stop(), Some(0));
    server
}

fn flip_a_bit(data: &Path) {
    let tables = fs::read_dir(data.join("trees/messages/tables")).unwrap();
    let tables = tables.map(|entry| entry.unwrap().path());
    let table: PathBuf = tables.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = fs::read(&table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(table, bytes).unwrap();
}

#[tokio::test]
async fn a_damaged_folder_is_explained_and_salvaged() {
    let server = stopped_server().await;
    let data = server.data();
    let (code, said) = doctor(&data, &[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("Every checksum and every index is right"), "{said}");
    let (code, said) = doctor(&data.join("nothing"), &[]);
    assert_eq!(code, 2, "{said}");

    flip_a_bit(&data);
    let (code, said) = doctor(&data, &[]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("its checksum is wrong") && said.contains("of si_alice_bob"), "{said}");
    let (code, said) = doctor(&data, &["--json"]);
    assert_eq!(code, 1, "{said}");
    let report: Value = serde_json::from_str(&said).unwrap();
    assert!(!report["problems"].as_array().unwrap().is_empty());

    let new = tempfile::tempdir().unwrap();
    let target = new.path().join("data");
    let (code, said) = doctor(&data, &["--salvage", target.to_str().unwrap()]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("Lost: the messages"), "{said}");
    let (code, said) = doctor(&target, &[]);
    assert_eq!(code, 0, "what is lost is known: {said}");
    for secret in ["jwt.secret", "system.token", "metrics.token"] {
        fs::copy(data.join(secret), target.join(secret)).unwrap();
    }
    let setup = Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(0);
    let server = setup.start_on(new);
    let alice = nexo_sim::person::Person::sign_in(&server.http, "alice", 5).await;
    let (mut a, _) = server.connect(&alice).await;
    let next = a.send("bob", "b-next", "goes on").await;
    assert_eq!(nexo_sim::socket::seq(&next), COUNT + 1);
    let page = "/msg/pull?conversation_id=si_alice_bob&begin_seq=1&limit=100";
    assert!(server.http.get(page, &alice.token).await.status == 200);
    let ready = server.http.get("/readyz", "").await;
    assert_eq!(ready.body["status"], "ready", "what is known to be lost is no new damage");
}
