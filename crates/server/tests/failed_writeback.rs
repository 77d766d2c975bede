//! A disk that fails to write: the sync reports it, the store stops, and what only the page cache shows afterwards is
//! not taken for durable.
//!
//! The error is a real one: the file system's device lies in a file on a small memory file system without room, and
//! the blocks of the log's end have been taken out of that file.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use nexo_sim::history::History;
use nexo_sim::process::{Server, Setup};
use nexo_sim::socket::{Socket, chat};
use nexo_sim::{LoopDisk, Person};
use rustix::fs::{FallocateFlags, fallocate};

const BLOCK: u64 = 4096;
/// The first block of the segment that cannot be written: what comes before holds the people and the first messages.
const BROKEN_FROM: u64 = 24;

/// A memory file system that holds the image of a disk.
struct Shelf(PathBuf);

impl Shelf {
    fn mount(at: &Path, mib: u64) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let size = format!("size={mib}m");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(at.to_owned()))
    }

    fn image(&self) -> PathBuf {
        self.0.join("image")
    }

    fn fill(&self) {
        let mut filler = File::create(self.0.join("filler")).unwrap();
        for size in [1 << 20, 4096] {
            while filler.write_all(&vec![7; size]).is_ok() {}
        }
    }

    fn make_room(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} stays", self.0.display());
    }
}

/// The blocks of a file on its disk, by their number in the file.
fn blocks_of(file: &Path) -> Vec<u64> {
    let path = std::env::var("PATH").unwrap() + ":/usr/sbin:/sbin";
    let output = Command::new("filefrag")
        .args(["-e", "-b4096"])
        .arg(file)
        .env("PATH", path)
        .output()
        .unwrap();
    let mut blocks = Vec::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        // 0:        0..     255:      34816..     35071:    256:             last,eof
        let fields: Vec<&str> = line.split(':').map(str::trim).collect();
        let Some((from, to)) = fields.get(2).and_then(|range| range.split_once("..")) else {
            continue;
        };
        let number = |text: &str| text.trim().parse::<u64>();
        if let (Ok(from), Ok(to)) = (number(from), number(to)) {
            blocks.extend(from..=to);
        }
    }
    blocks
}

/// Takes the end of the log's current segment out of the image: writing there needs room again.
fn break_end_of_log(server: &Server, shelf: &Shelf) {
    let blocks = blocks_of(&server.data().join("log/0000000001.log"));
    assert!(blocks.len() as u64 > BROKEN_FROM, "{blocks:?}");
    let image = File::options().write(true).open(shelf.image()).unwrap();
    // Everything else has its room, the journal of the file system too.
    fallocate(&image, FallocateFlags::empty(), 0, image.metadata().unwrap().len()).unwrap();
    for block in blocks.into_iter().skip(usize::try_from(BROKEN_FROM).unwrap()) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&image, flags, block * BLOCK, BLOCK).unwrap();
    }
    shelf.fill();
}

/// Sends one message after the other until one is refused; returns how many were acknowledged.
async fn send_until_refused(socket: &mut Socket, history: &mut History) -> usize {
    for number in 0..200 {
        let (id, body) = (format!("m{number}"), format!("{number} {}", "x".repeat(2_000)));
        history.tried(&id, &body);
        socket.say(chat("bob", &id, &body)).await;
        let answer = socket.answer(&id).await;
        if answer["type"] == "ERROR" {
            assert_eq!(answer["reason"], "server_busy", "{answer}");
            return number;
        }
        history.acked(&answer);
    }
    panic!("no write failed");
}

async fn retry_all(server: &Server, sender: &Person, history: &mut History) {
    let (mut socket, _) = server.connect(sender).await;
    for (id, body) in history.open() {
        history.acked(&socket.send("bob", &id, &body).await);
    }
}

#[tokio::test]
async fn after_a_failed_writeback_only_what_is_on_the_disk_counts() {
    let (folder, shelves) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(shelf) = Shelf::mount(&shelves.path().join("shelf"), 256) else {
        eprintln!("SKIPPED: no file system can be mounted here (it takes root)");
        return;
    };
    let Some(disk) = LoopDisk::create(&shelf.image(), &folder.path().join("data"), 128) else {
        eprintln!("SKIPPED: no file system on a loop device can be mounted here (it takes root)");
        return;
    };
    let setup =
        Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(0).with("NEXO_EMBEDDED__RESERVE_MIB", "0");
    let mut server = setup.clone().start_on(folder);
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut socket, _) = server.connect(&alice).await;
    let mut history = History::default();
    break_end_of_log(&server, &shelf);
    let acked = send_until_refused(&mut socket, &mut history).await;
    assert!(acked > 0, "some were written before the broken blocks");
    let ready = server.http.get("/readyz", "").await;
    assert_eq!(ready.status, 503, "{}", ready.text);
    server.kill();

    // The disk is well again, and the page cache still shows the message that was refused.
    shelf.make_room();
    server.start_again(|setup| setup);
    retry_all(&server, &alice, &mut history).await;
    history.check(&server.http, &bob, "alice").await;
    server.kill();
    // A power cut: all that was acknowledged is really there.
    let (folder, images) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let image = images.path().join("image");
    let left = disk.after_power_cut(&image, &folder.path().join("data"));
    let after = setup.start_on(folder);
    history.check(&after.http, &bob, "alice").await;
    drop((after, left, server, disk, shelf));
}
