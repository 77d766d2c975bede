//! The settings of two-phase acknowledgement.

use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Options {
    /// Whether receivers get a preview of messages before they are saved.
    pub deliver_before_saved: bool,
    /// Whether messages are appended to the store directly while the log is unavailable; else they
    /// are refused.
    pub fail_open: bool,
    /// Whether messages of groups are accepted before they are saved too.
    pub groups: bool,
    /// The most entries a worker reads at a time.
    pub batch_size: usize,
    /// How long a worker waits for entries.
    pub block: Duration,
    /// After so many failures of one message, while others could be saved, it becomes a dead
    /// letter.
    pub tries_max: u32,
    /// A message that was accepted on this node and is not known to be saved after this long is
    /// looked up.
    pub rescue_after: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            deliver_before_saved: false,
            fail_open: true,
            groups: false,
            batch_size: 500,
            block: Duration::from_millis(200),
            tries_max: 20,
            rescue_after: Duration::from_secs(5),
        }
    }
}
