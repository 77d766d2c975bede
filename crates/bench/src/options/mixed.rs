//! `nexo bench mixed`.

use anyhow::{Result, ensure};

use super::{CONNECTIONS_MAX, FaultyReaderOptions, Flow, Span, TargetOptions};

const EXAMPLES: &str = "Examples:
  nexo bench mixed
  nexo bench mixed --pairs 1000 --groups 10 --members 100 --idle 5000 --flapping 50 --rate 5000
  nexo bench mixed --rate 2000 --burst 200 --duration 30 --json";

/// Everything at once: pairs, groups, idle connections, and reconnecting members.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct MixedOptions {
    #[command(flatten)]
    pub target: TargetOptions,

    #[command(flatten)]
    pub span: Span,

    /// Messages per second in all
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub rate: u64,

    /// Percentage of messages that go to groups
    #[arg(long, value_name = "PERCENT", default_value_t = 10)]
    pub to_groups: u64,

    /// Send so many messages at once, then none until their time is used up
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub burst: u64,

    /// Bytes of a message's text
    #[arg(long, value_name = "BYTES", default_value_t = 200)]
    pub size: usize,

    /// Pairs of users
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub pairs: usize,

    /// Groups
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub groups: usize,

    /// Members of each group, all online
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub members: usize,

    /// Idle connections
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub idle: usize,

    /// In each group, further members who disconnect and reconnect every second
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub flapping: usize,
}

impl MixedOptions {
    /// The load of the pairs.
    pub(crate) fn private_flow(&self) -> Flow {
        self.flow(self.rate * (100 - self.to_groups) / 100)
    }

    /// The load of one group.
    pub(crate) fn group_flow(&self) -> Flow {
        self.flow(self.rate * self.to_groups / 100 / self.groups as u64)
    }

    fn flow(&self, rate: u64) -> Flow {
        Flow { rate: Some(rate.max(1)), burst: self.burst, size: self.size, ..Flow::default() }
    }

    /// The flapping members of each group.
    pub(crate) fn readers(&self) -> FaultyReaderOptions {
        FaultyReaderOptions { flapping: self.flapping, ..FaultyReaderOptions::default() }
    }

    /// Checks the options: refuses a run that measures nothing or would not end.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.target.baseline, "there is no bare stack that a mixture compares with");
        ensure!(self.rate > 0, "a rate of zero sends nothing");
        ensure!((1..=99).contains(&self.to_groups), "--to-groups is 1 to 99 of a hundred");
        ensure!(self.pairs > 0 && self.groups > 0, "at least one pair and one group are needed");
        ensure!(self.members >= 2, "a group needs two members: one speaks, one hears");
        let each = self.members + self.flapping;
        let sockets = self.pairs * 2 + self.idle + self.groups * each;
        ensure!(
            sockets <= CONNECTIONS_MAX,
            "at most {CONNECTIONS_MAX} connections, and these are {sockets}"
        );
        self.span.check()?;
        self.private_flow().check()
    }
}
