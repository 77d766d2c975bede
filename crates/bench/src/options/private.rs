//! `nexo bench private`.

use anyhow::{Result, ensure};

use super::{CONNECTIONS_MAX, Flow, Span, TargetOptions};
use crate::dialects::DialectChoice;

const EXAMPLES: &str = "Examples:
  nexo bench private
  nexo bench private --connections 1000 --window 8 --duration 20 --baseline
  nexo bench private --rate 20000 --json > report.json
  nexo bench private --rate 20000 --burst 500
  nexo bench private --dialect dotted-binary
  nexo bench private --target http://127.0.0.1:8080 --pairs 50";

/// Pairs of users send private messages to each other; each is saved, pushed and acknowledged.
///
/// The server's limits on sends and registrations must be off (0), or the load is refused; a
/// private server started for the run has them off.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PrivateOptions {
    #[command(flatten)]
    pub target: TargetOptions,

    #[command(flatten)]
    pub span: Span,

    #[command(flatten)]
    pub flow: Flow,

    /// Sockets in all: half of them send, half receive
    #[arg(long, value_name = "N", default_value_t = 1000, conflicts_with = "pairs")]
    pub connections: usize,

    /// Pairs of a sender and a receiver, instead of --connections
    #[arg(long, value_name = "N")]
    pub pairs: Option<usize>,

    /// Connect the receivers to this URL: another node of the same cluster
    #[arg(long, value_name = "URL", requires = "target")]
    pub receivers_at: Option<String>,

    /// The dialect that clients speak
    #[arg(long, value_enum, default_value_t)]
    pub dialect: DialectChoice,

    /// The bare disk's batch size to compare ACK(saved) latency with: 1, 16, 64 or 256
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub disk_batch: usize,
}

impl Default for PrivateOptions {
    fn default() -> Self {
        Self {
            target: TargetOptions::default(),
            span: Span::default(),
            flow: Flow::default(),
            connections: 1000,
            pairs: None,
            receivers_at: None,
            dialect: DialectChoice::Typed,
            disk_batch: 64,
        }
    }
}

impl PrivateOptions {
    /// Pairs of a sender and a receiver.
    pub fn pair_count(&self) -> usize {
        self.pairs.unwrap_or(self.connections / 2)
    }

    /// Checks the options: refuses a run that measures nothing or would not end.
    pub fn check(&self) -> Result<()> {
        let pairs = self.pair_count();
        ensure!(pairs > 0, "at least one pair is needed, that is two connections");
        ensure!(pairs * 2 <= CONNECTIONS_MAX, "at most {CONNECTIONS_MAX} connections");
        self.span.check()?;
        self.flow.check()
    }
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
        assert!(parse(&["--burst", "5"]).is_err(), "bursts of a closed loop");
        assert!(parse(&["--duration", "0"]).unwrap().check().is_err());
        assert!(parse(&["--connections", "1"]).unwrap().check().is_err());
        assert!(parse(&["--window", "0"]).unwrap().check().is_err());
        assert!(parse(&["--rate", "0"]).unwrap().check().is_err());
    }
}
