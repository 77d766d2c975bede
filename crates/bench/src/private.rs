//! Private messages: pairs made, loaded and summed up.

use std::sync::Arc;

use anyhow::Result;

use crate::accounts::sign_up;
use crate::bare::Bare;
use crate::http::authority;
use crate::ledger::Counters;
use crate::measure::Load;
use crate::options::{Flow, PrivateOptions, Span};
use crate::pair::Pair;
use crate::process::Place;
use crate::progress::{Progress, all};
use crate::report::Report;
use crate::socket::{CONNECTING_AT_ONCE, connect};
use crate::speech::{Speech, To};
use crate::stage::{Crew, Ended, Stage};

/// Loads a server with private messages. With `--baseline`, a second phase follows over the same
/// connections: half of the load that was found, in an open loop.
pub async fn private(options: &PrivateOptions, place: &Place) -> Result<Report> {
    options.check()?;
    let here = authority(&place.address)?;
    let progress = Progress::new(!options.target.shown.json);
    let (count, size) = (options.pair_count(), options.flow.size);
    let receivers_at = options.receivers_at.as_deref().map(authority).transpose()?;
    let there = receivers_at.as_ref().unwrap_or(&here);
    let pairs = connected([&here, there], options.dialect, count, size, progress).await?;
    let (span, flow) = (&options.span, &options.flow);
    let (pairs, load) = phase(pairs, "private messages", span, flow, place, progress).await?;
    let mut report = Report::private("private messages", place, options, load.close());
    if options.target.baseline {
        let flow = Flow { rate: Some(half_of(&report.load)), ..flow.clone() };
        let (_pairs, load) = phase(pairs, "half the load", span, &flow, place, progress).await?;
        report.half = Some(load.close());
    }
    Ok(report)
}

/// The same load on a bare relay: the same number of connections, and frames as long and as many.
pub async fn bare(options: &PrivateOptions, relay: &Place) -> Result<Report> {
    options.check()?;
    let authority = authority(&relay.address)?;
    let progress = Progress::new(!options.target.shown.json);
    let size = options.flow.size;
    let authority = authority.as_str();
    let pairs = (0..options.pair_count()).map(|pair| async move {
        let (from, to) = (2 * pair, 2 * pair + 1);
        let sender = connect(authority, &format!("/{from}")).await?;
        let receiver = connect(authority, &format!("/{to}")).await?;
        Ok(Pair::new(Arc::new(Bare::pair(from, to, size)), sender, receiver))
    });
    let pairs = all(pairs, CONNECTING_AT_ONCE, "pairs connected", progress).await?;
    let (span, flow) = (&options.span, &options.flow);
    let (_pairs, load) = phase(pairs, "bare relay", span, flow, relay, progress).await?;
    Ok(Report::private("bare relay", relay, options, load.close()))
}

/// New users in pairs, connected: senders to one place, receivers to another.
pub(crate) async fn connected(
    [authority, receivers_at]: [&str; 2],
    speech: Speech,
    count: usize,
    size: usize,
    progress: Progress,
) -> Result<Vec<Pair>> {
    let users = sign_up(authority, count * 2, progress).await?;
    let pairs = users.chunks_exact(2).map(|users| async move {
        let sender = speech.connect(authority, &users[0]).await?;
        let receiver = speech.connect(receivers_at, &users[1]).await?;
        let to = To::Person { from: &users[0].user, to: &users[1].user };
        Ok(Pair::new(speech.dialect(to, size), sender, receiver))
    });
    all(pairs, CONNECTING_AT_ONCE, "pairs connected", progress).await
}

/// Half of what was saved per second, and at least one.
fn half_of(load: &Load) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate, not huge")]
    let half = (load.saved_per_second / 2.0) as u64;
    half.max(1)
}

/// Runs one phase over all pairs, and gives them back.
pub(crate) async fn phase(
    pairs: Vec<Pair>,
    name: &str,
    span: &Span,
    flow: &Flow,
    place: &Place,
    progress: Progress,
) -> Result<(Vec<Pair>, Ended)> {
    let crew = Crew { tasks: pairs.len(), senders: pairs.len() };
    let stage = Stage::begin(name, crew, span, flow, place, progress)?;
    let tasks: Vec<_> = pairs
        .into_iter()
        .enumerate()
        .map(|(number, mut pair)| {
            let (plan, tally) = (Arc::clone(&stage.plan), Arc::clone(&stage.tally));
            tokio::spawn(async move {
                let counters = pair.run(number, &plan, &tally).await;
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
