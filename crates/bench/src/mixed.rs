//! Everything at once: pairs, groups, idle connections, and people who come and go.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Result;
use futures_util::future::try_join_all;
use serde::Serialize;

use crate::accounts::sign_up;
use crate::connect::Idle;
use crate::group::{Behaved, Misbehaving, Room, gather};
use crate::http::authority;
use crate::measure::Load;
use crate::options::{GroupOptions, MixedOptions, Online, Target};
use crate::plot::Drawn;
use crate::private;
use crate::process::Place;
use crate::progress::{Progress, all};
use crate::report::Outcome;
use crate::socket::CONNECTING_AT_ONCE;
use crate::speech::Speech;
use crate::stage::Ended;
use crate::table::write_load;

/// Figures of a mixture, by kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mixed {
    /// Where it was.
    pub target: String,
    /// Pairs of people.
    pub pairs: usize,
    /// Groups.
    pub groups: usize,
    /// Members online in each group.
    pub members: usize,
    /// Connections that said nothing.
    pub idle: usize,
    /// Messages of the pairs.
    pub private: Load,
    /// Messages of all groups.
    pub group: Load,
    /// What became of those who came and went.
    pub readers: Behaved,
    /// Idle connections that did not answer at the end, by what happened to them.
    pub gone: BTreeMap<String, u64>,
}

/// Loads a server with all kinds at once.
pub async fn mixed(options: &MixedOptions, place: &Place) -> Result<Mixed> {
    options.check()?;
    let authority = authority(&place.address)?;
    let authority = authority.as_str();
    let progress = Progress::new(!options.target.shown.json);
    let mut idle = Idle::default();
    let users = sign_up(authority, options.idle, progress).await?;
    let connecting = users.iter().map(|user| Speech::Typed.connect(authority, user));
    let sockets = all(connecting, CONNECTING_AT_ONCE, "idle connections", progress).await?;
    idle.extend(sockets);
    let flow = options.private_flow();
    let pairs =
        private::connected([authority; 2], Speech::Typed, options.pairs, flow.size, progress)
            .await?;
    let mut rooms = Vec::with_capacity(options.groups);
    for _ in 0..options.groups {
        rooms.push(room(authority, options, progress).await?);
    }
    // One bar is enough for who waits.
    let (span, group_flow, silent) = (&options.span, options.group_flow(), Progress::new(false));
    let groups = rooms.into_iter().map(|(mut room, with)| {
        let flow = group_flow.clone();
        async move { room.phase("groups", with, span, &flow, place, silent).await }
    });
    let private = private::phase(pairs, "mixed", span, &flow, place, progress);
    let ((_pairs, private), groups) = tokio::try_join!(private, try_join_all(groups))?;
    let (ended, behaved): (Vec<_>, Vec<_>) = groups.into_iter().unzip();
    let mut readers = Behaved::default();
    for it in &behaved {
        readers.add_all(it);
    }
    Ok(Mixed {
        target: place.address.clone(),
        pairs: options.pairs,
        groups: options.groups,
        members: options.members,
        idle: options.idle,
        private: private.close(),
        group: Ended::of_all(ended)?.close(),
        readers,
        gone: idle.end().await,
    })
}

/// A group whose members are online.
async fn room(
    authority: &str,
    options: &MixedOptions,
    progress: Progress,
) -> Result<(Room, Misbehaving)> {
    let options = GroupOptions {
        target: Target::default(),
        span: options.span.clone(),
        flow: options.group_flow(),
        members: options.members,
        online: Online::Percent(100.0),
        senders: 2,
        dialect: Speech::Typed,
        readers: options.readers(),
    };
    let people = gather(authority, &options, progress).await?;
    let room = people.room(&options, progress).await?;
    Ok((room, Misbehaving::connect(&people, &options.readers).await?))
}

impl Outcome for Mixed {
    fn is_clean(&self) -> bool {
        let clean = |load: &Load| load.counters.is_clean();
        clean(&self.private)
            && clean(&self.group)
            && self.readers.is_clean()
            && self.gone.is_empty()
    }

    fn drawn(&self) -> Vec<Drawn<'_>> {
        vec![
            Drawn { name: "private messages", load: &self.private },
            Drawn { name: "group messages", load: &self.group },
        ]
    }
}

impl fmt::Display for Mixed {
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
