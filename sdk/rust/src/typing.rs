//! Who is typing.
use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::timing::{Timing, ms};

/// Who is typing. Clients repeat TYPING while typing goes on, so an entry expires when it stops.
pub(crate) struct Typing {
    every: Duration,
    sent_at: HashMap<String, Instant>,
    /// By conversation and user: when the entry expires.
    expires_at: HashMap<(String, String), Instant>,
}

impl Typing {
    pub(crate) fn new(timing: &Timing) -> Self {
        let every = ms(timing.typing_every_ms);
        Self { every, sent_at: HashMap::new(), expires_at: HashMap::new() }
    }

    /// Records a TYPING frame if the interval has passed; returns whether to send it.
    pub(crate) fn record_send_if_due(&mut self, conversation_id: &str, now: Instant) -> bool {
        if self.sent_at.get(conversation_id).is_some_and(|last| now - *last < self.every) {
            return false;
        }
        self.sent_at.insert(conversation_id.to_owned(), now);
        true
    }

    /// Starts or extends typing; returns whether it is new.
    pub(crate) fn start(&mut self, conversation_id: &str, user_id: &str, now: Instant) -> bool {
        let key = (conversation_id.to_owned(), user_id.to_owned());
        self.expires_at.insert(key, now + self.every * 2).is_none()
    }

    /// Ends typing; returns whether the user was typing.
    pub(crate) fn stop(&mut self, conversation_id: &str, user_id: &str) -> bool {
        if self.expires_at.is_empty() {
            return false;
        }
        let key = (conversation_id.to_owned(), user_id.to_owned());
        self.expires_at.remove(&key).is_some()
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.expires_at.values().min().copied()
    }

    /// Removes and returns expired entries.
    pub(crate) fn tick(&mut self, now: Instant) -> Vec<(String, String)> {
        self.expires_at.extract_if(|_, until| *until <= now).map(|(who, _)| who).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn writing_is_told_now_and_then_and_forgotten_when_it_stops() {
        let mut typing = Typing::new(&Timing::default());
        let now = Instant::now();
        assert!(typing.record_send_if_due("c", now));
        assert!(!typing.record_send_if_due("c", now + ms(2_999)));
        assert!(typing.record_send_if_due("c", now + ms(3_000)));
        assert!(typing.start("c", "bob", now));
        assert!(!typing.start("c", "bob", now + ms(3_000)));
        assert!(typing.tick(now + ms(8_999)).is_empty());
        assert_eq!(typing.due(), Some(now + ms(9_000)));
        assert_eq!(typing.tick(now + ms(9_000)), [("c".to_owned(), "bob".to_owned())]);
        assert!(!typing.stop("c", "bob"));
    }
}
