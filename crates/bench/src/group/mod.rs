//! A group: some members send, everyone online receives.
//!
//! - `fan_out`: when each message was due, and how many members have received it;
//! - `sequence_check`: what one member has received from each sender;
//! - `member`: one member in one task, who may also send;
//! - `faulty_readers`, `flapping`: members who read slowly, never, or reconnect all the time;
//! - `setup`: creates users and the group, and connects them.

mod fan_out;
mod faulty_readers;
mod flapping;
mod member;
mod sequence_check;
mod setup;

use std::sync::Arc;

use anyhow::Result;

use crate::endpoint::Endpoint;
use crate::http::authority;
use crate::ledger::Counters;
use crate::measure::Load;
use crate::options::{FaultyReaderOptions, Flow, GroupOptions, Span};
use crate::progress::ProgressDisplay;
use crate::report::LoadReport;
use crate::stage::{EndedStage, Participants, Stage};

use fan_out::FanOutTracker;
pub use faulty_readers::FaultyReaderReport;
pub(crate) use faulty_readers::FaultyReaders;
use member::GroupMember;
use setup::connect_bare_room;
pub(crate) use setup::create_group;

/// Loads a server with a group's messages.
pub async fn group(options: &GroupOptions, endpoint: &Endpoint) -> Result<LoadReport> {
    options.check()?;
    let authority = authority(&endpoint.address)?;
    let progress = ProgressDisplay::new(!options.target.output.json);
    let group = create_group(&authority, options, progress).await?;
    let mut room = group.connect_members(options, progress).await?;
    let (span, flow) = (&options.span, &options.flow);
    let readers = &options.readers;
    let first = if readers.beside { &FaultyReaderOptions::default() } else { readers };
    let with = FaultyReaders::connect(&group, first).await?;
    let (load, faulty) = room.phase("group messages", with, span, flow, endpoint, progress).await?;
    let mut report = LoadReport::group("group messages", endpoint, options, load.close());
    report.readers = (first.count() > 0).then_some(faulty);
    if readers.beside {
        let with = FaultyReaders::connect(&group, readers).await?;
        let (load, faulty) = room.phase("beside", with, span, flow, endpoint, progress).await?;
        (report.beside, report.readers) = (Some(load.close()), Some(faulty));
    }
    Ok(report)
}

/// The same load on a bare relay that sends one ready-made frame to all, in a closed loop.
pub async fn bare_group(options: &GroupOptions, relay: &Endpoint) -> Result<Load> {
    options.check()?;
    let progress = ProgressDisplay::new(!options.target.output.json);
    let members = connect_bare_room(&authority(&relay.address)?, options, progress).await?;
    let mut room = Room::new(members, options.senders);
    let flow = Flow { rate: None, burst: 1, ..options.flow.clone() };
    let no_readers = FaultyReaders::default();
    let phase = room.phase("bare broadcast", no_readers, &options.span, &flow, relay, progress);
    Ok(phase.await?.0.close())
}

/// Members online, the senders first.
pub(crate) struct Room {
    members: Vec<GroupMember>,
    senders: usize,
    /// Numbers continue from phase to phase: the server deduplicates by them.
    next: u64,
}

impl Room {
    fn new(members: Vec<GroupMember>, senders: usize) -> Self {
        Self { members, senders, next: 0 }
    }

    /// Runs one phase, together with faulty readers.
    pub(crate) async fn phase(
        &mut self,
        name: &str,
        with: FaultyReaders,
        span: &Span,
        flow: &Flow,
        endpoint: &Endpoint,
        progress: ProgressDisplay,
    ) -> Result<(EndedStage, FaultyReaderReport)> {
        let participants = Participants { tasks: self.members.len(), senders: self.senders };
        let stage = Stage::begin(name, participants, span, flow, endpoint, progress)?;
        let tracker = Arc::new(FanOutTracker::new(self.senders, self.members.len() - 1, self.next));
        let with = with.begin(&tracker);
        let tasks: Vec<_> = std::mem::take(&mut self.members)
            .into_iter()
            .enumerate()
            .map(|(number, mut member)| {
                let (schedule, recorder) =
                    (Arc::clone(&stage.schedule), Arc::clone(&stage.recorder));
                let tracker = Arc::clone(&tracker);
                tokio::spawn(async move {
                    let result = member.run(number, &tracker, &schedule, &recorder).await;
                    (member, result)
                })
            })
            .collect();
        let mut results = Vec::with_capacity(tasks.len());
        for task in tasks {
            let (member, result) = task.await?;
            self.members.push(member);
            results.push(result);
        }
        let mut counters = Counters::default();
        for result in results {
            counters.add(&result.close(&tracker));
        }
        self.next = tracker.next();
        let faulty = with.end().await;
        Ok((stage.end(counters).await?, faulty))
    }
}
