//! `nexo bench two-phase`.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{Flow, OutputOptions, PrivateOptions, Span, TargetOptions, seconds};
use crate::dialects::DialectChoice;

const EXAMPLES: &str = "Examples:
  nexo bench two-phase
  nexo bench two-phase --rate 10000 --connections 1000
  nexo bench two-phase --store mysql://root@127.0.0.1:3306/scratch --redis redis://127.0.0.1:6379";

/// The same load three times: without two-phase acknowledgement, with it, and with messages pushed
/// before they are saved.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct TwoPhaseOptions {
    #[command(flatten)]
    pub output: OutputOptions,

    /// Messages per second in all
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub rate: u64,

    /// Sockets in all: half of them send, half receive
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub connections: usize,

    /// Bytes of a message's text
    #[arg(long, value_name = "BYTES", default_value_t = 200)]
    pub size: usize,

    /// Seconds measured, each time
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub duration: Duration,

    /// Seconds to wait, after the last message, for all to be saved
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub grace: Duration,

    /// A database that can be thrown away, instead of the embedded store
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,

    /// A Redis for the log of accepted messages, instead of memory
    #[arg(long, value_name = "URL", requires = "store")]
    pub redis: Option<String>,
}

impl TwoPhaseOptions {
    /// Checks the options.
    pub fn check(&self) -> Result<()> {
        ensure!(self.rate > 0, "a rate of zero sends nothing");
        self.load().check()
    }

    /// One of the three runs.
    pub fn load(&self) -> PrivateOptions {
        PrivateOptions {
            target: TargetOptions { target: None, output: self.output.clone(), baseline: false },
            span: Span { duration: self.duration, grace: self.grace, ..Span::default() },
            flow: Flow { rate: Some(self.rate), size: self.size, ..Flow::default() },
            connections: self.connections,
            dialect: DialectChoice::Typed,
            ..PrivateOptions::default()
        }
    }
}
