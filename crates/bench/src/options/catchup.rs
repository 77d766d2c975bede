//! `nexo bench catchup`.

use anyhow::{Result, ensure};

use super::TargetOptions;

const EXAMPLES: &str = "Examples:
  nexo bench catchup
  nexo bench catchup --messages 100000 --conversations 1000 --clients 3
  nexo bench catchup --way resend --json";

/// Clients were offline while others sent them messages: how long until they have all of them?
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct CatchupOptions {
    #[command(flatten)]
    pub target: TargetOptions,

    /// Messages that each client missed
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub messages: u64,

    /// Conversations that the messages are in
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub conversations: u64,

    /// Clients that were offline; they connect one after the other
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub clients: usize,

    /// Clients that connect at the same time
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub at_once: usize,

    /// How they fetch what they missed
    #[arg(long, value_enum, default_value_t)]
    pub way: CatchupMethod,

    /// Bytes of a message's text
    #[arg(long, value_name = "BYTES", default_value_t = 200)]
    pub size: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CatchupMethod {
    /// Typed: RESEND page after page
    Resend,
    /// Numbered, data as JSON: 1001 for the newest seqs, then 1005 for all conversations at once
    #[default]
    Pull,
}

impl CatchupOptions {
    /// Messages of one conversation; the first ones may have one more.
    pub(crate) fn messages_of(&self, conversation: u64) -> u64 {
        let more = u64::from(conversation < self.messages % self.conversations);
        self.messages / self.conversations + more
    }

    /// Checks the options: refuses a run that measures nothing or would not end.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.target.baseline, "there is no bare stack that a catch-up compares with");
        ensure!((1..=1000).contains(&self.conversations), "the conversations must be 1 to 1000");
        ensure!(self.messages >= self.conversations, "each conversation needs a message");
        let all = self.messages.saturating_mul(self.clients as u64);
        ensure!(all <= 10_000_000, "at most 10000000 messages in all, and these are {all}");
        ensure!((1..=1000).contains(&self.clients), "the clients must be 1 to 1000");
        ensure!((1..=self.clients).contains(&self.at_once), "--at-once is 1 to the clients");
        ensure!((1..=60_000).contains(&self.size), "the size must be 1 to 60000 bytes");
        Ok(())
    }
}
