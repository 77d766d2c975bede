//! What the command line says.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// More than this is not a benchmark any more.
const SECONDS_MAX: f64 = 3600.0;
/// A process here may open 20,000 files.
const CONNECTIONS_MAX: usize = 19_000;

const EXAMPLES: &str = "Examples:
  nexo bench private
  nexo bench private --connections 1000 --window 8 --duration 20 --baseline
  nexo bench private --rate 20000 --json > report.json
  nexo bench private --target http://127.0.0.1:8080 --pairs 50";

/// Pairs of users send private messages to each other; each is saved, pushed and acknowledged.
///
/// The server's limits on sends and registrations must be off (0), or the load is refused; a
/// private server started for the run has them off.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PrivateOptions {
    /// Load this server; without it a private one is started and thrown away
    #[arg(long, value_name = "URL")]
    pub target: Option<String>,

    /// Sockets in all: half of them send, half receive
    #[arg(long, value_name = "N", default_value_t = 1000, conflicts_with = "pairs")]
    pub connections: usize,

    /// Pairs of a sender and a receiver, instead of --connections
    #[arg(long, value_name = "N")]
    pub pairs: Option<usize>,

    /// Messages a sender may have waiting for their ACK(saved)
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub window: u64,

    /// Messages per second in all, whether the server keeps up or not; latency then counts from
    /// the moment a message was due
    #[arg(long, value_name = "N")]
    pub rate: Option<u64>,

    /// Seconds measured
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub duration: Duration,

    /// Seconds of load before measuring
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub warmup: Duration,

    /// Seconds to wait, after the last message, for answers that are missing
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub grace: Duration,

    /// Bytes of a message's text
    #[arg(long, value_name = "BYTES", default_value_t = 200)]
    pub size: usize,

    /// Print the report as JSON, and nothing else
    #[arg(long)]
    pub json: bool,

    /// Also measure the bare stack and the bare disk in this run, and half of the load found
    #[arg(long)]
    pub baseline: bool,

    /// The bare disk's batch that ACK(saved) latency is compared with: 1, 16, 64 or 256
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub disk_batch: usize,
}

impl Default for PrivateOptions {
    fn default() -> Self {
        Self {
            target: None,
            connections: 1000,
            pairs: None,
            window: 8,
            rate: None,
            duration: Duration::from_secs(10),
            warmup: Duration::from_secs(2),
            grace: Duration::from_secs(5),
            size: 200,
            json: false,
            baseline: false,
            disk_batch: 64,
        }
    }
}

impl PrivateOptions {
    /// Pairs of a sender and a receiver.
    pub fn pair_count(&self) -> usize {
        self.pairs.unwrap_or(self.connections / 2)
    }

    /// Refuses a run that means nothing or would not end.
    pub fn check(&self) -> Result<()> {
        let pairs = self.pair_count();
        ensure!(pairs > 0, "at least one pair is needed, that is two connections");
        ensure!(pairs * 2 <= CONNECTIONS_MAX, "at most {CONNECTIONS_MAX} connections");
        ensure!((1..=10_000).contains(&self.window), "the window must be 1 to 10000");
        ensure!(self.rate.is_none_or(|rate| rate > 0), "a rate of zero sends nothing");
        ensure!(!self.duration.is_zero(), "a duration of zero measures nothing");
        ensure!((1..=60_000).contains(&self.size), "the size must be 1 to 60000 bytes");
        Ok(())
    }
}

/// The bare stack on its own: a WebSocket relay with no store and no logic. Prints its address.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  nexo bench bare-relay --listen 127.0.0.1:0")]
pub struct BareRelayOptions {
    /// Where to listen; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
}

fn seconds(text: &str) -> Result<Duration> {
    let number: f64 = text.parse().context("not a number of seconds")?;
    ensure!((0.0..=SECONDS_MAX).contains(&number), "must be 0 to {SECONDS_MAX} seconds");
    Ok(Duration::from_secs_f64(number))
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;

    fn parse(args: &[&str]) -> Result<PrivateOptions> {
        let command = PrivateOptions::augment_args(clap::Command::new("private"));
        let given = ["private"].iter().chain(args);
        Ok(PrivateOptions::from_arg_matches(&command.try_get_matches_from(given)?)?)
    }

    #[test]
    fn defaults_are_the_same_with_and_without_a_command_line() {
        let parsed = format!("{:?}", parse(&[]).unwrap());
        assert_eq!(parsed, format!("{:?}", PrivateOptions::default()));
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(parse(&["--pairs", "3"]).unwrap().pair_count(), 3);
        assert!(parse(&["--pairs", "3", "--connections", "8"]).is_err());
        assert!(parse(&["--duration", "-1"]).is_err());
        assert!(parse(&["--duration", "NaN"]).is_err());
        assert!(parse(&["--duration", "0"]).unwrap().check().is_err());
        assert!(parse(&["--connections", "1"]).unwrap().check().is_err());
        assert!(parse(&["--window", "0"]).unwrap().check().is_err());
        assert!(parse(&["--rate", "0"]).unwrap().check().is_err());
    }
}
