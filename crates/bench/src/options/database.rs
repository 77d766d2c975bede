//! `nexo bench database`.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{OutputOptions, seconds};

const EXAMPLES: &str = "Examples:
  nexo bench database --url mysql://root@127.0.0.1:3306/scratch
  nexo bench database --url mysql://root@127.0.0.1:3306/scratch --committers 8 --senders 2048";

/// Stores messages in a database as fast as possible, and compares with plain inserts of the same rows.
///
/// Use a database that can be thrown away: the benchmark fills it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct DatabaseOptions {
    /// An empty database
    #[arg(long, value_name = "URL")]
    pub url: String,

    #[command(flatten)]
    pub output: OutputOptions,

    /// Pairs of users, each with one message in flight
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub senders: usize,

    /// Transactions at the same time
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub committers: usize,

    /// Bytes of a message's text
    #[arg(long, value_name = "BYTES", default_value_t = 200)]
    pub size: usize,

    /// Seconds measured, each way
    #[arg(long, value_name = "SECONDS", default_value = "8", value_parser = seconds)]
    pub duration: Duration,
}

impl DatabaseOptions {
    /// Checks the options.
    pub fn check(&self) -> Result<()> {
        ensure!((1..=100_000).contains(&self.senders), "the senders must be 1 to 100000");
        ensure!((1..=64).contains(&self.committers), "the committers must be 1 to 64");
        ensure!((1..=60_000).contains(&self.size), "the size must be 1 to 60000 bytes");
        Ok(())
    }
}
