//! Who is writing.
use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::timing::{Timing, ms};

/// Who is writing. Told again and again while somebody writes, so it is forgotten when that stops.
pub(crate) struct Typing {
    every: Duration,
    told: HashMap<String, Instant>,
    /// By conversation and person: until when it is believed.
    heard: HashMap<(String, String), Instant>,
}

impl Typing {
    pub(crate) fn new(timing: &Timing) -> Self {
        let every = ms(timing.typing_every_ms);
        Self { every, told: HashMap::new(), heard: HashMap::new() }
    }

    /// Whether it is time to tell the others again.
    pub(crate) fn may_tell(&mut self, conversation_id: &str, now: Instant) -> bool {
        if self.told.get(conversation_id).is_some_and(|last| now - *last < self.every) {
            return false;
        }
        self.told.insert(conversation_id.to_owned(), now);
        true
    }

    /// Somebody writes; whether that is news.
    pub(crate) fn hear(&mut self, conversation_id: &str, user_id: &str, now: Instant) -> bool {
        let key = (conversation_id.to_owned(), user_id.to_owned());
        self.heard.insert(key, now + self.every * 2).is_none()
    }

    /// They have said it; whether they were writing.
    pub(crate) fn stop(&mut self, conversation_id: &str, user_id: &str) -> bool {
        if self.heard.is_empty() {
            return false;
        }
        let key = (conversation_id.to_owned(), user_id.to_owned());
        self.heard.remove(&key).is_some()
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.heard.values().min().copied()
    }

    /// Those of whom nothing more is heard.
    pub(crate) fn tick(&mut self, now: Instant) -> Vec<(String, String)> {
        self.heard.extract_if(|_, until| *until <= now).map(|(who, _)| who).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn writing_is_told_now_and_then_and_forgotten_when_it_stops() {
        let mut typing = Typing::new(&Timing::default());
        let now = Instant::now();
        assert!(typing.may_tell("c", now));
        assert!(!typing.may_tell("c", now + ms(2_999)));
        assert!(typing.may_tell("c", now + ms(3_000)));
        assert!(typing.hear("c", "bob", now));
        assert!(!typing.hear("c", "bob", now + ms(3_000)));
        assert!(typing.tick(now + ms(8_999)).is_empty());
        assert_eq!(typing.due(), Some(now + ms(9_000)));
        assert_eq!(typing.tick(now + ms(9_000)), [("c".to_owned(), "bob".to_owned())]);
        assert!(!typing.stop("c", "bob"));
    }
}
