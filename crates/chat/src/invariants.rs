//! The promises as predicates: called by the engines in passing, by tests and by models.

use crate::ids::Seq;
use crate::model::{Cursors, Window};

/// Seqs of a conversation are 1, 2, 3 … without hole or duplicate.
pub fn dense(seqs: impl IntoIterator<Item = Seq>) -> bool {
    seqs.into_iter().zip(1..).all(|(seq, expect)| seq.0 == expect)
}

/// An acknowledged cursor move keeps to the promises: forward only, never past what is visible,
/// and what was read was delivered.
pub fn cursors_moved_well(before: Cursors, after: Cursors, visible_max: Seq) -> bool {
    after.delivered >= before.delivered
        && after.read >= before.read
        && (after.read == before.read || after.delivered >= after.read)
        && after.delivered <= visible_max.max(before.delivered)
        && after.read <= visible_max.max(before.read)
}

/// Whether a place lies in a window.
pub fn visible(window: Window, seq: Seq) -> bool {
    seq >= window.min && window.end.is_none_or(|end| seq <= end.seq)
}
