//! `nexo bench growth`.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use super::OutputOptions;

/// Messages in the small store, and the fewest in a large one.
pub(crate) const SMALL: u64 = 10_000;
const MESSAGES_MAX: u64 = 100_000_000;

const EXAMPLES: &str = "Examples:
  nexo bench growth
  nexo bench growth --messages 20000 --members 1000 --rounds 2
  nexo bench growth --keep growth-data      keeps the folder, and uses it again the next time
  nexo bench growth --json > report.json";

/// Measures whether cost grows with what is stored: sends, unread counts, lists and starts on a small
/// and on a large store.
///
/// Fills a folder beside the working folder with as many messages as asked for, and takes about
/// 500 bytes of disk for each.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct GrowthOptions {
    /// Messages in the large store
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    pub messages: u64,

    /// Conversations the messages are spread over; by default one for every thousand messages, 300 to
    /// 10,000
    #[arg(long, value_name = "N")]
    pub conversations: Option<u64>,

    /// Members of the large group
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub members: u64,

    /// Rounds of each measurement, alternating between the small and the large store
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: usize,

    /// Keep the generated stores in this folder, or use those that are there
    #[arg(long, value_name = "FOLDER")]
    pub keep: Option<PathBuf>,

    #[command(flatten)]
    pub output: OutputOptions,
}

impl GrowthOptions {
    /// Checks the options: refuses a run that measures nothing or would not end.
    pub fn check(&self) -> Result<()> {
        let wanted = SMALL..=MESSAGES_MAX;
        ensure!(wanted.contains(&self.messages), "messages must be {SMALL} to {MESSAGES_MAX}");
        let conversations = self.conversations();
        ensure!((300..=1_000_000).contains(&conversations), "conversations must be 300 to 1000000");
        ensure!((10..=200_000).contains(&self.members), "members must be 10 to 200000");
        ensure!((1..=100).contains(&self.rounds), "rounds must be 1 to 100");
        Ok(())
    }

    pub(crate) fn conversations(&self) -> u64 {
        self.conversations.unwrap_or((self.messages / 1000).clamp(300, 10_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(messages: u64, conversations: Option<u64>) -> GrowthOptions {
        let (keep, output) = (None, OutputOptions::default());
        GrowthOptions { messages, conversations, members: 10, rounds: 1, keep, output }
    }

    #[test]
    fn conversations_follow_the_messages() {
        assert_eq!(options(10_000_000, None).conversations(), 10_000);
        assert_eq!(options(20_000, None).conversations(), 300);
        assert_eq!(options(20_000, Some(500)).conversations(), 500);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(options(20_000, None).check().is_ok());
        assert!(options(9_999, None).check().is_err());
        assert!(options(20_000, Some(3)).check().is_err());
        assert!(GrowthOptions { rounds: 0, ..options(20_000, None) }.check().is_err());
    }
}
