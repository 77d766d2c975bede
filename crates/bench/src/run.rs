//! Pairs made, loaded and summed up.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::time::sleep;

use crate::accounts::sign_up;
use crate::bare::Bare;
use crate::connect::{connect, connect_as};
use crate::dialect::Dialect;
use crate::http::authority;
use crate::ledger::Counters;
use crate::measure::{Load, Tally};
use crate::options::PrivateOptions;
use crate::pace::Plan;
use crate::pair::Pair;
use crate::progress::Progress;
use crate::report::Report;
use crate::typed::Typed;

/// Handshakes at once: more than a listener's backlog would only be dropped and repeated.
const CONNECTING_AT_ONCE: usize = 32;

/// Loads a server with private messages. With `--baseline`, a second phase follows over the same
/// connections: half of the load that was found, in an open loop.
pub async fn private(options: &PrivateOptions, target: &str) -> Result<Report> {
    options.check()?;
    let authority = authority(target)?;
    let progress = Progress::new(!options.json);
    let users = sign_up(&authority, options.pair_count() * 2, &progress).await?;
    let size = options.size;
    let authority = authority.as_str();
    let pairs = users.chunks_exact(2).map(|users| async move {
        let sender = connect_as(authority, &users[0]).await?;
        let receiver = connect_as(authority, &users[1]).await?;
        let dialect = Typed::new(&users[0].user, &users[1].user, size);
        Ok(Pair::new(dialect, sender, receiver))
    });
    let pairs = all(pairs, &progress).await?;
    let (pairs, load) = phase(pairs, options, options.rate, "private messages", &progress).await?;
    let mut report = Report::new("private messages", target, options, load);
    if options.baseline {
        let half = half_of(&report.load);
        let (_pairs, load) = phase(pairs, options, Some(half), "half the load", &progress).await?;
        report.half = Some(load);
    }
    Ok(report)
}

/// The same load on a bare relay: the same number of connections, and frames as long and as many.
pub async fn bare(options: &PrivateOptions, relay: &str) -> Result<Report> {
    options.check()?;
    let authority = authority(relay)?;
    let progress = Progress::new(!options.json);
    let size = options.size;
    let authority = authority.as_str();
    let pairs = (0..options.pair_count()).map(|pair| async move {
        let (from, to) = (2 * pair, 2 * pair + 1);
        let sender = connect(authority, &format!("/{from}")).await?;
        let receiver = connect(authority, &format!("/{to}")).await?;
        Ok(Pair::new(Bare::new(from, to, size), sender, receiver))
    });
    let pairs = all(pairs, &progress).await?;
    let (_pairs, load) = phase(pairs, options, options.rate, "bare relay", &progress).await?;
    Ok(Report::new("bare relay", relay, options, load))
}

/// Half of what was saved per second, and at least one.
fn half_of(load: &Load) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate, not huge")]
    let half = (load.saved_per_second / 2.0) as u64;
    half.max(1)
}

/// Connects all pairs, some at a time.
async fn all<D, F>(
    pairs: impl ExactSizeIterator<Item = F>,
    progress: &Progress,
) -> Result<Vec<Pair<D>>>
where
    F: Future<Output = Result<Pair<D>>>,
{
    let bar = progress.counting("pairs connected", pairs.len());
    let connected = stream::iter(pairs)
        .buffered(CONNECTING_AT_ONCE)
        .inspect_ok(|_| bar.inc(1))
        .try_collect()
        .await;
    bar.finish_and_clear();
    connected
}

/// Runs one phase over all pairs, and gives them back.
async fn phase<D: Dialect + Sync>(
    pairs: Vec<Pair<D>>,
    options: &PrivateOptions,
    rate: Option<u64>,
    name: &str,
    progress: &Progress,
) -> Result<(Vec<Pair<D>>, Load)> {
    let plan = Arc::new(Plan::begin(pairs.len(), rate, options));
    let tally = Arc::new(Tally::new(plan.measured())?);
    let watcher = tokio::spawn(watch(
        Arc::clone(&tally),
        name.to_owned(),
        options.warmup + options.duration,
        *progress,
    ));
    let tasks: Vec<_> = pairs
        .into_iter()
        .enumerate()
        .map(|(number, mut pair)| {
            let (plan, tally) = (Arc::clone(&plan), Arc::clone(&tally));
            tokio::spawn(async move {
                let counters = pair.run(number, &plan, &tally).await;
                (pair, counters)
            })
        })
        .collect();
    let beat = tokio::task::spawn_blocking(move || plan.beat());
    let mut pairs = Vec::with_capacity(tasks.len());
    let mut counters = Counters::default();
    for task in tasks {
        let (pair, counted) = task.await?;
        pairs.push(pair);
        counters.add(&counted);
    }
    beat.await?;
    watcher.abort();
    // Aborted on purpose: it would go on for the rest of its bar.
    drop(watcher.await);
    let tally = Arc::into_inner(tally).context("somebody still measures")?;
    Ok((pairs, tally.close(rate, counters)))
}

/// Shows how far the phase is and how fast.
async fn watch(tally: Arc<Tally>, name: String, length: Duration, progress: Progress) {
    const STEP: Duration = Duration::from_millis(250);
    let steps = length.as_millis() / STEP.as_millis();
    let bar = progress.timing(&name, u64::try_from(steps).unwrap_or(u64::MAX));
    loop {
        let before = tally.messages();
        sleep(STEP).await;
        let rate = (tally.messages() - before) * 4;
        bar.set_message(format!("{name} {rate}/s"));
        bar.inc(1);
    }
}
