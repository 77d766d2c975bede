//! Ranges of seqs whose messages cannot be read any more. Left out of answers that have none.

use std::ops::RangeInclusive;

use nexo_chat::ids::Seq;
use serde::Serialize;
use utoipa::ToSchema;

/// Seqs of messages that the server's disk lost, both ends included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct DamagedRange {
    pub from: u64,
    pub to: u64,
}

/// The same over the camelCase paths, whose seqs are strings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct DamagedRangeText {
    pub from: String,
    pub to: String,
}

pub fn ranges(damaged: &[RangeInclusive<Seq>]) -> Vec<DamagedRange> {
    let range = |range: &RangeInclusive<Seq>| (range.start().0, range.end().0);
    damaged.iter().map(range).map(|(from, to)| DamagedRange { from, to }).collect()
}

impl From<DamagedRange> for DamagedRangeText {
    fn from(DamagedRange { from, to }: DamagedRange) -> Self {
        Self { from: from.to_string(), to: to.to_string() }
    }
}
