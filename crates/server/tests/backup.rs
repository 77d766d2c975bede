//! `nexo backup` as an operator uses it: only what is new is copied, damage is found, old backups go, and only the
//! operator may ask for one.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use nexo_sim::backups::{BackupRepository, make, operator_token, wait_for};
use nexo_sim::history::read_all;
use nexo_sim::process::Setup;
use nexo_sim::{Person, Server};
use serde_json::json;

fn repository() -> BackupRepository {
    BackupRepository::new(env!("CARGO_BIN_EXE_nexo"))
}

/// Sends so many messages of 1 KB.
async fn send(server: &Server, from: &Person, to: &Person, prefix: &str, count: usize) {
    let (mut socket, _) = server.connect(from).await;
    for number in 0..count {
        let body = format!("{prefix} {number} {}", "x".repeat(1000));
        let ack = socket.send(&to.id, &format!("{prefix}{number}"), &body).await;
        assert_eq!(ack["ackType"], "saved", "{ack}");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn bytes(repository: &BackupRepository) -> u64 {
    repository.objects().iter().map(|(_, bytes)| bytes).sum()
}

fn count(repository: &BackupRepository) -> usize {
    fs::read_dir(repository.path().join("backups")).unwrap().count()
}

#[tokio::test]
async fn a_second_backup_copies_only_what_is_new_and_pruning_keeps_what_is_needed() {
    let repository = repository();
    let server = repository.setup().with("NEXO_EMBEDDED__MEMTABLE_MIB", "1").start();
    let [ann, bob] = server.people(["ann", "bob"]).await;
    send(&server, &ann, &bob, "a", 1500).await;
    let first = make(&server).await;
    let first_bytes = bytes(&repository);
    assert_eq!(first["written_bytes"], first_bytes, "all of it is new");
    send(&server, &ann, &bob, "b", 10).await;
    let second = make(&server).await;
    let new = bytes(&repository) - first_bytes;
    assert_eq!(second["written_bytes"], new);
    assert!(new < first_bytes / 2, "{new} of {first_bytes} bytes were copied again");
    let ids = [&first, &second].map(|status| status["backup_id"].as_str().unwrap().to_owned());
    let files =
        ids.each_ref().map(|id| repository.manifest(id)["files"].as_array().unwrap().clone());
    let tables = |which: usize| {
        let tables = files[which].iter().filter(|file| file["checksum"] != "");
        tables.map(|file| file["blake3"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let shared = tables(0).iter().filter(|hash| tables(1).contains(hash)).count();
    assert!(shared > 0, "the two share tables");

    // Objects of a deleted backup stay for a day: a backup that is being made may need them.
    let prune = ["backup", "prune", "--from", &repository.target, "--keep-last", "1"];
    let (is_done, said) = repository.run(&prune);
    assert!(is_done && said.contains(&ids[0]), "{said}");
    assert_eq!((count(&repository), bytes(&repository)), (1, first_bytes + new));
    let (is_done, said) = repository.run(&[&prune[..], &["--grace-hours", "0"]].concat());
    assert!(is_done, "{said}");
    assert_eq!(bytes(&repository), repository.manifest(&ids[1])["bytes"], "no more than is needed");
    let (is_whole, said) = repository.run(&["backup", "verify", "--from", &repository.target]);
    assert!(is_whole, "{said}");
    let (folder, said) = repository.restore(&[]);
    assert!(said.contains("1510 messages in 1 conversations"), "{said}");
    let restored = repository.setup().start_on(folder);
    assert_eq!(read_all(&restored.http, &bob, "ann").await.len(), 1510);
    // A restored server's backups go on in the same repository.
    make(&restored).await;
    assert_eq!(count(&repository), 2);
}

#[tokio::test]
async fn a_stopped_folder_is_backed_up_by_the_command_itself_without_its_secrets() {
    let repository = repository();
    let mut server = Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(0).start();
    let [ann, bob] = server.people(["ann", "bob"]).await;
    send(&server, &ann, &bob, "a", 3).await;
    let data = server.data();
    let create = ["backup", "create", "--to", &repository.target, "--data", text(&data)];
    // While it runs, the server alone decides where backups go.
    repository.refused(&create, "writes only to the backup.target of its settings");
    assert!(!repository.path().exists());
    server.stop();
    let (is_done, said) = repository.run(&create);
    assert!(is_done && said.contains("It was read back"), "{said}");
    let (folder, said) = repository.restore(&[]);
    assert!(said.contains("Not in the backup: jwt.secret"), "{said}");
    let restored = folder.path().join("data");
    assert!(!restored.join("jwt.secret").exists() && !restored.join("system.token").exists());
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(0).start_on(folder);
    let before = server.http.get("/conversation/heads", &bob.token).await;
    assert_eq!(before.status, 401, "tokens of another secret");
    let bob = Person::sign_in(&server.http, "bob", 1).await;
    assert_eq!(read_all(&server.http, &bob, "ann").await.len(), 3);
    let (is_done, said) = repository.run(&[&create[..], &["--with-secrets"]].concat());
    assert!(is_done, "{said}");
    let (folder, said) = repository.restore(&[]);
    assert!(!said.contains("Not in the backup"), "{said}");
    for name in ["jwt.secret", "system.token", "metrics.token"] {
        let secret = folder.path().join("data").join(name);
        assert_eq!(fs::read(&secret).unwrap(), fs::read(data.join(name)).unwrap(), "{name}");
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(secret).unwrap().permissions());
        assert_eq!(mode & 0o077, 0, "{name} is its owner's alone");
    }
}

#[tokio::test]
async fn the_command_asks_a_running_server_and_only_the_operator_may() {
    let repository = repository();
    let server = repository.setup().start();
    let [ann, bob] = server.people(["ann", "bob"]).await;
    send(&server, &ann, &bob, "a", 5).await;
    for wrong in ["", "nonsense", &ann.token] {
        let started = server.http.post("/admin/backup", wrong, json!({})).await;
        assert_eq!((started.status, started.reason()), (401, "unauthorized"), "{wrong}");
        assert_eq!(server.http.get("/admin/backup", wrong).await.status, 401, "{wrong}");
    }
    let token = operator_token(&server);
    let elsewhere = json!({ "target": "/tmp/elsewhere" });
    let refused = server.http.post("/admin/backup", &token, elsewhere).await;
    assert_eq!(refused.reason(), "invalid_param", "the settings alone say where it goes");
    assert_eq!(server.http.get("/admin/backup", &token).await.data()["run"], 0);
    let (data, url) = (server.data(), format!("http://{}", server.http.authority));
    let config = repository.path().with_file_name("nexo.toml");
    let settings = format!("[backup]\ntarget = {:?}\nwith_secrets = true\n", repository.target);
    fs::write(&config, settings).unwrap();
    let create = ["backup", "create", "--config", text(&config), "--data", text(&data)];
    let (is_done, said) = repository.run(&[&create[..], &["--server", &url]].concat());
    assert!(is_done && said.contains("It was read back"), "{said}");
    let status = server.http.get("/admin/backup", &token).await.data().clone();
    assert!(said.contains(status["backup_id"].as_str().unwrap()), "{status}");
    let (_, listed) = repository.run(&["backup", "list", "--from", &repository.target]);
    assert!(listed.contains(status["backup_id"].as_str().unwrap()), "{listed}");
    assert!(listed.contains("with secrets"), "{listed}");

    // Without a target there are no backups to begin.
    let plain = Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(0).start();
    let refused = plain.http.post("/admin/backup", &operator_token(&plain), json!({})).await;
    assert_eq!(refused.reason(), "forbidden");
}

#[tokio::test]
async fn backups_are_made_on_schedule_counted_and_old_ones_deleted() {
    let repository = repository();
    let setup = repository.setup().with("NEXO_BACKUP__EVERY_SECONDS", "1");
    let server = setup.with("NEXO_BACKUP__KEEP_LAST", "2").start();
    let token = operator_token(&server);
    wait_for(&server.http, &token, |status| status["run"].as_u64().unwrap() >= 5).await;
    let status = wait_for(&server.http, &token, |status| status["running"] == false).await;
    assert_eq!(status["error"], "", "{status}");
    assert!(status["next_time"].as_u64() > status["backup_time"].as_u64(), "{status}");
    assert!((2..=3).contains(&count(&repository)), "two are kept, and one may be new");
    let metrics = fs::read_to_string(server.data().join("metrics.token")).unwrap();
    let page = server.http.get("/metrics", metrics.trim()).await.text;
    let of = |name: &str| {
        let mut rows = page.lines().filter_map(|row| row.strip_prefix(name)?.strip_prefix(' '));
        rows.next().unwrap_or_else(|| panic!("{name} in {page}")).parse::<f64>().unwrap()
    };
    assert!(of("nexo_backup_last_success_timestamp_seconds") > 1.7e9);
    assert!(of("nexo_backup_duration_seconds") > 0.0);
    assert!(of("nexo_backup_written_bytes") >= 0.0, "nothing is new if nothing happened");
}

#[tokio::test]
async fn a_failed_backup_is_told_counted_and_tried_again() {
    let repository = repository();
    // A file stands where the folder should be.
    fs::write(repository.path(), "in the way").unwrap();
    let server = repository.setup().with("NEXO_BACKUP__EVERY_SECONDS", "1").start();
    let token = operator_token(&server);
    let failed = wait_for(&server.http, &token, |status| status["error"] != "").await;
    assert!(failed["error"].as_str().unwrap().contains(&repository.target), "{failed}");
    let metrics = fs::read_to_string(server.data().join("metrics.token")).unwrap();
    let page = server.http.get("/metrics", metrics.trim()).await.text;
    assert!(page.contains("nexo_backup_failures_total{kind=\"backup\"}"), "{page}");
    fs::remove_file(repository.path()).unwrap();
    let done = |status: &serde_json::Value| status["backup_id"] != "";
    wait_for(&server.http, &token, done).await;
    let since = Instant::now();
    while count(&repository) == 0 {
        assert!(since.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
