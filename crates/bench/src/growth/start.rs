//! How long a server takes to start: on an empty folder, on the generated one, and after kill -9.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use super::GrowthHooks;
use super::catch_up::{CatchupRun, catch_up};
use super::crash::{self, Acknowledged};
use super::folders::Folders;
use crate::measure::Percentiles;
use crate::progress::ProgressDisplay;
use crate::started::Started;

/// Times from the start of the process to a 200 from `/readyz`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Starts {
    /// On an empty folder.
    pub empty: Percentiles,
    /// On the generated folder, after it was stopped.
    pub stopped: Percentiles,
    /// On the generated folder, after kill -9 under load.
    pub killed: Percentiles,
}

/// What the servers on the generated folder did.
pub(super) struct ServerRuns {
    pub(super) starts: Starts,
    pub(super) catchups: Vec<CatchupRun>,
    /// What they had acknowledged before each kill.
    pub(super) acknowledged: Vec<Acknowledged>,
}

/// Starts, stops and kills servers on the generated folder, and starts one on an empty folder in each
/// round. In each round one offline user catches up.
pub(super) async fn run_servers(
    hooks: &GrowthHooks,
    folders: &Folders,
    rounds: usize,
    progress: ProgressDisplay,
) -> Result<ServerRuns> {
    let bar = progress.counting("starts", rounds);
    let (mut empty, mut stopped, mut killed) = (Vec::new(), Vec::new(), Vec::new());
    let (mut catchups, mut acknowledged) = (Vec::new(), Vec::new());
    let data = folders.large();
    for round in 0..rounds {
        let nothing = folders.empty()?;
        let (server, _) = start(hooks, &nothing.path().join("data"), &mut empty).await?;
        server.stop().await?;

        let (server, authority) = start(hooks, &data, &mut stopped).await?;
        catchups.push(catch_up(&authority, round).await?);
        let senders = crash::begin(&authority, progress).await?;
        acknowledged.extend(senders.kill(server, round).await.context("the load before a kill")?);

        let started = start(hooks, &data, &mut killed).await;
        let (server, _) = started.context("the start after a kill")?;
        server.stop().await?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let starts = Starts {
        empty: Percentiles::of_times(empty)?,
        stopped: Percentiles::of_times(stopped)?,
        killed: Percentiles::of_times(killed)?,
    };
    Ok(ServerRuns { starts, catchups, acknowledged })
}

/// Starts a server and records how long it took; also returns its `host:port`.
async fn start(
    hooks: &GrowthHooks,
    data: &Path,
    times: &mut Vec<Duration>,
) -> Result<(Started, String)> {
    let since = Instant::now();
    let server = (hooks.start)(data)?;
    let authority = server.ready().await?;
    times.push(since.elapsed());
    Ok((server, authority))
}
