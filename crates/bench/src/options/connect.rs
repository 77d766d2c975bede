//! `nexo bench connect`.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{CONNECTIONS_MAX, Flow, Span, TargetOptions, seconds};

const EXAMPLES: &str = "Examples:
  nexo bench connect --baseline
  nexo bench connect --connections 15000 --active 1000 --hold 60
  nexo bench connect --connections 2000 --target http://127.0.0.1:8080 --json";

/// Opens many idle connections: how fast, and what each costs in memory.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ConnectOptions {
    #[command(flatten)]
    pub target: TargetOptions,

    /// Idle connections, each of a different user
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub connections: usize,

    /// Seconds to keep them, after which all must still be open
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    pub hold: Duration,

    /// Pairs of further connections that exchange messages meanwhile, for --duration
    #[arg(long, value_name = "PAIRS", default_value_t = 0)]
    pub active: usize,

    #[command(flatten)]
    pub span: Span,

    #[command(flatten)]
    pub flow: Flow,
}

impl ConnectOptions {
    /// Sockets in all.
    pub fn sockets(&self) -> usize {
        self.connections + self.active * 2
    }

    /// Checks the options: refuses a run that measures nothing or would not end.
    pub fn check(&self) -> Result<()> {
        ensure!(self.connections > 0, "at least one idle connection is needed");
        let sockets = self.sockets();
        ensure!(
            sockets <= CONNECTIONS_MAX,
            "at most {CONNECTIONS_MAX} connections, and these are {sockets}"
        );
        let tokens_last = Duration::from_mins(25);
        ensure!(self.hold <= tokens_last, "--hold is at most 1500: tokens die after 1800 seconds");
        self.span.check()?;
        self.flow.check()
    }
}
