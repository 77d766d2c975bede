//! A group: some speak, everybody online hears it.
//!
//! - `board`: when each message was due, and how many have heard it;
//! - `check`: what one member has heard of whom;
//! - `member`: one member in one task, who may also speak;
//! - `readers`, `flapping`: members who do not read as they should;
//! - `setup`: people, the group, connections.

mod board;
mod check;
mod flapping;
mod member;
mod readers;
mod setup;

use std::sync::Arc;

use anyhow::Result;

use crate::http::authority;
use crate::ledger::Counters;
use crate::measure::Load;
use crate::options::{Flow, GroupOptions, Readers, Span};
use crate::process::Place;
use crate::progress::Progress;
use crate::report::Report;
use crate::stage::{Crew, Ended, Stage};

use board::Board;
use member::Member;
pub use readers::Behaved;
pub(crate) use readers::Misbehaving;
use setup::bare_room;
pub(crate) use setup::gather;

/// Loads a server with a group's messages.
pub async fn group(options: &GroupOptions, place: &Place) -> Result<Report> {
    options.check()?;
    let authority = authority(&place.address)?;
    let progress = Progress::new(!options.target.shown.json);
    let people = gather(&authority, options, progress).await?;
    let mut room = people.room(options, progress).await?;
    let (span, flow) = (&options.span, &options.flow);
    let readers = &options.readers;
    let first = if readers.beside { &Readers::default() } else { readers };
    let with = Misbehaving::connect(&people, first).await?;
    let (load, behaved) = room.phase("group messages", with, span, flow, place, progress).await?;
    let mut report = Report::group("group messages", place, options, load.close());
    report.readers = (first.count() > 0).then_some(behaved);
    if readers.beside {
        let with = Misbehaving::connect(&people, readers).await?;
        let (load, behaved) = room.phase("beside", with, span, flow, place, progress).await?;
        (report.beside, report.readers) = (Some(load.close()), Some(behaved));
    }
    Ok(report)
}

/// The same load on a bare relay that passes one ready-made frame to all, in a closed loop.
pub async fn bare_group(options: &GroupOptions, relay: &Place) -> Result<Load> {
    options.check()?;
    let progress = Progress::new(!options.target.shown.json);
    let members = bare_room(&authority(&relay.address)?, options, progress).await?;
    let mut room = Room::new(members, options.senders);
    let flow = Flow { rate: None, burst: 1, ..options.flow.clone() };
    let nobody = Misbehaving::default();
    let phase = room.phase("bare broadcast", nobody, &options.span, &flow, relay, progress);
    Ok(phase.await?.0.close())
}

/// Members online, the senders first.
pub(crate) struct Room {
    members: Vec<Member>,
    senders: usize,
    /// Numbers go on from phase to phase: a server knows the old ones.
    next: u64,
}

impl Room {
    fn new(members: Vec<Member>, senders: usize) -> Self {
        Self { members, senders, next: 0 }
    }

    /// Runs one phase, with readers who misbehave beside the others.
    pub(crate) async fn phase(
        &mut self,
        name: &str,
        with: Misbehaving,
        span: &Span,
        flow: &Flow,
        place: &Place,
        progress: Progress,
    ) -> Result<(Ended, Behaved)> {
        let crew = Crew { tasks: self.members.len(), senders: self.senders };
        let stage = Stage::begin(name, crew, span, flow, place, progress)?;
        let board = Arc::new(Board::new(self.senders, self.members.len() - 1, self.next));
        let with = with.begin(&board);
        let tasks: Vec<_> = std::mem::take(&mut self.members)
            .into_iter()
            .enumerate()
            .map(|(number, mut member)| {
                let (plan, tally) = (Arc::clone(&stage.plan), Arc::clone(&stage.tally));
                let board = Arc::clone(&board);
                tokio::spawn(async move {
                    let took = member.run(number, &board, &plan, &tally).await;
                    (member, took)
                })
            })
            .collect();
        let mut all_took = Vec::with_capacity(tasks.len());
        for task in tasks {
            let (member, took) = task.await?;
            self.members.push(member);
            all_took.push(took);
        }
        let mut counters = Counters::default();
        for took in all_took {
            counters.add(&took.close(&board));
        }
        self.next = board.next();
        let behaved = with.end().await;
        Ok((stage.end(counters).await?, behaved))
    }
}
