//! Private messages: connects pairs, runs the load, and reports.

use std::sync::Arc;

use anyhow::Result;

use crate::accounts::sign_up;
use crate::bare::BareCodec;
use crate::dialects::{DialectChoice, Recipient};
use crate::endpoint::Endpoint;
use crate::http::authority;
use crate::ledger::Counters;
use crate::measure::Load;
use crate::options::{Flow, PrivateOptions, Span};
use crate::pair::Pair;
use crate::progress::{ProgressDisplay, run_all};
use crate::report::LoadReport;
use crate::socket::{CONNECTING_AT_ONCE, connect};
use crate::stage::{EndedStage, Participants, Stage};

/// Loads a server with private messages. With `--baseline`, a second phase follows over the same
/// connections: half of the measured rate, in an open loop.
pub async fn private(options: &PrivateOptions, endpoint: &Endpoint) -> Result<LoadReport> {
    options.check()?;
    let here = authority(&endpoint.address)?;
    let progress = ProgressDisplay::new(!options.target.output.json);
    let (count, size) = (options.pair_count(), options.flow.size);
    let receivers_at = options.receivers_at.as_deref().map(authority).transpose()?;
    let there = receivers_at.as_ref().unwrap_or(&here);
    let pairs = connected([&here, there], options.dialect, count, size, progress).await?;
    let (span, flow) = (&options.span, &options.flow);
    let (pairs, load) = phase(pairs, "private messages", span, flow, endpoint, progress).await?;
    let mut report = LoadReport::private("private messages", endpoint, options, load.close());
    if options.target.baseline {
        let flow = Flow { rate: Some(half_of(&report.load)), ..flow.clone() };
        let (_pairs, load) = phase(pairs, "half the load", span, &flow, endpoint, progress).await?;
        report.half = Some(load.close());
    }
    Ok(report)
}

/// The same load on a bare relay: as many connections, and frames as long and as many.
pub async fn bare(options: &PrivateOptions, relay: &Endpoint) -> Result<LoadReport> {
    options.check()?;
    let authority = authority(&relay.address)?;
    let progress = ProgressDisplay::new(!options.target.output.json);
    let size = options.flow.size;
    let authority = authority.as_str();
    let pairs = (0..options.pair_count()).map(|pair| async move {
        let (from, to) = (2 * pair, 2 * pair + 1);
        let sender = connect(authority, &format!("/{from}")).await?;
        let receiver = connect(authority, &format!("/{to}")).await?;
        Ok(Pair::new(Arc::new(BareCodec::pair(from, to, size)), sender, receiver))
    });
    let pairs = run_all(pairs, CONNECTING_AT_ONCE, "pairs connected", progress).await?;
    let (span, flow) = (&options.span, &options.flow);
    let (_pairs, load) = phase(pairs, "bare relay", span, flow, relay, progress).await?;
    Ok(LoadReport::private("bare relay", relay, options, load.close()))
}

/// Registers and connects new users in pairs: senders to one node, receivers to another.
pub(crate) async fn connected(
    [authority, receivers_at]: [&str; 2],
    dialect: DialectChoice,
    count: usize,
    size: usize,
    progress: ProgressDisplay,
) -> Result<Vec<Pair>> {
    let users = sign_up(authority, count * 2, progress).await?;
    let pairs = users.chunks_exact(2).map(|users| async move {
        let sender = dialect.connect(authority, &users[0]).await?;
        let receiver = dialect.connect(receivers_at, &users[1]).await?;
        let to = Recipient::Person { from: &users[0].user, to: &users[1].user };
        Ok(Pair::new(dialect.codec(to, size), sender, receiver))
    });
    run_all(pairs, CONNECTING_AT_ONCE, "pairs connected", progress).await
}

/// Half of the saved messages per second, at least one.
fn half_of(load: &Load) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate, not huge")]
    let half = (load.saved_per_second / 2.0) as u64;
    half.max(1)
}

/// Runs one phase over all pairs, and returns the pairs.
pub(crate) async fn phase(
    pairs: Vec<Pair>,
    name: &str,
    span: &Span,
    flow: &Flow,
    endpoint: &Endpoint,
    progress: ProgressDisplay,
) -> Result<(Vec<Pair>, EndedStage)> {
    let participants = Participants { tasks: pairs.len(), senders: pairs.len() };
    let stage = Stage::begin(name, participants, span, flow, endpoint, progress)?;
    let tasks: Vec<_> = pairs
        .into_iter()
        .enumerate()
        .map(|(number, mut pair)| {
            let (schedule, recorder) = (Arc::clone(&stage.schedule), Arc::clone(&stage.recorder));
            tokio::spawn(async move {
                let counters = pair.run(number, &schedule, &recorder).await;
                (pair, counters)
            })
        })
        .collect();
    let mut pairs = Vec::with_capacity(tasks.len());
    let mut counters = Counters::default();
    for task in tasks {
        let (pair, counted) = task.await?;
        pairs.push(pair);
        counters.add(&counted);
    }
    Ok((pairs, stage.end(counters).await?))
}
