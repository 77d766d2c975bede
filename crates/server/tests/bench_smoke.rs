//! Every scenario of `nexo bench`, small and short, against a real server: it ends, finds no fault,
//! and counts something. Fails on wrong counts, never on time.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const SHORT: [&str; 6] = ["--duration", "1", "--warmup", "0.2", "--grace", "20"];

fn bench(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nexo"));
    command.current_dir(folder).arg("bench").args(args).output().unwrap()
}

/// Runs a scenario that must find no fault; its report.
fn clean(args: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let output = bench(folder.path(), &[args, &["--json"]].concat());
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{args:?}\n{said}\n{errors}");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{args:?} left {left:?}");
    serde_json::from_str(&said).unwrap()
}

fn clean_for_a_second(args: &[&str]) -> Value {
    clean(&[args, &SHORT].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether what was sent was saved, and each pushed to so many; and that it was something.
fn assert_heard_by(load: &Value, listeners: u64) {
    let count = |name: &str| load["counters"][name].as_u64().unwrap();
    assert!(count("sent") > 0, "{load}");
    assert_eq!(count("saved"), count("sent"), "{load}");
    assert_eq!(count("pushed"), count("sent") * listeners, "{load}");
    assert!(load["pushed"]["count"].as_u64() > Some(0), "{load}");
}

#[test]
fn private_messages_in_every_dialect() {
    for dialect in ["typed", "numbered", "numbered-nested", "dotted", "dotted-binary"] {
        let report = clean_for_a_second(&["private", "--pairs", "3", "--dialect", dialect]);
        assert_heard_by(&report["load"], 1);
        let delivered =
            report["load"]["counters"]["delivered"] == report["load"]["counters"]["sent"];
        assert_eq!(delivered, !dialect.starts_with("numbered"), "{dialect}");
    }
}

#[test]
fn two_phases_beside_one() {
    let args = ["two-phase", "--rate", "300", "--connections", "20", "--duration", "1"];
    let report = clean(&args);
    let loads = report["loads"].as_array().unwrap();
    assert_eq!(loads.len(), 3);
    for (load, (is_early, is_shown)) in
        loads.iter().zip([(false, false), (true, false), (true, true)])
    {
        assert_heard_by(load, 1);
        assert_eq!(load["counters"]["accepted"].as_u64() > Some(0), is_early, "{load}");
        assert!(is_shown || load["counters"]["shown"] == 0, "{load}");
    }
}

#[test]
fn bursts() {
    let args = ["private", "--pairs", "5", "--rate", "200", "--burst", "50"];
    let report = clean_for_a_second(&args);
    // 200/s over 1.2 s, rounded up to whole bursts.
    assert_eq!(report["load"]["counters"]["sent"], 250);
}

#[test]
fn a_group() {
    let args = ["group", "--members", "20", "--online", "50%", "--senders", "2", "--baseline"];
    let report = clean_for_a_second(&args);
    assert_eq!((&report["members"], &report["connections"]), (&20.into(), &10.into()));
    assert_heard_by(&report["load"], 9);
    assert_heard_by(&report["baseline"]["relay"], 9);
    assert!(report["load"]["all"]["count"].as_u64() > Some(0));
    assert!(report["ratios"]["p3_fan_out"].as_f64() > Some(0.0));
}

#[test]
fn a_group_in_other_dialects() {
    for dialect in ["numbered", "numbered-nested", "dotted", "dotted-binary"] {
        let args = ["group", "--members", "5", "--dialect", dialect, "--rate", "50"];
        assert_heard_by(&clean_for_a_second(&args)["load"], 4);
    }
}

#[test]
fn a_group_beside_readers_who_misbehave() {
    let args = ["group", "--members", "10", "--rate", "50", "--beside"];
    let readers = ["--slow", "2", "--stuck", "2", "--flapping", "2"];
    let report = clean_for_a_second(&[&args[..], &readers].concat());
    assert_heard_by(&report["load"], 9);
    assert_heard_by(&report["beside"], 9);
    let readers = &report["readers"];
    assert!(readers["reconnects"].as_u64() > Some(0), "{readers}");
    let sent = report["beside"]["counters"]["sent"].as_u64().unwrap();
    assert_eq!(readers["flapping_heard"].as_u64(), Some(2 * sent), "{readers}");
}

#[test]
fn idle_connections() {
    let args = ["connect", "--connections", "50", "--active", "2", "--hold", "1", "--baseline"];
    let report = clean_for_a_second(&args);
    assert_eq!(report["connections"], 50);
    assert_heard_by(&report["active"], 1);
    assert!(report["memory_bytes"][1].as_u64() > Some(0), "{report}");
    assert_eq!(report["baseline"]["connections"], 50);
}

#[test]
fn catching_up_in_both_ways() {
    for way in ["pull", "resend"] {
        let args = ["--messages", "523", "--conversations", "5", "--clients", "2", "--way", way];
        let report = clean(&[&["catchup"], &args[..]].concat());
        assert_eq!(report["counters"]["pushed"], 2 * 523, "{report}");
        assert_eq!(report["from_connect"]["count"], 2);
    }
}

#[test]
fn everything_at_once() {
    let sizes = ["--pairs", "4", "--groups", "2", "--members", "5", "--idle", "10"];
    let report = clean_for_a_second(&[&["mixed", "--rate", "200"], &sizes[..]].concat());
    assert_heard_by(&report["private"], 1);
    assert_heard_by(&report["group"], 4);
    assert!(report["readers"]["reconnects"].as_u64() > Some(0), "{report}");
}

#[test]
fn a_plot_is_one_page() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["private", "--pairs", "2", "--plot", "page.html"];
    let output = bench(folder.path(), &[&args[..], &SHORT].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<svg"), "{page}");
}

#[test]
fn nonsense_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    for (args, words) in [
        (&["connect", "--connections", "0"][..], "at least one idle connection"),
        (&["connect", "--connections", "19000", "--active", "1"], "at most 19000 connections"),
        (&["group", "--members", "1"], "one speaks, one hears"),
        (&["group", "--beside"], "say how many"),
        (&["catchup", "--baseline"], "no bare stack"),
        (&["mixed", "--to-groups", "100"], "1 to 99"),
        (&["private", "--burst", "5"], "--rate"),
        (&["private", "--target", "https://127.0.0.1"], "http://"),
        (&["private", "--dialect", "latin"], "dotted-binary"),
    ] {
        let output = bench(folder.path(), args);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{args:?}: {said}");
    }
}
