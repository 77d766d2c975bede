//! Catching up: messages pile up while clients are offline, then the clients fetch all of them.
//!
//! - `fill`: sends the messages;
//! - `fetch`: lets a client catch up.

mod fetch;
mod fill;

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use crate::accounts::sign_up;
use crate::endpoint::Endpoint;
use crate::http::authority;
use crate::ledger::Counters;
use crate::measure::Percentiles;
use crate::options::CatchupOptions;
use crate::plot::PlottedPhase;
use crate::progress::{ProgressDisplay, run_all};
use crate::report::BenchReport;
use crate::table::{heads, step, time, write_counters};

use fetch::fetch;
use fill::fill;

/// Figures of clients that caught up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CatchupReport {
    /// The server's URL.
    pub target: String,
    /// How the clients fetched messages.
    pub way: String,
    pub clients: usize,
    /// Clients at a time.
    pub at_once: usize,
    /// Messages that each client missed.
    pub messages: u64,
    /// Conversations the messages were in.
    pub conversations: u64,
    /// From connecting to the last message.
    pub from_connect: Percentiles,
    /// From the welcome to the last message.
    pub from_welcome: Percentiles,
    /// Messages per second of the median client.
    pub messages_per_second: f64,
    /// Milliseconds of the median client.
    pub p7_milliseconds: f64,
    pub counters: Counters,
}

/// What one client measured.
#[derive(Debug)]
struct CatchupResult {
    from_connect: Duration,
    from_welcome: Duration,
    counters: Counters,
}

/// Sends messages to offline clients, then lets them catch up.
pub async fn catchup(options: &CatchupOptions, endpoint: &Endpoint) -> Result<CatchupReport> {
    options.check()?;
    let authority = authority(&endpoint.address)?;
    let progress = ProgressDisplay::new(!options.target.output.json);
    let clients = sign_up(&authority, options.clients, progress).await?;
    let senders = usize::try_from(options.conversations)?;
    let senders = sign_up(&authority, senders, progress).await?;
    fill(&authority, options, &senders, &clients, progress).await?;
    let authority = authority.as_str();
    let fetching = clients
        .iter()
        .enumerate()
        .map(|(number, client)| fetch(authority, options, client, number as u64, &senders));
    let fetched = run_all(fetching, options.at_once, "clients caught up", progress).await?;
    sum_up(options, endpoint, &fetched)
}

fn sum_up(
    options: &CatchupOptions,
    endpoint: &Endpoint,
    fetched: &[CatchupResult],
) -> Result<CatchupReport> {
    let mut counters = Counters::default();
    for it in fetched {
        counters.add(&it.counters);
    }
    let from_connect = Percentiles::of_times(fetched.iter().map(|it| it.from_connect))?;
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
    let messages_per_second = options.messages as f64 * 1_000_000.0 / from_connect.p50_us;
    Ok(CatchupReport {
        target: endpoint.address.clone(),
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

impl BenchReport for CatchupReport {
    fn is_clean(&self) -> bool {
        self.counters.is_clean()
    }

    fn plotted_phases(&self) -> Vec<PlottedPhase<'_>> {
        Vec::new()
    }
}

impl fmt::Display for CatchupReport {
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
