//! Everything at once: pairs, groups, idle connections, and flapping members.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Result;
use futures_util::future::try_join_all;
use serde::Serialize;

use crate::accounts::sign_up;
use crate::connect::IdleConnections;
use crate::dialects::DialectChoice;
use crate::endpoint::Endpoint;
use crate::group::{FaultyReaderReport, FaultyReaders, Room, create_group};
use crate::http::authority;
use crate::measure::Load;
use crate::options::{GroupOptions, MixedOptions, OnlineMembers, TargetOptions};
use crate::plot::PlottedPhase;
use crate::private;
use crate::progress::{ProgressDisplay, run_all};
use crate::report::BenchReport;
use crate::socket::CONNECTING_AT_ONCE;
use crate::stage::EndedStage;
use crate::table::write_load;

/// Figures by kind of load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MixedReport {
    /// The server's URL.
    pub target: String,
    pub pairs: usize,
    pub groups: usize,
    /// Members online in each group.
    pub members: usize,
    /// Idle connections.
    pub idle: usize,
    /// Messages of the pairs.
    pub private: Load,
    /// Messages of all groups.
    pub group: Load,
    /// The flapping members.
    pub readers: FaultyReaderReport,
    /// Idle connections that did not answer a ping at the end, by error.
    pub gone: BTreeMap<String, u64>,
}

/// Loads a server with all kinds at once.
pub async fn mixed(options: &MixedOptions, endpoint: &Endpoint) -> Result<MixedReport> {
    options.check()?;
    let authority = authority(&endpoint.address)?;
    let authority = authority.as_str();
    let progress = ProgressDisplay::new(!options.target.output.json);
    let mut idle = IdleConnections::default();
    let users = sign_up(authority, options.idle, progress).await?;
    let connecting = users.iter().map(|user| DialectChoice::Typed.connect(authority, user));
    let sockets = run_all(connecting, CONNECTING_AT_ONCE, "idle connections", progress).await?;
    idle.extend(sockets);
    let flow = options.private_flow();
    let pairs = private::connected(
        [authority; 2],
        DialectChoice::Typed,
        options.pairs,
        flow.size,
        progress,
    )
    .await?;
    let mut rooms = Vec::with_capacity(options.groups);
    for _ in 0..options.groups {
        rooms.push(room(authority, options, progress).await?);
    }
    // One progress bar is enough.
    let (span, group_flow, silent) =
        (&options.span, options.group_flow(), ProgressDisplay::new(false));
    let groups = rooms.into_iter().map(|(mut room, with)| {
        let flow = group_flow.clone();
        async move { room.phase("groups", with, span, &flow, endpoint, silent).await }
    });
    let private = private::phase(pairs, "mixed", span, &flow, endpoint, progress);
    let ((_pairs, private), groups) = tokio::try_join!(private, try_join_all(groups))?;
    let (ended, behaved): (Vec<_>, Vec<_>) = groups.into_iter().unzip();
    let mut readers = FaultyReaderReport::default();
    for it in &behaved {
        readers.add_all(it);
    }
    Ok(MixedReport {
        target: endpoint.address.clone(),
        pairs: options.pairs,
        groups: options.groups,
        members: options.members,
        idle: options.idle,
        private: private.close(),
        group: EndedStage::of_all(ended)?.close(),
        readers,
        gone: idle.end().await,
    })
}

/// A group whose members are online.
async fn room(
    authority: &str,
    options: &MixedOptions,
    progress: ProgressDisplay,
) -> Result<(Room, FaultyReaders)> {
    let options = GroupOptions {
        target: TargetOptions::default(),
        span: options.span.clone(),
        flow: options.group_flow(),
        members: options.members,
        online: OnlineMembers::Percent(100.0),
        senders: 2,
        dialect: DialectChoice::Typed,
        readers: options.readers(),
    };
    let people = create_group(authority, &options, progress).await?;
    let room = people.connect_members(&options, progress).await?;
    Ok((room, FaultyReaders::connect(&people, &options.readers).await?))
}

impl BenchReport for MixedReport {
    fn is_clean(&self) -> bool {
        let clean = |load: &Load| load.counters.is_clean();
        clean(&self.private)
            && clean(&self.group)
            && self.readers.is_clean()
            && self.gone.is_empty()
    }

    fn plotted_phases(&self) -> Vec<PlottedPhase<'_>> {
        vec![
            PlottedPhase { name: "private messages", load: &self.private },
            PlottedPhase { name: "group messages", load: &self.group },
        ]
    }
}

impl fmt::Display for MixedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "mixed at {}: {} pairs, {} groups of {}, {} idle connections",
            self.target, self.pairs, self.groups, self.members, self.idle
        )?;
        write_load(f, "private messages", 0, &self.private)?;
        write_load(f, "group messages", 0, &self.group)?;
        writeln!(f, "  {}", self.readers)?;
        let gone: u64 = self.gone.values().sum();
        writeln!(f, "\nidle: {gone} of {} did not answer at the end", self.idle)?;
        self.gone.iter().try_for_each(|(what, count)| writeln!(f, "  error: {count} × {what}"))
    }
}
