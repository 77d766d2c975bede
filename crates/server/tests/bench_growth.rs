//! `nexo bench growth`, small: it generates, compares, starts, kills, and loses nothing.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn growth(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nexo"));
    command.args(["bench", "growth"]).args(args).current_dir(folder).output().unwrap()
}

fn report(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_small_run_measures_everything_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = growth(
        folder.path(),
        &["--messages", "12000", "--members", "600", "--rounds", "1", "--json"],
    );
    let report = report(&output);
    assert_eq!(report["generated"]["messages"], 12_000);
    assert!(report["bytes_on_disk"].as_u64().unwrap() > 12_000 * 100);
    let comparisons = report["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 9);
    for it in comparisons {
        let is_measured = |name: &str| it[name].as_f64().unwrap() > 0.0;
        assert!(is_measured("small_us") && is_measured("large_us") && is_measured("ratio"), "{it}");
    }
    for starts in ["empty", "stopped", "killed"] {
        assert!(report["starts"][starts]["p50_us"].as_f64().unwrap() > 0.0, "{starts}");
    }
    assert!(report["crash"]["acknowledged"].as_u64().unwrap() > 0, "there was load");
    assert_eq!(report["crash"]["lost"], 0);
    assert_eq!(report["missed"]["received"][0], report["missed"]["messages"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "its folder is gone");
}

#[test]
fn what_is_kept_is_used_again_but_not_for_another_number() {
    let folder = tempfile::tempdir().unwrap();
    let keep = ["--keep", "kept", "--members", "10", "--rounds", "1", "--json", "--messages"];
    let first = report(&growth(folder.path(), &[&keep[..], &["10000"]].concat()));
    assert_eq!(first["generated"]["messages"], 10_000);
    let again = report(&growth(folder.path(), &[&keep[..], &["10000"]].concat()));
    assert!(again["generated"].is_null(), "it was there");
    let other = growth(folder.path(), &[&keep[..], &["20000"]].concat());
    let said = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(!other.status.success() && said.contains("another store"), "{said}");
}
