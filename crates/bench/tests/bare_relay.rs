//! The generator against the bare relay, over real sockets. Fails on wrong counts, never on time.

use std::time::Duration;

use nexo_bench::options::{Flow, OutputOptions, Span, TargetOptions};
use nexo_bench::{BenchReport, Endpoint, LoadReport, PrivateOptions, bare, serve_bare_relay};
use tokio::net::TcpListener;

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let target = format!("http://{}", listener.local_addr().expect("an address"));
    (listener, target)
}

async fn relay() -> Endpoint {
    let (listener, target) = listen().await;
    tokio::spawn(serve_bare_relay(listener));
    Endpoint::at(target)
}

fn span(millis: u64) -> Span {
    let warmup = Duration::from_millis(300);
    Span { duration: Duration::from_millis(millis), warmup, ..Span::default() }
}

fn options() -> PrivateOptions {
    PrivateOptions {
        connections: 20,
        span: span(700),
        target: TargetOptions {
            output: OutputOptions { json: true, plot: None },
            ..TargetOptions::default()
        },
        ..PrivateOptions::default()
    }
}

fn assert_all_accounted_for(report: &LoadReport) {
    let counters = &report.load.counters;
    assert!(report.is_clean(), "{report}");
    assert!(counters.sent > 0, "{report}");
    assert_eq!(counters.saved, counters.sent);
    assert_eq!(counters.pushed, counters.sent);
    assert_eq!(counters.delivered, counters.sent);
    assert_eq!(counters.receipts, counters.sent);
    assert_eq!(counters.refused, 0);
    // What was due while measured has all three steps, and the warm-up is not among it.
    assert_eq!(report.load.saved.count, report.load.pushed.count);
    assert_eq!(report.load.saved.count, report.load.delivered.count);
    assert!(report.load.saved.count < counters.sent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_loop_loses_repeats_and_reorders_nothing() {
    let report = bare(&options(), &relay().await).await.unwrap();
    assert_all_accounted_for(&report);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_loop_sends_as_many_as_were_due() {
    let options =
        PrivateOptions { flow: Flow { rate: Some(2000), ..Flow::default() }, ..options() };
    let report = bare(&options, &relay().await).await.unwrap();
    assert_all_accounted_for(&report);
    // 2,000/s over one second of warm-up and measurement; 1,400 of them while measured.
    assert_eq!(report.load.counters.sent, 2000);
    assert_eq!(report.load.saved.count, 1400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_run_may_follow_at_once_on_the_same_relay() {
    let target = relay().await;
    let short = PrivateOptions { span: span(50), ..options() };
    for _ in 0..3 {
        let report = bare(&short, &target).await.expect("a report");
        assert_all_accounted_for(&report);
    }
}

#[tokio::test]
async fn nobody_there_is_an_error() {
    let (listener, target) = listen().await;
    drop(listener);
    let error = bare(&options(), &Endpoint::at(target)).await.unwrap_err();
    assert!(format!("{error:#}").contains("cannot connect"), "{error:#}");
}
