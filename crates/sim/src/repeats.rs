//! Messages that came before. Among nodes a push may come twice: a node that only begins to hear a
//! group brings from the store what may have been said before it did.

use std::collections::HashSet;

use serde_json::Value;

use crate::process;

/// Tells which messages a socket has heard already. On a single node nothing comes again unasked.
pub(crate) struct Repeats {
    heard: Option<HashSet<String>>,
    /// Pages that were asked for and have not ended: those bring what they bring.
    pages: usize,
}

impl Repeats {
    /// Nothing was heard yet.
    pub(crate) fn new() -> Self {
        Self { heard: (process::nodes() > 1).then(HashSet::new), pages: 0 }
    }

    /// The socket is about to say this.
    pub(crate) fn saying(&mut self, text: &str) {
        if text.contains("\"RESEND\"") || text.contains("\"AUTH\"") {
            self.pages += 1;
        }
    }

    /// Frames without messages that come again further on, and without receipts: of what happened
    /// before somebody connected, their node may hear only now.
    pub(crate) fn once(&self, mut frames: Vec<Value>) -> Vec<Value> {
        if self.heard.is_none() {
            return frames;
        }
        frames.retain(|frame| frame["ackType"] != "delivered" && frame["ackType"] != "read");
        let comes_again =
            |at: usize| is_message(&frames[at]) && frames[at + 1..].contains(&frames[at]);
        let kept: Vec<usize> = (0..frames.len()).filter(|at| !comes_again(*at)).collect();
        kept.into_iter().map(|at| frames[at].clone()).collect()
    }

    /// Whether this very message came before, and nobody asked for it.
    pub(crate) fn is_one(&mut self, text: &str, frame: &Value) -> bool {
        let Some(heard) = &mut self.heard else { return false };
        if frame["type"] == "RESEND_DONE" {
            self.pages = self.pages.saturating_sub(1);
        }
        is_message(frame) && !heard.insert(text.to_owned()) && self.pages == 0
    }
}

fn is_message(frame: &Value) -> bool {
    frame["type"] == "SINGLE_CHAT" || frame["type"] == "GROUP_CHAT"
}
