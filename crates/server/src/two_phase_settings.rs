//! Settings of two-phase acknowledgement.

use std::time::Duration;

use nexo_intake::Options;
use serde::{Deserialize, Serialize};

/// More would only be more to look after.
pub(crate) const SHARDS_MAX: usize = 64;

/// Whether and how messages are accepted before they are saved.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "they are the operator's choices")]
pub(crate) struct TwoPhase {
    pub(crate) enabled: bool,
    pub(crate) deliver_before_saved: bool,
    pub(crate) fail_open: bool,
    pub(crate) groups: bool,
    pub(crate) shards: usize,
    pub(crate) batch_size: usize,
    pub(crate) block_ms: u64,
    pub(crate) backlog_max: usize,
    pub(crate) tries_max: u32,
    pub(crate) lease_ms: u64,
    pub(crate) preview_seconds: u64,
}

impl Default for TwoPhase {
    fn default() -> Self {
        Self {
            enabled: false,
            deliver_before_saved: false,
            fail_open: true,
            groups: false,
            shards: 4,
            batch_size: 500,
            block_ms: 200,
            backlog_max: 100_000,
            tries_max: 20,
            lease_ms: 3_000,
            preview_seconds: 30,
        }
    }
}

impl TwoPhase {
    /// How the workers are told.
    pub(crate) fn options(&self) -> Options {
        Options {
            deliver_before_saved: self.deliver_before_saved,
            fail_open: self.fail_open,
            groups: self.groups,
            batch_size: self.batch_size,
            block: Duration::from_millis(self.block_ms),
            tries_max: self.tries_max,
            ..Options::default()
        }
    }

    /// How much of the backlog a shard may have.
    pub(crate) fn shard_max(&self) -> usize {
        (self.backlog_max / self.shards.max(1)).max(1)
    }

    /// What is wrong with it.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut check = |is_fine: bool, problem: &str| {
            if !is_fine {
                problems.push(problem.to_owned());
            }
        };
        check((1..=SHARDS_MAX).contains(&self.shards), "two_phase.shards is 1 to 64");
        check((1..=5_000).contains(&self.batch_size), "two_phase.batch_size is 1 to 5000");
        check((1..=5_000).contains(&self.block_ms), "two_phase.block_ms is 1 to 5000");
        check(
            (self.shards..=200_000).contains(&self.backlog_max),
            "two_phase.backlog_max is two_phase.shards to 200000",
        );
        check(self.tries_max > 0, "two_phase.tries_max is at least 1");
        check((500..=60_000).contains(&self.lease_ms), "two_phase.lease_ms is 500 to 60000");
        check(self.preview_seconds > 0, "two_phase.preview_seconds is at least 1");
        problems
    }
}
