//! `nexo restore`: every kind of damage is refused with its reason, and a time between two messages is reached.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nexo_sim::backups::{BackupRepository, make, operator_token, wait_for};
use nexo_sim::history::read_all;
use nexo_sim::{Http, Person, Server};
use serde_json::Value;

fn repository() -> BackupRepository {
    BackupRepository::new(env!("CARGO_BIN_EXE_nexo"))
}

/// A damaged copy of a repository, and what a restore says of it.
struct Case {
    name: &'static str,
    damage: fn(&Path, &Value),
    /// Other arguments of the restore.
    more: &'static [&'static str],
    says: &'static [&'static str],
}

fn object(repository: &Path, hash: &Value) -> PathBuf {
    let hash = hash.as_str().unwrap();
    repository.join("objects").join(&hash[..2]).join(hash)
}

/// A table of a backup: its file and its object.
fn table(repository: &Path, manifest: &Value) -> PathBuf {
    let mut files = manifest["files"].as_array().unwrap().iter();
    let is_table = |file: &&Value| file["path"].as_str().unwrap().starts_with("trees/messages/t");
    object(repository, &files.find(is_table).unwrap()["blake3"])
}

fn flip_a_bit(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(path, bytes).unwrap();
}

fn manifest_file(repository: &Path, manifest: &Value) -> PathBuf {
    repository.join("backups").join(format!("{}.json", manifest["id"].as_str().unwrap()))
}

/// Changes the manifest as a program would that writes it: its checksum fits.
fn rewrite(repository: &Path, manifest: &Value, from: &str, to: &str) {
    let path = manifest_file(repository, manifest);
    let text = fs::read_to_string(&path).unwrap();
    let changed = text.replacen(from, to, 1);
    assert_ne!(changed, text, "{from}");
    let checksum = manifest["blake3"].as_str().unwrap();
    let bare = changed.replace(checksum, "");
    // The checksum is of the same JSON without any space.
    let compact: String = bare.lines().map(|line| line.trim().replace("\": ", "\":")).collect();
    fs::write(path, changed.replace(checksum, &blake3::hash(compact.as_bytes()).to_string()))
        .unwrap();
}

const CASES: &[Case] = &[
    Case {
        name: "a bit of a table is flipped",
        damage: |repository, manifest| flip_a_bit(&table(repository, manifest)),
        more: &[],
        says: &["trees/messages/tables/", "is damaged", "its checksum is wrong", "--backup"],
    },
    Case {
        name: "a table is shorter",
        damage: |repository, manifest| {
            let path = table(repository, manifest);
            let bytes = fs::read(&path).unwrap();
            fs::write(path, &bytes[..bytes.len() - 100]).unwrap();
        },
        more: &[],
        says: &["trees/messages/tables/", "is damaged", "bytes and not"],
    },
    Case {
        name: "a table is missing",
        damage: |repository, manifest| fs::remove_file(table(repository, manifest)).unwrap(),
        more: &[],
        says: &["trees/messages/tables/", "is missing"],
    },
    Case {
        name: "the log is missing",
        damage: |repository, manifest| {
            fs::remove_file(object(repository, &manifest["log"][0]["blake3"])).unwrap();
        },
        more: &[],
        says: &["log/", "is missing"],
    },
    Case {
        name: "a bit of the log is flipped",
        damage: |repository, manifest| {
            flip_a_bit(&object(repository, &manifest["log"][0]["blake3"]));
        },
        more: &[],
        says: &["log/", "is damaged"],
    },
    Case {
        name: "a number in the manifest is changed",
        damage: |repository, manifest| {
            let path = manifest_file(repository, manifest);
            let newest = format!("\"newest\": {}", manifest["newest"]);
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, text.replace(&newest, "\"newest\": 7")).unwrap();
        },
        more: &[],
        says: &["manifest of backup", "is damaged"],
    },
    Case {
        name: "the manifest is half a file",
        damage: |repository, manifest| {
            let path = manifest_file(repository, manifest);
            let bytes = fs::read(&path).unwrap();
            fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        },
        more: &[],
        says: &["manifest of backup", "is damaged"],
    },
    Case {
        name: "the manifest lists less of the log than it says",
        damage: |repository, manifest| {
            let newest = format!("\"newest\": {}", manifest["newest"]);
            rewrite(repository, manifest, &newest, "\"newest\": 9999999");
        },
        more: &[],
        says: &["manifest of backup", "entries of its log are missing"],
    },
    Case {
        name: "a file would be written outside of the folder",
        damage: |repository, manifest| {
            rewrite(repository, manifest, "\"trees/messages/current\"", "\"trees/../../outside\"");
        },
        more: &[],
        says: &["manifest of backup", "is no file of a data folder"],
    },
    Case {
        name: "a newer disk format",
        damage: |repository, manifest| {
            let format = format!("\"format\": {}", manifest["format"]);
            rewrite(repository, manifest, &format, "\"format\": 99");
        },
        more: &[],
        says: &["was written by a newer version (format 99"],
    },
    Case {
        name: "a newer layout of backups",
        damage: |repository, manifest| {
            rewrite(repository, manifest, "\"layout\": 1", "\"layout\": 2");
        },
        more: &[],
        says: &["was written by a newer version of Nexo"],
    },
    Case {
        name: "a newer repository",
        damage: |repository, _| {
            fs::write(repository.join("nexo-backup.json"), "{\"layout\":2}").unwrap();
        },
        more: &[],
        says: &["was written by a newer version of Nexo"],
    },
    Case {
        name: "no repository",
        damage: |repository, _| fs::remove_file(repository.join("nexo-backup.json")).unwrap(),
        more: &[],
        says: &["there are no backups of Nexo"],
    },
    Case {
        name: "no such backup",
        damage: |_, _| {},
        more: &["--backup", "20200101T000000Z-00000000"],
        says: &["there is no backup 20200101T000000Z-00000000"],
    },
    Case {
        name: "a time before all backups",
        damage: |_, _| {},
        more: &["--at", "2020-01-01T00:00:00Z"],
        says: &["2020-01-01T00:00:00Z cannot be restored", "begins at"],
    },
    Case {
        name: "no time",
        damage: |_, _| {},
        more: &["--at", "yesterday"],
        says: &["give a time such as"],
    },
];

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_all(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

async fn send(server: &Server, from: &Person, to: &Person, prefix: &str, count: usize) {
    let (mut socket, _) = server.connect(from).await;
    for number in 0..count {
        let body = format!("{prefix} {number} {}", "x".repeat(1000));
        let ack = socket.send(&to.id, &format!("{prefix}{number}"), &body).await;
        assert_eq!(ack["ackType"], "saved", "{ack}");
    }
}

#[tokio::test]
async fn a_damaged_backup_is_refused_with_its_reason() {
    let whole = repository();
    let server = whole.setup().with("NEXO_EMBEDDED__MEMTABLE_MIB", "1").start();
    let [ann, bob] = server.people(["ann", "bob"]).await;
    let mut manifest = Value::Null;
    // Until there is a table as well as something newer in the log.
    for round in 0..20 {
        send(&server, &ann, &bob, &format!("r{round}-"), 400).await;
        let made = make(&server).await;
        manifest = whole.manifest(made["backup_id"].as_str().unwrap());
        let files = manifest["files"].as_array().unwrap().iter();
        let has_tables =
            files.clone().any(|it| it["path"].as_str().unwrap().starts_with("trees/messages/t"));
        if has_tables && !manifest["log"].as_array().unwrap().is_empty() {
            break;
        }
    }
    drop(server);
    for case in CASES {
        let copy = tempfile::tempdir().unwrap();
        let damaged = copy.path().join("backups");
        copy_all(&whole.path(), &damaged);
        for other in fs::read_dir(damaged.join("backups")).unwrap() {
            let other = other.unwrap().path();
            if other != manifest_file(&damaged, &manifest) {
                fs::remove_file(other).unwrap();
            }
        }
        (case.damage)(&damaged, &manifest);
        let data = copy.path().join("data");
        let [from, to] = [&damaged, &data].map(|path| path.to_str().unwrap());
        let restore = [&["restore", "--from", from, "--data", to], case.more].concat();
        let (is_done, said) = whole.run(&restore);
        assert!(!is_done, "{} is restored: {said}", case.name);
        for words in case.says {
            assert!(said.contains(words), "{}: no {words:?} in {said}", case.name);
        }
        println!("{}: {said}", case.name);
        // What was begun opens for no server, and is not restored into again.
        if data.exists() {
            let (_, said) = whole.run(&["serve", "--listen", "127.0.0.1:0", "--data", to]);
            assert!(said.contains("or a restore. Delete it"), "{}: {said}", case.name);
            let (is_done, said) = whole.run(&["restore", "--from", &whole.target, "--data", to]);
            assert!(!is_done && said.contains("it is not empty"), "{}: {said}", case.name);
        }
    }
}

#[tokio::test]
async fn verify_finds_what_a_restore_would_and_names_the_backups() {
    let repository = repository();
    let server = repository.setup().start();
    let [ann, bob] = server.people(["ann", "bob"]).await;
    send(&server, &ann, &bob, "a", 20).await;
    let made = make(&server).await;
    let id = made["backup_id"].as_str().unwrap();
    let manifest = repository.manifest(id);
    let verify = ["backup", "verify", "--from", &repository.target];
    let (is_whole, said) = repository.run(&verify);
    assert!(is_whole && said.contains("are whole"), "{said}");
    let log = object(&repository.path(), &manifest["log"][0]["blake3"]);
    flip_a_bit(&log);
    let said = repository.refused(&verify, "log/");
    assert!(said.contains("its checksum is wrong") && said.contains(id), "{said}");
    fs::remove_file(log).unwrap();
    assert!(repository.refused(&verify, "is missing").contains(id));
    flip_a_bit(&manifest_file(&repository.path(), &manifest));
    repository.refused(&verify, "is damaged");
    repository.refused(
        &["backup", "prune", "--from", &repository.target, "--keep-last", "1"],
        "is damaged",
    );
}

fn now_ms() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the server under test has the system's clock")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

/// Waits until the clock shows a later millisecond, and returns the one before as a time for `--at`.
async fn moment() -> String {
    let at = now_ms();
    while now_ms() <= at + 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    rfc3339(at + 1)
}

/// Milliseconds since 1970 as the command reads them.
fn rfc3339(at_ms: u64) -> String {
    let (days, ms) = (at_ms / 86_400_000, at_ms % 86_400_000);
    // The civil calendar, counted from March of the year 0.
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * shifted + 2) / 5 + 1, (shifted + 2) % 12 + 1);
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    let ms = ms % 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

async fn bodies(http: &Http, reader: &Person) -> Vec<String> {
    let read = read_all(http, reader, "ann").await;
    read.iter().map(|it| it["content"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_time_between_two_messages_of_one_backup_is_reached() {
    let repository = repository();
    let server = repository.setup().start();
    let [ann, bob] = server.people(["ann", "bob"]).await;
    let (mut socket, _) = server.connect(&ann).await;
    socket.send("bob", "c1", "first").await;
    let between = moment().await;
    socket.send("bob", "c2", "second").await;
    make(&server).await;
    let (folder, said) = repository.restore(&["--at", &between]);
    assert!(said.contains("1 messages in 1 conversations"), "{said}");
    assert!(!said.contains("end before"), "{said}");
    let restored = repository.setup().start_on(folder);
    assert_eq!(bodies(&restored.http, &bob).await, ["first"]);
    // Later than all backups: all there is, and it says so.
    let (_, said) = repository.restore(&["--at", "2999-01-01T00:00:00Z"]);
    assert!(said.contains("2 messages") && said.contains("The backups end before 2999"), "{said}");
}

#[tokio::test]
async fn with_the_archived_log_any_moment_after_a_backup_is_reached() {
    let repository = repository();
    let setup = repository.setup().with("NEXO_BACKUP__ARCHIVE_LOG_SECONDS", "1");
    let mut server = setup.with("NEXO_EMBEDDED__MEMTABLE_MIB", "1").start();
    let token = operator_token(&server);
    // The archive needs a backup to begin from, and makes one.
    wait_for(&server.http, &token, |status| status["backup_id"] != "").await;
    let [ann, bob] = server.people(["ann", "bob"]).await;
    // More than the memtables hold: the log is retired meanwhile, but not before it is archived.
    send(&server, &ann, &bob, "a", 2500).await;
    let (mut socket, _) = server.connect(&ann).await;
    socket.send("bob", "c1", "last").await;
    let between = moment().await;
    socket.send("bob", "c2", "too late").await;
    let since = Instant::now();
    let restored = loop {
        let (folder, said) = repository.restore(&[]);
        if said.contains("2502 messages") {
            break folder;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "not archived in time: {said}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    drop(restored);
    assert_eq!(fs::read_dir(repository.path().join("backups")).unwrap().count(), 1, "one backup");
    let (folder, said) = repository.restore(&["--at", &between]);
    assert!(said.contains("2501 messages"), "{said}");
    let restored = repository.setup().start_on(folder);
    let read = bodies(&restored.http, &bob).await;
    assert_eq!((read.len(), read.last().map(String::as_str)), (2501, Some("last")));
    // After a crash the archive goes on where it was.
    server.kill();
    server.start_again(|setup| setup);
    let (mut socket, _) = server.connect(&ann).await;
    assert_eq!(socket.send("bob", "c3", "after the crash").await["ackType"], "saved");
    let since = Instant::now();
    loop {
        let (_, said) = repository.restore(&[]);
        if said.contains("2503 messages") {
            break;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "not archived in time: {said}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
