//! The promises as predicates, called by the engines and by tests.

use crate::ids::Seq;
use crate::model::{Cursors, Window};

/// Whether seqs are 1, 2, 3 … without gap or duplicate.
pub fn is_dense(seqs: impl IntoIterator<Item = Seq>) -> bool {
    seqs.into_iter().zip(1..).all(|(seq, expect)| seq.0 == expect)
}

/// Whether a cursor only moved forward, not past what is visible, and what was read was also delivered.
pub fn is_valid_cursor_move(before: Cursors, after: Cursors, visible_max: Seq) -> bool {
    after.delivered >= before.delivered
        && after.read >= before.read
        && (after.read == before.read || after.delivered >= after.read)
        && after.delivered <= visible_max.max(before.delivered)
        && after.read <= visible_max.max(before.read)
}

/// Whether the window contains the message.
pub fn is_visible(window: Window, seq: Seq) -> bool {
    seq >= window.min && window.end.is_none_or(|end| seq <= end.seq)
}
