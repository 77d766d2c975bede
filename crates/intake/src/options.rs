//! How messages are taken in.

use std::time::Duration;

/// The choices of an operator.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether receivers are shown messages before they are saved.
    pub deliver_before_saved: bool,
    /// Whether messages are saved the ordinary way while the log is away; else they are refused.
    pub fail_open: bool,
    /// Whether messages of groups are taken in too.
    pub groups: bool,
    /// Entries a worker takes at a time.
    pub batch_size: usize,
    /// How long a worker waits for entries.
    pub block: Duration,
    /// How often a message is tried that cannot be saved although others can.
    pub tries_max: u32,
    /// What was accepted here and not heard of for this long is looked for.
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
