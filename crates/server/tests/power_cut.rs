//! Power cuts: the server runs on a file system of its own, dies, and only what the device got by then is left.
//! Nothing acknowledged is lost, and the folder opens.
//!
//! Three rounds in the ordinary test; `make power ROUNDS=200` for more.

#![allow(clippy::unwrap_used, reason = "only tests are here")]
#![cfg(debug_assertions)] // a release build has no named steps

use std::time::Duration;

use nexo_sim::process::Setup;
use nexo_sim::{CrashLoad, LoopDisk, Server};
use nexo_store::embedded::fail_points::{FailPoint, SyncPoint};
use tempfile::TempDir;

const KILL_AT: &str = "NEXOTEST_KILL_AT";
const SKIP_SYNC: &str = "NEXOTEST_SKIP_SYNC";
const DISK_MIB: u64 = 512;

/// A server on a disk of its own. The server goes first when both are dropped.
struct Machine {
    server: Server,
    disk: LoopDisk,
    /// Holds the image of the disk.
    _images: TempDir,
}

impl Machine {
    fn new(setup: Setup) -> Option<Self> {
        let (folder, images) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (image, mount) = (images.path().join("image"), folder.path().join("data"));
        let Some(disk) = LoopDisk::create(&image, &mount, DISK_MIB) else {
            eprintln!(
                "SKIPPED: no file system on a loop device can be mounted here (it takes root)"
            );
            return None;
        };
        Some(Self { server: setup.start_on(folder), disk, _images: images })
    }

    /// Cuts the power of a machine whose server is dead, and starts a server on what is left.
    fn after_power_cut(&self, setup: Setup) -> Self {
        let (folder, images) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (image, mount) = (images.path().join("image"), folder.path().join("data"));
        let disk = self.disk.after_power_cut(&image, &mount);
        Self { server: setup.start_on(folder), disk, _images: images }
    }
}

/// Small memtables, so that tables are flushed and merged and segments are reused.
fn setup(is_two_phase: bool) -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_nexo"))
        .nodes(0)
        .with("NEXO_EMBEDDED__MEMTABLE_MIB", "1")
        .with("NEXO_TWO_PHASE__ENABLED", if is_two_phase { "true" } else { "false" })
}

/// When the power is cut.
#[derive(Debug)]
enum Moment {
    /// At a step, after it was passed so many times.
    Step(FailPoint, u32),
    After(Duration),
}

/// The moments of the rounds: every step in turn, sooner and later, and times between.
fn moment(round: u32) -> Moment {
    // The short form has a flush, an acknowledgement and a time; the long form has all.
    let order = [FailPoint::SegmentRetired, FailPoint::EntryWitnessed];
    let steps = FailPoint::ALL.into_iter().filter(|point| *point != FailPoint::TailRewritten);
    let steps: Vec<FailPoint> = order.into_iter().chain(steps).collect();
    if round % 3 == 2 {
        return Moment::After(Duration::from_micros(300_000 + 137_311 * u64::from(round % 17)));
    }
    let number = round - round / 3;
    let step = steps[number as usize % steps.len()];
    let is_frequent = step.name().starts_with("entry") || step == FailPoint::BatchPublished;
    // A start makes two segments: the others are made under load.
    let passes = if is_frequent { 20 + round * 7 % 211 } else { 3 + round % 3 };
    Moment::Step(step, passes)
}

/// Puts load on a server until it dies at the moment.
async fn run_until(machine: &mut Machine, load: &mut CrashLoad, moment: &Moment) {
    let server = &mut machine.server;
    match moment {
        Moment::Step(point, passes) => {
            server.stop();
            server.start_again(|setup| setup.with(KILL_AT, &format!("{}:{passes}", point.name())));
            let running = load.start(&server.http);
            load.until_dead(running).await;
            server.wait();
        }
        Moment::After(time) => {
            let running = load.start(&server.http);
            tokio::time::sleep(*time).await;
            server.kill();
            load.until_dead(running).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_by_a_power_cut() {
    let rounds = std::env::var("NEXO_POWER_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    // From time to time a new disk, so that it does not fill up, and so that new folders are cut too.
    let (mut machine, mut load) = (None, None);
    for round in 0..rounds {
        let is_two_phase = round % 2 == 1;
        if round % 12 == 0 {
            drop(machine.take());
            let Some(new) = Machine::new(setup(is_two_phase)) else { return };
            load = Some(CrashLoad::new(&new.server.http).await);
            machine = Some(new);
        }
        let (cut, load) = (machine.as_mut().unwrap(), load.as_mut().unwrap());
        let moment = moment(round);
        run_until(cut, load, &moment).await;
        let left = cut.after_power_cut(setup(is_two_phase));
        load.check(&left.server.http).await;
        println!("round {round}, {moment:?}: {} acknowledged so far, all there", load.count());
        machine = Some(left);
    }
}

/// Without one of the syncs, the same test finds a loss.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sync_is_needed() {
    for point in SyncPoint::ALL {
        let mut is_noticed = false;
        // What is lost depends on when the kernel writes by itself.
        for attempt in 0..8 {
            let Some(loses) = loses_without(point, attempt).await else { return };
            if loses {
                is_noticed = true;
                break;
            }
        }
        assert!(is_noticed, "nothing is lost without the sync of {}", point.name());
    }
}

/// Whether a power cut loses something if a sync is left out; `None` if there is no disk to try it on.
async fn loses_without(point: SyncPoint, attempt: u32) -> Option<bool> {
    let (moment, memtable_mib) = match point {
        SyncPoint::Log => (Moment::After(Duration::from_millis(500)), "1"),
        // While the segment after a newly used one is made: nothing else has synced its name yet. No memtable
        // is flushed by then, since that would.
        SyncPoint::SegmentName => (Moment::Step(FailPoint::SegmentZeroed, 5 + attempt % 3), "64"),
        SyncPoint::Witness => (Moment::Step(FailPoint::SegmentNamed, 6 + attempt), "1"),
    };
    let setup = setup(false).with("NEXO_EMBEDDED__MEMTABLE_MIB", memtable_mib);
    let mut machine = Machine::new(setup.clone().with(SKIP_SYNC, point.name()))?;
    let mut load = CrashLoad::new(&machine.server.http).await;
    run_until(&mut machine, &mut load, &moment).await;
    // The test fails by a panic: the server does not start, or a message is missing.
    let checked = tokio::spawn(async move {
        let left = machine.after_power_cut(setup);
        load.check(&left.server.http).await;
    });
    let loses = checked.await.is_err();
    eprintln!("without the sync of {}: {}", point.name(), if loses { "lost" } else { "kept" });
    Some(loses)
}
