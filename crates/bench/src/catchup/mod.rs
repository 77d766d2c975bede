//! Catching up: messages pile up while somebody is away, then they come back and want all of them.
//!
//! - `fill`: the others write;
//! - `fetch`: the client comes back.

mod fetch;
mod fill;

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use crate::accounts::sign_up;
use crate::http::authority;
use crate::ledger::Counters;
use crate::measure::Percentiles;
use crate::options::CatchupOptions;
use crate::plot::Drawn;
use crate::process::Place;
use crate::progress::{Progress, all};
use crate::report::Outcome;
use crate::table::{heads, step, time, write_counters};

use fetch::fetch;
use fill::fill;

/// Figures of clients that came back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Caught {
    /// Where it was.
    pub target: String,
    /// How they asked.
    pub way: String,
    /// Clients that came back.
    pub clients: usize,
    /// Of these, at once.
    pub at_once: usize,
    /// Messages that each had missed.
    pub messages: u64,
    /// Conversations they were in.
    pub conversations: u64,
    /// From the beginning of the connection to the last message.
    pub from_connect: Percentiles,
    /// From being let in to the last message.
    pub from_welcome: Percentiles,
    /// Messages per second of the client in the middle.
    pub messages_per_second: f64,
    /// Milliseconds of the client in the middle.
    pub p7_milliseconds: f64,
    /// What happened.
    pub counters: Counters,
}

/// What one client found.
#[derive(Debug)]
struct Fetched {
    from_connect: Duration,
    from_welcome: Duration,
    counters: Counters,
}

/// Fills a server and lets clients catch up.
pub async fn catchup(options: &CatchupOptions, place: &Place) -> Result<Caught> {
    options.check()?;
    let authority = authority(&place.address)?;
    let progress = Progress::new(!options.target.shown.json);
    let clients = sign_up(&authority, options.clients, progress).await?;
    let senders = usize::try_from(options.conversations)?;
    let senders = sign_up(&authority, senders, progress).await?;
    fill(&authority, options, &senders, &clients, progress).await?;
    let authority = authority.as_str();
    let fetching = clients
        .iter()
        .enumerate()
        .map(|(number, client)| fetch(authority, options, client, number as u64, &senders));
    let fetched = all(fetching, options.at_once, "clients caught up", progress).await?;
    sum_up(options, place, &fetched)
}

fn sum_up(options: &CatchupOptions, place: &Place, fetched: &[Fetched]) -> Result<Caught> {
    let mut counters = Counters::default();
    for it in fetched {
        counters.add(&it.counters);
    }
    let from_connect = Percentiles::of_times(fetched.iter().map(|it| it.from_connect))?;
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
    let messages_per_second = options.messages as f64 * 1_000_000.0 / from_connect.p50_us;
    Ok(Caught {
        target: place.address.clone(),
        way: format!("{:?}", options.way).to_lowercase(),
        clients: options.clients,
        at_once: options.at_once,
        messages: options.messages,
        conversations: options.conversations,
        messages_per_second,
        p7_milliseconds: from_connect.p50_us / 1000.0,
        from_connect,
        from_welcome: Percentiles::of_times(fetched.iter().map(|it| it.from_welcome))?,
        counters,
    })
}

impl Outcome for Caught {
    fn is_clean(&self) -> bool {
        self.counters.is_clean()
    }

    fn drawn(&self) -> Vec<Drawn<'_>> {
        Vec::new()
    }
}

impl fmt::Display for Caught {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "catching up at {} by {}: {} clients, {} at once, each missed {} messages over {} conversations\n",
            self.target, self.way, self.clients, self.at_once, self.messages, self.conversations
        )?;
        heads(f)?;
        step(f, "from connect", Some(self.messages_per_second), &self.from_connect)?;
        step(f, "from welcome", None, &self.from_welcome)?;
        write_counters(f, &self.counters)?;
        let median = time(self.from_connect.p50_us);
        writeln!(f, "\nP7 all of it after {median} (goal: at most 300 ms for 10,000 over 100)")
    }
}
