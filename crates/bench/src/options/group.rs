//! `nexo bench group`.

use anyhow::{Context, Result, ensure};

use super::{CONNECTIONS_MAX, Flow, Span, TargetOptions};
use crate::dialects::DialectChoice;

const EXAMPLES: &str = "Examples:
  nexo bench group --baseline
  nexo bench group --members 100000 --online 1000 --rate 200
  nexo bench group --members 1000 --senders 10 --rate 100 --slow 20 --stuck 5 --flapping 20 --beside
  nexo bench group --members 500 --online 50% --json";

/// A group in which some members send and everyone online receives.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct GroupOptions {
    #[command(flatten)]
    pub target: TargetOptions,

    #[command(flatten)]
    pub span: Span,

    #[command(flatten)]
    pub flow: Flow,

    /// Members of the group
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub members: usize,

    /// Members who are connected and read as fast as they can: a number, or a share such as 50%
    #[arg(long, value_name = "N", default_value = "100%", value_parser = OnlineMembers::parse)]
    pub online: OnlineMembers,

    /// Members online who send
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub senders: usize,

    /// The dialect that clients speak
    #[arg(long, value_enum, default_value_t)]
    pub dialect: DialectChoice,

    #[command(flatten)]
    pub readers: FaultyReaderOptions,
}

/// Members who read slowly, never, or reconnect all the time. They are online in addition to the others.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct FaultyReaderOptions {
    /// Further members who read only --slow-frames per second
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub slow: usize,

    /// Frames that a slow member reads per second
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub slow_frames: u32,

    /// Further members who never read after connecting; a server notices once the kernel's buffers
    /// are full, which takes up to 4 MB each
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub stuck: usize,

    /// Further members who disconnect and reconnect every second, and catch up
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub flapping: usize,

    /// First measure without these readers, then with them, and print both
    #[arg(long)]
    pub beside: bool,
}

impl FaultyReaderOptions {
    pub fn count(&self) -> usize {
        self.slow + self.stuck + self.flapping
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OnlineMembers {
    Count(usize),
    Percent(f64),
}

impl OnlineMembers {
    fn parse(text: &str) -> Result<Self> {
        let Some(share) = text.strip_suffix('%') else {
            return Ok(Self::Count(text.parse().context("not a number, nor a share like 50%")?));
        };
        let share: f64 = share.parse().context("not a share like 50%")?;
        ensure!((0.0..=100.0).contains(&share), "a share is 0% to 100%");
        Ok(Self::Percent(share))
    }
}

impl GroupOptions {
    /// Members online who read properly, including the senders.
    pub fn online(&self) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "a share of people"
        )]
        match self.online {
            OnlineMembers::Count(count) => count,
            OnlineMembers::Percent(share) => (self.members as f64 * share / 100.0).round() as usize,
        }
    }

    /// Checks the options: refuses a run that measures nothing or would not end.
    pub fn check(&self) -> Result<()> {
        let online = self.online();
        ensure!(self.members <= 100_000, "at most 100000 members");
        ensure!(online <= self.members, "more are online than there are members");
        ensure!(online >= 2, "at least two must be online: one speaks, one hears");
        ensure!((1..=online).contains(&self.senders), "the senders must be 1 to those online");
        ensure!(self.senders <= 1000, "at most 1000 senders");
        let sockets = online + self.readers.count();
        ensure!(
            sockets <= CONNECTIONS_MAX,
            "at most {CONNECTIONS_MAX} connections, and these are {sockets}"
        );
        ensure!((1..=1000).contains(&self.readers.slow_frames), "--slow-frames is 1 to 1000");
        ensure!(
            !self.readers.beside || self.readers.count() > 0,
            "--beside compares with --slow, --stuck or --flapping readers: say how many"
        );
        self.span.check()?;
        self.flow.check()
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;

    fn check(args: &[&str]) -> Result<usize> {
        let command = GroupOptions::augment_args(clap::Command::new("group"));
        let given = ["group"].iter().chain(args);
        let options = GroupOptions::from_arg_matches(&command.try_get_matches_from(given)?)?;
        options.check().map(|()| options.online())
    }

    #[test]
    fn those_online_are_a_number_or_a_share() {
        assert_eq!(check(&[]).unwrap(), 1000);
        assert_eq!(check(&["--online", "20"]).unwrap(), 20);
        assert_eq!(check(&["--members", "50", "--online", "50%"]).unwrap(), 25);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(check(&["--online", "101%"]).is_err());
        assert!(check(&["--online", "many"]).is_err());
        assert!(check(&["--members", "10", "--online", "11"]).is_err());
        assert!(check(&["--members", "1"]).is_err());
        assert!(check(&["--senders", "0"]).is_err());
        assert!(check(&["--beside"]).is_err());
    }
}
