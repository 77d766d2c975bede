//! Filters duplicate pushes. With several nodes a push may come twice: a node that has just subscribed to a group
//! also backfills from the store.

use std::collections::HashSet;

use serde_json::Value;

use crate::process;

/// The messages that a socket has received. On a single node every duplicate is a failure, so it filters nothing.
pub(crate) struct DuplicateFilter {
    seen: Option<HashSet<String>>,
    /// Requested pages that have not ended: they may repeat messages.
    open_pages: usize,
}

impl DuplicateFilter {
    pub(crate) fn new() -> Self {
        Self { seen: (process::nodes() > 1).then(HashSet::new), open_pages: 0 }
    }

    /// Call this before sending a frame: it may request a page.
    pub(crate) fn note_sent(&mut self, text: &str) {
        if text.contains("\"RESEND\"") || text.contains("\"AUTH\"") {
            self.open_pages += 1;
        }
    }

    /// Removes messages that are repeated later, and receipts: a node may learn only now of receipts from
    /// before the client connected.
    pub(crate) fn without_duplicates(&self, mut frames: Vec<Value>) -> Vec<Value> {
        if self.seen.is_none() {
            return frames;
        }
        frames.retain(|frame| frame["ackType"] != "delivered" && frame["ackType"] != "read");
        let comes_again =
            |at: usize| is_message(&frames[at]) && frames[at + 1..].contains(&frames[at]);
        let kept: Vec<usize> = (0..frames.len()).filter(|at| !comes_again(*at)).collect();
        kept.into_iter().map(|at| frames[at].clone()).collect()
    }

    /// Records a received frame. Returns whether it is a duplicate that was not requested.
    pub(crate) fn check_duplicate(&mut self, text: &str, frame: &Value) -> bool {
        let Some(seen) = &mut self.seen else { return false };
        if frame["type"] == "RESEND_DONE" {
            self.open_pages = self.open_pages.saturating_sub(1);
        }
        is_message(frame) && !seen.insert(text.to_owned()) && self.open_pages == 0
    }
}

fn is_message(frame: &Value) -> bool {
    frame["type"] == "SINGLE_CHAT" || frame["type"] == "GROUP_CHAT"
}
