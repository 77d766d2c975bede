//! The server is killed at each step on the way to the disk: nothing acknowledged is lost, nothing is there twice.

#![allow(clippy::unwrap_used, reason = "only tests are here")]
#![cfg(debug_assertions)] // a release build has no such steps

use std::os::unix::process::ExitStatusExt;

use nexo_sim::process::Setup;
use nexo_sim::{CrashLoad, Server};
use nexo_store::embedded::fail_points::FailPoint;

const KILL_AT: &str = "NEXOTEST_KILL_AT";

/// Small memtables and often written cursors, so that every step is reached soon.
fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo")).nodes(0).with("NEXO_EMBEDDED__MEMTABLE_MIB", "1")
}

/// How often a step is passed before the kill: late enough that people have registered, and that the rarer steps are
/// reached in between.
fn passes(point: FailPoint) -> u32 {
    match point {
        FailPoint::EntryAppended
        | FailPoint::EntrySynced
        | FailPoint::EntryWitnessed
        | FailPoint::BatchPublished => 60,
        FailPoint::CursorsWritten => 2,
        FailPoint::SegmentZeroed | FailPoint::SegmentRetired => 4,
        FailPoint::SegmentSynced | FailPoint::SegmentNamed => 6,
        FailPoint::MemtablesSealed | FailPoint::TreesFlushed | FailPoint::FlushWitnessed => 3,
        FailPoint::TreesCompacted | FailPoint::TailRewritten => 1,
    }
}

/// Runs load on a server until it dies at a step, and starts it again.
async fn kill_at(server: &mut Server, load: &mut CrashLoad, point: FailPoint, passes: u32) {
    let at = format!("{}:{passes}", point.name());
    server.stop();
    server.start_again(|setup| setup.with(KILL_AT, &at));
    let running = load.start(&server.http);
    load.until_dead(running).await;
    assert_eq!(server.wait(), None, "a signal ended it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_whatever_the_step() {
    let mut server = setup().start();
    let mut load = CrashLoad::new(&server.http).await;
    for point in FailPoint::ALL {
        let first =
            if point == FailPoint::TailRewritten { FailPoint::EntryAppended } else { point };
        kill_at(&mut server, &mut load, first, passes(first)).await;
        if point == FailPoint::TailRewritten {
            // The next start writes the unsynced entry again, and dies over it.
            let at = format!("{}:{}", point.name(), passes(point));
            let mut second = setup().with(KILL_AT, &at).command(&server.data());
            let ended = second.spawn().unwrap().wait_with_output().unwrap().status;
            assert_eq!(ended.signal(), Some(9), "it died while it opened the folder");
        }
        server.start_again(|setup| setup.with(KILL_AT, ""));
        load.check(&server.http).await;
        println!("{}: {} acknowledged so far, all there", point.name(), load.count());
    }
}
