//! How long a server takes to start: on nothing, on what was generated, and after kill -9.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use super::Parts;
use super::crash::{self, Acknowledged};
use super::folders::Folders;
use super::missed::{CameBack, come_back};
use crate::measure::Percentiles;
use crate::progress::Progress;
use crate::started::Started;

/// Times from the start of the process to 200 from `/readyz`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Starts {
    /// On an empty folder.
    pub empty: Percentiles,
    /// On the generated folder, after it was stopped.
    pub stopped: Percentiles,
    /// On the generated folder, after kill -9 under load.
    pub killed: Percentiles,
}

/// What servers on the generated folder did.
pub(super) struct Served {
    pub(super) starts: Starts,
    pub(super) came_back: Vec<CameBack>,
    /// Before the kills.
    pub(super) acknowledged: Vec<Acknowledged>,
}

/// Starts, stops and kills servers, an empty one beside each; and lets those who were away catch
/// up.
pub(super) async fn serve(
    parts: &Parts,
    folders: &Folders,
    rounds: usize,
    progress: Progress,
) -> Result<Served> {
    let bar = progress.counting("starts", rounds);
    let (mut empty, mut stopped, mut killed) = (Vec::new(), Vec::new(), Vec::new());
    let (mut came_back, mut acknowledged) = (Vec::new(), Vec::new());
    let data = folders.large();
    for round in 0..rounds {
        let nothing = folders.empty()?;
        let (server, _) = start(parts, &nothing.path().join("data"), &mut empty).await?;
        server.stop().await?;

        let (server, authority) = start(parts, &data, &mut stopped).await?;
        came_back.push(come_back(&authority, round).await?);
        let senders = crash::begin(&authority, progress).await?;
        acknowledged.extend(senders.kill(server, round).await.context("the load before a kill")?);

        let started = start(parts, &data, &mut killed).await;
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
    Ok(Served { starts, came_back, acknowledged })
}

/// Starts a server and notes how long it took; also tells where it is.
async fn start(parts: &Parts, data: &Path, times: &mut Vec<Duration>) -> Result<(Started, String)> {
    let since = Instant::now();
    let server = (parts.start)(data)?;
    let authority = server.ready().await?;
    times.push(since.elapsed());
    Ok((server, authority))
}
