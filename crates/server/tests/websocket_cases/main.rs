//! WebSocket conformance over raw TCP: the cases of the Autobahn test suite by their numbers, requests
//! that are no upgrade, and attacks. Where that suite expects its message back, a dotted heartbeat is
//! answered with its `request_id`.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod attacks;
mod case;
mod client;
mod closing;
mod frames;
mod framing;
mod limits;
mod upgrade;
mod utf8;

use futures_util::StreamExt;
use nexo_sim::Server;
use nexo_sim::process::Setup;

use crate::case::Case;

/// Cases that run at the same time.
const AT_ONCE: usize = 4;

fn start() -> Server {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).start()
}

#[tokio::test]
async fn every_case_is_answered_as_the_protocol_says() {
    let cases: Vec<Case> = [
        framing::lengths(),
        framing::pings(),
        framing::reserved_bits(),
        framing::reserved_opcodes(),
        framing::fragmentation(),
        utf8::fragmented(),
        utf8::sequences(),
        closing::after_close(),
        closing::payloads(),
        closing::codes(),
        limits::long_messages(),
        limits::many_messages(),
        limits::auto_fragmentation(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let server = start();
    let alice = server.person("alice").await;
    let count = cases.len();
    let running = futures_util::stream::iter(cases).map(|case| case.run(&server, &alice));
    let results: Vec<Option<String>> = running.buffer_unordered(AT_ONCE).collect().await;
    let failed: Vec<String> = results.into_iter().flatten().collect();
    assert!(failed.is_empty(), "{} of {count} cases failed:\n{}", failed.len(), failed.join("\n"));
    assert_eq!(server.http.get("/healthz", "").await.status, 200);
}
