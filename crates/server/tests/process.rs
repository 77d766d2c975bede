//! The process: settings, folders, disks, signals, logs.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nexo_sim::process::Setup;
use nexo_sim::socket::{SocketEvent, chat};
use serde_json::json;

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo"))
}

/// Starts a server that must not start; returns what it said and its exit code.
fn refusal(setup: &Setup, data: &Path) -> (String, Option<i32>) {
    let mut child = setup.command(data).spawn().unwrap();
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if since.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("it started");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (said, child.wait().unwrap().code())
}

#[test]
fn bad_settings_are_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    for (name, value, words) in [
        ("NEXO_AUTH__JWT_SECRET", "short", "at least 32 bytes"),
        ("NEXO_SESSION__POLICY", "any", "session.policy"),
        ("NEXO_NONSENSE", "1", "NEXO_NONSENSE"),
        ("NEXO_LIMITS__TEXT_CHARS", "many", "whole number"),
        ("NEXO_STORE", "postgres://localhost/nexo", "mysql://"),
        ("NEXO_LOG__LEVEL", "loud=very", "log.level"),
        ("NEXO_LOG__LEVEL", "verbose", "log.level is one of off, error, warn"),
    ] {
        let (said, code) = refusal(&setup().with(name, value), &folder.path().join("data"));
        assert!(said.contains(words) && code == Some(1), "{name}={value}: {code:?} {said}");
    }
    assert!(!folder.path().join("data").exists(), "nothing was made");
}

#[test]
fn an_unknown_key_in_the_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nexo.toml");
    std::fs::write(&file, "[limits]\ntext_charts = 5\n").unwrap();
    let check = |file: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nexo"));
        let output = command.env_clear().args(["config", "check", "--config"]).arg(file).output();
        let output = output.unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (is_fine, said) = check(&file);
    assert!(!is_fine && said.contains("text_charts"), "{said}");
    let default = Command::new(env!("CARGO_BIN_EXE_nexo")).args(["config", "default"]).output();
    std::fs::write(&file, default.unwrap().stdout).unwrap();
    assert_eq!(check(&file), (true, String::new()));
}

#[test]
fn a_check_tells_every_problem_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nexo.toml");
    let text = "listen = 'localhost'\nnonsense = 1\n[log]\nlevel = 'loud'\n[limits]\n\
                text_chars = 'many'\nframe_bytes = -1\n[messages]\nwords_file = '/nowhere/words'\n\
                [gateway]\nallowed_origins = ['app.example.com', 'https://good.example']\n\
                trusted_proxies = ['proxy', '10.0.0.1']\n";
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nexo"));
    command.env_clear().args(["config", "check", "--config"]).arg(&file);
    let command = command
        .env("NEXO_NO_SUCH", "1")
        .env("NEXO_MESSAGES__RECALL_SECONDS", "soon")
        .env("NEXO_METRICS__TOKEN_FILE", "/nowhere/token");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let problems: Vec<&str> = said.lines().filter(|line| line.starts_with("  - ")).collect();
    let expected = [
        "listen is an address",
        "nonsense is not a setting",
        "log.level is one of",
        "limits.text_chars needs a whole number",
        "limits.frame_bytes cannot be -1",
        "/nowhere/words",
        "`app.example.com` has no scheme",
        "`proxy` is not an IP address",
        "NEXO_NO_SUCH is not a setting",
        "NEXO_MESSAGES__RECALL_SECONDS needs a whole number",
        "NEXO_METRICS__TOKEN_FILE names /nowhere/token",
    ];
    for part in expected {
        let named = problems.iter().filter(|problem| problem.contains(part)).count();
        assert_eq!(named, 1, "{part}: {said}");
    }
    assert_eq!(problems.len(), expected.len(), "{said}");
    // The same list at a start, and nothing is made.
    let data = folder.path().join("data");
    let mut command = Command::new(env!("CARGO_BIN_EXE_nexo"));
    command.env_clear().args(["serve", "--config"]).arg(&file).arg("--data").arg(&data);
    let output = command.output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("trusted_proxies: `proxy`"));
    assert!(!output.status.success() && !data.exists());
}

#[test]
fn an_error_says_its_cause_once() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody listens there: the port was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let setup = setup().nodes(0).with("NEXO_STORE", &format!("mysql://nexo:s3cret@{free}/nexo"));
    let (said, code) = refusal(&setup, &folder.path().join("data"));
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("nexo: cannot use the database") && code == Some(1), "{said}");
    assert_eq!(last.matches("onnection refused").count(), 1, "{last}");
    assert_eq!(last.matches("rror:").count(), 0, "{last}");
    assert!(!said.contains("s3cret"), "{said}");
    assert_eq!(said.matches("onnection refused").count(), 1, "nor is it a warning before: {said}");
    // A folder that cannot be made.
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let data = file.join("data");
    let (said, code) = refusal(&self::setup(), &data);
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("nexo: cannot open the data folder") && code == Some(1), "{said}");
    for part in ["cannot open", data.to_str().unwrap(), "os error"] {
        assert_eq!(last.matches(part).count(), 1, "{part}: {last}");
    }
}

#[tokio::test]
async fn one_folder_belongs_to_one_process() {
    let server = setup().start();
    let (said, code) = refusal(&setup(), &server.data());
    assert!(said.contains("another process") && code == Some(1), "{said}");
    assert_eq!(server.http.get("/readyz", "").await.status, 200);
}

#[tokio::test]
async fn a_folder_of_a_newer_format_is_left_alone() {
    let mut server = setup().start();
    assert_eq!(server.stop(), Some(0));
    let format = server.data().join("FORMAT");
    let kept = std::fs::read_to_string(&format).unwrap();
    let newer = kept.replace(|c: char| c.is_ascii_digit(), "9");
    assert_ne!(kept, newer, "the format has a number: {kept}");
    std::fs::write(&format, &newer).unwrap();
    let (said, code) = refusal(&setup(), &server.data());
    assert!(said.contains("newer") && code == Some(1), "{said}");
    std::fs::write(&format, kept).unwrap();
    server.start_again(|setup| setup);
}

#[tokio::test]
async fn a_full_disk_is_told_and_nothing_is_acknowledged_that_is_not_kept() {
    // Files may not grow beyond 3 MiB (the shell counts in half KiB), which the process hears as a
    // failed write: the third segment of the log is to be 4 MiB long.
    let limited = setup().with("NEXO_EMBEDDED__MEMTABLE_MIB", "1024");
    let mut server = limited.after("trap '' XFSZ; ulimit -f 6144").start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    // Text that does not compress.
    let mut state = 1_u64;
    let body: String = (0..16_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'!' + u8::try_from((state >> 33) % 90).unwrap())
        })
        .collect();
    let mut history = nexo_sim::History::default();
    let mut refused = None;
    'full: for round in 0..60 {
        let ids: Vec<String> = (0..100).map(|i| format!("r{round}-{i}")).collect();
        for id in &ids {
            history.tried(id, &body);
        }
        a.burst(ids.iter().map(|id| {
            let mut frame = chat("bob", id, &body);
            frame["msgType"] = json!("CUSTOM");
            frame
        }))
        .await;
        for _ in 0..100 {
            match a.hear().await {
                SocketEvent::Frame(frame) if frame["ackType"] == "saved" => history.acked(&frame),
                SocketEvent::Frame(frame) if frame["type"] == "ERROR" => {
                    refused = Some(frame);
                    break 'full;
                }
                SocketEvent::Frame(_) => {}
                SocketEvent::Closed(_) => panic!("the socket stays"),
            }
        }
    }
    let refused = refused.expect("the disk is full");
    assert_eq!(refused["reason"], "server_busy");
    let ready = server.http.get("/readyz", "").await;
    assert_eq!((ready.status, ready.text.as_str()), (503, r#"{"status":"not ready"}"#));
    let token = std::fs::read_to_string(server.data().join("metrics.token")).unwrap();
    let ready = server.http.get("/readyz", token.trim()).await;
    assert!(ready.text.contains("stopped"), "it says why: {}", ready.text);
    assert_eq!(a.send("bob", "later", "hi").await["reason"], "server_busy");
    // With room again, everything that was acknowledged is there.
    server.kill();
    server.start_again(|_| setup());
    assert!(history.count() > 0);
    history.check(&server.http, &bob, "alice").await;
}

#[tokio::test]
async fn sigterm_tells_everybody_to_reconnect_and_loses_nothing() {
    tells_everybody_to_reconnect(rustix::process::Signal::TERM).await;
}

#[tokio::test]
async fn sighup_does_as_sigterm_does() {
    tells_everybody_to_reconnect(rustix::process::Signal::HUP).await;
}

async fn tells_everybody_to_reconnect(signal: rustix::process::Signal) {
    let mut server = setup().start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let mut history = nexo_sim::History::default();
    for i in 0..500 {
        history.tried(&format!("c{i}"), "hi");
    }
    a.burst((0..500).map(|i| chat("bob", &format!("c{i}"), "hi"))).await;
    server.signal(signal);
    let (frames, code) = a.expect_end().await;
    for frame in frames.iter().filter(|frame| frame["ackType"] == "saved") {
        history.acked(frame);
    }
    assert_eq!((&frames.last().unwrap()["reason"], code), (&json!("shutting_down"), Some(4004)));
    assert_eq!(server.wait(), Some(0));
    server.start_again(|setup| setup);
    history.check(&server.http, &bob, "alice").await;
}

#[test]
fn sigterm_ends_it_although_nobody_reads_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = setup().command(&folder.path().join("data")).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert!(line.contains("listening"), "{line}");
    drop(child.stderr.take());
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if since.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("it goes on");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[tokio::test]
async fn logs_hold_no_tokens_passwords_or_text() {
    let mut server = setup().with("NEXO_LOG__LEVEL", "trace").start();
    let (alice, bob) = (server.person("alice").await, server.person("bob").await);
    let (mut a, _) = server.connect(&alice).await;
    let (mut b, _) = server.connect(&bob).await;
    a.send("bob", "c1", "xyzzy-the-secret-text").await;
    let push = b.expect("SINGLE_CHAT").await;
    b.ack("read", "alice", &push).await;
    a.expect_ack("read").await;
    a.text("{broken xyzzy-the-secret-text").await;
    a.expect("ERROR").await;
    assert_eq!(server.stop(), Some(0));
    let log = server.log();
    for field in
        ["serverMsgId", "chatId", "ackUserId", "ackType", "deviceId", "prevCursor", "newCursor"]
    {
        assert!(log.contains(field), "{field} is missing from the trail of an ACK");
    }
    for secret in [&alice.token, &alice.refresh, nexo_sim::person::PASSWORD, "xyzzy"] {
        assert!(!log.contains(secret), "{secret:.12}… is in the log");
    }
}

#[test]
fn what_is_written_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let server = setup().start();
    let mut folders = vec![server.data()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{} is {mode:o}", entry.path().display());
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
        }
    }
}

#[test]
fn help_shows_examples() {
    for args in [&["--help"][..], &["serve", "--help"], &["bench", "private", "--help"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_nexo")).args(args).output().unwrap();
        assert!(output.status.success());
        assert!(!output.stdout.is_empty());
    }
    let help = Command::new(env!("CARGO_BIN_EXE_nexo")).arg("--help").output().unwrap().stdout;
    assert!(String::from_utf8_lossy(&help).contains("nexo config default"));
}
