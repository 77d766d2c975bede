//! Messages that came before. Among nodes a push may come twice: a node that only begins to hear a
//! group brings from the store what may have been said before it did.

use std::collections::HashSet;

use serde_json::Value;

use crate::process;

/// Tells which messages a socket has heard already. On a single node nothing comes again unasked.
pub(crate) struct Repeats(Option<HashSet<String>>);

impl Repeats {
    /// Nothing was heard yet.
    pub(crate) fn new() -> Self {
        Self((process::nodes() > 1).then(HashSet::new))
    }

    /// The socket is about to say this: whoever asks for messages again wants to hear them again.
    pub(crate) fn saying(&mut self, text: &str) {
        if let (Some(heard), true) = (&mut self.0, text.contains("\"RESEND\"")) {
            heard.clear();
        }
    }

    /// Whether this very message came before.
    pub(crate) fn is_one(&mut self, text: &str, frame: &Value) -> bool {
        let Some(heard) = &mut self.0 else { return false };
        let is_message = frame["type"] == "SINGLE_CHAT" || frame["type"] == "GROUP_CHAT";
        is_message && !heard.insert(text.to_owned())
    }
}
