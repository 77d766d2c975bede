//! What the server finds unsafe when it starts: secrets that others can read, and passwords that travel unencrypted.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nexo_sim::process::Setup;

fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(0)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Starts on a folder; expects it to fail, and returns what it said.
fn refusal(setup: &Setup, data: &Path) -> String {
    let output = setup.command(data).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_secret_in_the_data_folder_that_everybody_reads_is_refused() {
    let mut server = setup().start();
    assert!(
        !server.log().contains("WARN") || !server.log().contains("can read"),
        "{}",
        server.log()
    );
    assert_eq!(server.stop(), Some(0));
    for name in ["jwt.secret", "metrics.token", "system.token"] {
        let file = server.data().join(name);
        set_mode(&file, 0o644);
        let said = refusal(&setup(), &server.data());
        assert!(said.contains(&format!("chmod 600 {}", file.display())), "{said}");
        set_mode(&file, 0o600);
    }
    // As a volume with `fsGroup`: it starts, and says so.
    set_mode(&server.data(), 0o770);
    set_mode(&server.data().join("jwt.secret"), 0o660);
    server.start_again(|setup| setup);
    assert_eq!(server.stop(), Some(0));
    let log = server.log();
    assert!(log.contains("its group can read a secret"), "{log}");
    assert!(log.contains("others can look into the data folder"), "{log}");
}

#[test]
fn a_secret_that_the_operator_names_is_warned_about() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jwt");
    fs::write(&file, "a secret of at least 32 bytes for tests").unwrap();
    for (mode, is_warned) in [(0o644, true), (0o640, false), (0o600, false)] {
        set_mode(&file, mode);
        let setup = setup().with("NEXO_AUTH__JWT_SECRET_FILE", file.to_str().unwrap());
        let mut server = setup.start();
        assert_eq!(server.stop(), Some(0));
        let log = server.log();
        assert_eq!(
            log.contains("everybody on this machine can read"),
            is_warned,
            "{mode:o}: {log}"
        );
        assert!(!log.contains("a secret of at least"), "{log}");
    }
}

#[test]
fn plain_text_to_another_machine_is_warned_about() {
    // Nobody listens there: the port was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let said = |host: &str, redis: &str, query: &str| {
        let setup = setup().with_services(
            &format!("mysql://nexo:s3cret@{host}:{port}/nexo{query}"),
            &format!("redis{}://:s3cret@{redis}:{port}", if query.is_empty() { "" } else { "s" }),
        );
        let setup = setup.with("NEXO_CLUSTER__PREFIX", "nexo");
        refusal(&setup, &folder.path().join("data"))
    };
    // This machine too, but not by an address of the loopback.
    let warned = said("0.0.0.0", "redis.invalid", "");
    assert!(warned.contains("the database is reached without TLS"), "{warned}");
    assert!(warned.contains("redis is reached without TLS"), "{warned}");
    for fine in [
        said("127.0.0.1", "127.0.0.1", ""),
        said("localhost", "localhost", ""),
        said("0.0.0.0", "redis.invalid", "?require_ssl=true"),
    ] {
        assert!(!fine.contains("without TLS"), "{fine}");
    }
    assert!(!warned.contains("s3cret"), "{warned}");
}
