//! The command line: options that several scenarios share, and a file for each scenario.

mod catchup;
mod connect;
mod database;
mod group;
mod growth;
mod mixed;
mod private;
mod two_phase;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

pub use catchup::{CatchupMethod, CatchupOptions};
pub use connect::ConnectOptions;
pub use database::DatabaseOptions;
pub use group::{FaultyReaderOptions, GroupOptions, OnlineMembers};
pub use growth::GrowthOptions;
pub(crate) use growth::SMALL;
pub use mixed::MixedOptions;
pub use private::PrivateOptions;
pub use two_phase::TwoPhaseOptions;

/// The longest duration.
const SECONDS_MAX: f64 = 3600.0;
/// Leaves room for other files: a process may often open 20,000.
pub(crate) const CONNECTIONS_MAX: usize = 19_000;

/// The server to load.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TargetOptions {
    /// Load this server; by default a private one is started and thrown away
    #[arg(long, value_name = "URL")]
    pub target: Option<String>,

    #[command(flatten)]
    pub output: OutputOptions,

    /// Also measure the bare relay and disk in this run, and compare
    #[arg(long)]
    pub baseline: bool,
}

#[derive(Clone, Debug, Default, clap::Args)]
pub struct OutputOptions {
    /// Print the report as JSON, and nothing else
    #[arg(long)]
    pub json: bool,

    /// Also write the report with charts to this HTML file
    #[arg(long, value_name = "FILE.html")]
    pub plot: Option<PathBuf>,
}

/// The length of a run.
#[derive(Clone, Debug, clap::Args)]
pub struct Span {
    /// Seconds measured
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub duration: Duration,

    /// Seconds of load before measuring
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub warmup: Duration,

    /// Seconds to wait, after the last message, for missing answers
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub grace: Duration,
}

impl Default for Span {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(10),
            warmup: Duration::from_secs(2),
            grace: Duration::from_secs(5),
        }
    }
}

impl Span {
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(!self.duration.is_zero(), "a duration of zero measures nothing");
        Ok(())
    }
}

#[derive(Clone, Debug, clap::Args)]
pub struct Flow {
    /// Messages a sender may have in flight, waiting for their ACK(saved)
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub window: u64,

    /// Messages per second in all, whether the server keeps up or not; latency then counts from
    /// the moment a message was due
    #[arg(long, value_name = "N")]
    pub rate: Option<u64>,

    /// With --rate: send so many messages at once, then none until their time is used up
    #[arg(long, value_name = "N", default_value_t = 1, requires = "rate")]
    pub burst: u64,

    /// Bytes of a message's text
    #[arg(long, value_name = "BYTES", default_value_t = 200)]
    pub size: usize,
}

impl Default for Flow {
    fn default() -> Self {
        Self { window: 8, rate: None, burst: 1, size: 200 }
    }
}

impl Flow {
    pub(crate) fn check(&self) -> Result<()> {
        ensure!((1..=10_000).contains(&self.window), "the window must be 1 to 10000");
        ensure!(self.rate.is_none_or(|rate| rate > 0), "a rate of zero sends nothing");
        ensure!((1..=1_000_000).contains(&self.burst), "a burst must be 1 to 1000000 messages");
        ensure!((1..=60_000).contains(&self.size), "the size must be 1 to 60000 bytes");
        Ok(())
    }
}

/// The bare relay on its own: a WebSocket relay with no store and no logic. Prints its address.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  nexo bench bare-relay --listen 127.0.0.1:0")]
pub struct BareRelayOptions {
    /// The address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
}

pub(crate) fn seconds(text: &str) -> Result<Duration> {
    let number: f64 = text.parse().context("not a number of seconds")?;
    ensure!((0.0..=SECONDS_MAX).contains(&number), "must be 0 to {SECONDS_MAX} seconds");
    Ok(Duration::from_secs_f64(number))
}
