//! Faults of the machine: no memory, a clock that jumps, a file system that becomes read-only. Nothing acknowledged is lost,
//! and the server works again as soon as the machine does.
//!
//! The other faults have files of their own: `full_disk.rs`, `failed_writeback.rs`, `power_cut.rs`,
//! `kill_at_each_step.rs`, `crash.rs`.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::fs;
use std::path::Path;
use std::process::Command;

use nexo_sim::history::History;
use nexo_sim::process::Setup;
use nexo_sim::socket::{chat, seq};
use nexo_sim::{CrashLoad, LoopDisk};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;

const MIB: u64 = 1 << 20;
const DAY_MS: i64 = 86_400_000;

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(0)
}

/// The address space of a process.
fn address_space(pid: u32) -> u64 {
    let pages = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap();
    pages.split(' ').next().unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_memory_dies_and_loses_nothing() {
    let mut server = setup().start();
    let mut load = CrashLoad::new(&server.http).await;
    let pid = Pid::from_raw(i32::try_from(server.pid()).unwrap());
    let most = Some(address_space(server.pid()) + 24 * MIB);
    prlimit(pid, Resource::As, Rlimit { current: most, maximum: most }).unwrap();
    let running = load.start(&server.http);
    load.until_dead(running).await;
    assert_eq!(server.wait(), None, "it was ended by a signal");
    assert!(load.count() > 0, "there was load");
    server.start_again(|setup| setup);
    load.check(&server.http).await;
}

#[tokio::test]
async fn a_clock_that_jumps_closes_no_socket_and_changes_no_order() {
    let clock = tempfile::NamedTempFile::new().unwrap();
    let mut server = setup().with("NEXOTEST_CLOCK", clock.path().to_str().unwrap()).start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    let mut history = History::default();
    for (jump, days) in [0, -1, 2, -30, 0].into_iter().enumerate() {
        fs::write(clock.path(), (days * DAY_MS).to_string()).unwrap();
        for number in 0..3 {
            let (id, body) =
                (format!("jump{jump}-{number}"), format!("{number} after {days} days"));
            history.tried(&id, &body);
            a.say(chat("bob", &id, &body)).await;
            let ack = a.answer(&id).await;
            history.acked(&ack);
            let heard = b.expect("SINGLE_CHAT").await;
            assert_eq!((&heard["body"], seq(&heard)), (&json!(body), seq(&ack)));
        }
    }
    history.check(&server.http, &bob, "alice").await;
    // It starts in the past, too.
    fs::write(clock.path(), (-DAY_MS / 100).to_string()).unwrap();
    server.kill();
    server.start_again(|setup| setup);
    history.check(&server.http, &bob, "alice").await;
    let (mut a, _) = server.connect(&alice).await;
    assert_eq!(seq(&a.send("bob", "at last", "and on it goes").await), 16);
}

/// Makes a file system read-only as the kernel does after an error of its own.
fn abort_journal(mount: &Path) {
    let status = Command::new("mount").args(["-o", "remount,abort"]).arg(mount).status();
    assert!(status.unwrap().success(), "remount of {}", mount.display());
}

#[tokio::test]
async fn a_file_system_that_becomes_read_only_stops_the_store_and_loses_nothing() {
    let (folder, images) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mount = folder.path().join("data");
    let Some(disk) = LoopDisk::create(&images.path().join("image"), &mount, 128) else {
        eprintln!("SKIPPED: no file system on a loop device can be mounted here (it takes root)");
        return;
    };
    let setup = setup().with("NEXO_EMBEDDED__RESERVE_MIB", "0");
    let mut server = setup.clone().start_on(folder);
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let mut history = History::default();
    for number in 0..200 {
        let (id, body) = (format!("m{number}"), format!("number {number}"));
        if number == 20 {
            abort_journal(&mount);
        }
        history.tried(&id, &body);
        a.say(chat("bob", &id, &body)).await;
        let answer = a.answer(&id).await;
        if answer["type"] == "ERROR" {
            assert_eq!(answer["reason"], "server_busy", "{answer}");
        } else {
            assert!(number < 20, "acknowledged on a disk that takes nothing: {answer}");
            history.acked(&answer);
        }
    }
    assert_eq!(server.http.get("/readyz", "").await.status, 503);
    // Nothing starts on it, and it says why.
    server.kill();
    let output = setup.command(&server.data()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("Read-only file system"), "{said}");
    assert!(!said.contains("is damaged"), "{said}");
    // What was acknowledged is on the disk.
    let folder = tempfile::tempdir().unwrap();
    let copy = images.path().join("copy");
    let left = disk.after_power_cut(&copy, &folder.path().join("data"));
    let after = setup.start_on(folder);
    history.check(&after.http, &bob, "alice").await;
    drop((after, left, server, disk));
}
