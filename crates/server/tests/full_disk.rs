//! A disk without room, on a small file system of its own: sends are refused, nothing acknowledged is
//! lost, and with room again everything goes on without a restart.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use nexo_sim::history::History;
use nexo_sim::process::{Server, Setup};
use nexo_sim::socket::{Socket, SocketEvent, chat};

/// A small file system, gone at the end.
struct Small(PathBuf);

impl Small {
    /// Mounts one; `None` without the rights to.
    fn mount(at: &Path, mib: u32) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let mut mount = Command::new("mount");
        let mount = mount.args(["-t", "tmpfs", "-o", &format!("size={mib}m,mode=0700"), "tmpfs"]);
        let is_mounted = mount.arg(at).output().is_ok_and(|output| output.status.success());
        is_mounted.then(|| Self(at.to_owned()))
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    /// Leaves so many KiB.
    fn fill_but(&self, kib: u64) {
        let free = rustix::fs::statvfs(&self.0).unwrap();
        let mut left = (free.f_bavail * free.f_frsize).saturating_sub(kib << 10);
        let mut file = File::options().create(true).append(true).open(self.filler()).unwrap();
        let block = vec![7; 64 << 10];
        while left > 0 {
            let count = usize::try_from(left.min(block.len() as u64)).unwrap();
            if file.write_all(&block[..count]).is_err() {
                return; // full is what was wanted
            }
            left -= count as u64;
        }
    }

    fn free(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} stays", self.0.display());
    }
}

fn start(setup: Setup, mib: u32) -> Option<(Server, Small)> {
    let folder = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount(&folder.path().join("data"), mib) else {
        eprintln!("SKIPPED: no file system can be mounted here (it takes root)");
        return None;
    };
    Some((setup.nodes(0).start_on(folder), small))
}

/// Text that does not compress.
fn body() -> String {
    let mut state = 1_u64;
    let letters = (0..4_000).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'!' + u8::try_from((state >> 33) % 90).unwrap())
    });
    letters.filter(|letter| !"\"\\".contains(*letter)).collect()
}

/// Sends so many; returns how many were refused.
async fn say(socket: &mut Socket, history: &mut History, name: &str, count: usize) -> usize {
    let body = body();
    let ids: Vec<String> = (0..count).map(|number| format!("{name}-{number}")).collect();
    for id in &ids {
        history.tried(id, &body);
    }
    socket.burst(ids.iter().map(|id| chat("bob", id, &body))).await;
    let (mut refused, mut answered) = (0, 0);
    while answered < count {
        match socket.hear().await {
            SocketEvent::Frame(frame) if frame["ackType"] == "saved" => {
                history.acked(&frame);
                answered += 1;
            }
            SocketEvent::Frame(frame) if frame["type"] == "ERROR" => {
                assert_eq!(frame["reason"], "server_busy", "{frame}");
                refused += 1;
                answered += 1;
            }
            SocketEvent::Frame(_) => {}
            SocketEvent::Closed(code) => panic!("the socket stays: {code:?}"),
        }
    }
    refused
}

/// Large enough for what a fast machine can store before it is refused: the log takes 48 MiB, and each
/// of the two rounds adds at most the 20 MiB that the filler leaves, in the trees and in their merges.
const DISK_MIB: u32 = 256;

async fn goes_on_by_itself(setup: Setup, left_kib: u64) {
    let Some((mut server, small)) = start(setup, DISK_MIB) else { return };
    let token = fs::read_to_string(server.data().join("metrics.token")).unwrap();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let mut history = History::default();
    assert_eq!(say(&mut a, &mut history, "before", 500).await, 0);
    for round in 0..2 {
        small.fill_but(left_kib);
        let since = Instant::now();
        let mut burst = 0;
        loop {
            let refused = say(&mut a, &mut history, &format!("full{round}-{burst}"), 100).await;
            if refused == 100 {
                break; // whatever was left is used up
            }
            burst += 1;
            assert!(since.elapsed() < Duration::from_mins(1), "it is never full");
        }
        let ready = server.http.get("/readyz", token.trim()).await;
        assert_eq!(ready.status, 503, "{}", ready.text);
        let why = ready.body["store"].as_str().unwrap();
        assert!(why.contains("the disk") && !why.contains("stopped"), "{why}");
        let acked = history.count();
        history.check(&server.http, &bob, "alice").await; // reading goes on
        small.free();
        let since = Instant::now();
        let mut tries = 0;
        while say(&mut a, &mut history, &format!("again{round}-{tries}"), 10).await > 0 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            tries += 1;
            assert!(since.elapsed() < Duration::from_secs(20), "it does not go on");
        }
        assert_eq!(say(&mut a, &mut history, &format!("after{round}"), 500).await, 0);
        assert!(history.count() >= acked + 510);
        let since = Instant::now();
        while server.http.get("/readyz", "").await.status != 200 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(since.elapsed() < Duration::from_secs(10), "it stays unready");
        }
    }
    history.check(&server.http, &bob, "alice").await;
    // And all of it is on the disk.
    server.kill();
    server.start_again(|setup| setup);
    history.check(&server.http, &bob, "alice").await;
    drop((server, small));
}

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).with("NEXO_EMBEDDED__MEMTABLE_MIB", "2")
}

#[tokio::test]
async fn a_full_disk_refuses_and_goes_on_when_there_is_room() {
    goes_on_by_itself(setup().with("NEXO_EMBEDDED__RESERVE_MIB", "0"), 0).await;
}

/// Some room is left, but not for all that was collected.
#[tokio::test]
async fn a_nearly_full_disk_refuses_and_goes_on_when_there_is_room() {
    goes_on_by_itself(setup().with("NEXO_EMBEDDED__RESERVE_MIB", "0"), 3_000).await;
}

#[tokio::test]
async fn a_reserve_is_kept_for_what_was_taken() {
    goes_on_by_itself(setup().with("NEXO_EMBEDDED__RESERVE_MIB", "24"), 20 << 10).await;
}
