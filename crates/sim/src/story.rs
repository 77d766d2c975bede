//! A group's story as somebody heard it who was there all the time: what was said and what happened,
//! in the one order there is, and what follows from it for everybody else.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::socket::seq;

/// One time that somebody was in a group: the messages and changes that are theirs to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// The first message.
    pub min: u64,
    /// The last one, once they went.
    pub end: Option<u64>,
    /// The first change: that they came.
    pub change_min: u64,
    /// The last one: that they went.
    pub change_end: Option<u64>,
}

impl Stay {
    /// Whether a message is theirs to see.
    pub fn shows(&self, seq: u64) -> bool {
        seq >= self.min && self.end.is_none_or(|end| seq <= end)
    }

    /// Whether a change is.
    pub fn shows_change(&self, seq: u64) -> bool {
        seq >= self.change_min && self.change_end.is_none_or(|end| seq <= end)
    }
}

/// What was said and what happened.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// The messages, from the first on.
    pub messages: Vec<Value>,
    /// The changes, from the first on.
    pub changes: Vec<Value>,
    stays: BTreeMap<String, Vec<Stay>>,
}

impl Story {
    /// The story in these frames. Panics if there is a hole in it, anything twice, or anything that
    /// cannot have come then.
    pub fn of(frames: &[Value]) -> Self {
        let mut story = Self::default();
        for frame in frames {
            match frame["type"].as_str() {
                Some("GROUP_CHAT") => story.hear(frame),
                Some("GROUP_CHANGED") => story.change(frame),
                _ => {}
            }
        }
        story
    }

    fn hear(&mut self, message: &Value) {
        assert_eq!(seq(message), self.head() + 1, "every message, once and in order");
        let from = text(&message["from"]);
        assert!(self.is_in(from), "{from} speaks from outside: {message}");
        self.messages.push(message.clone());
    }

    fn change(&mut self, change: &Value) {
        let place = change_seq(change);
        assert_eq!(place, self.changes.len() as u64 + 1, "every change, once and in order");
        self.changes.push(change.clone());
        match text(&change["event"]) {
            "joined" => {
                assert_eq!(seq(change), self.head() + 1, "they see what comes from now on");
                for user in change["userIds"].as_array().expect("people").iter().map(text) {
                    assert!(!self.is_in(user), "{user} came twice");
                    let (min, change_min) = (self.head() + 1, place);
                    let stay = Stay { min, end: None, change_min, change_end: None };
                    self.stays.entry(user.to_owned()).or_default().push(stay);
                }
            }
            "left" | "kicked" => {
                let user = text(&change["userId"]);
                assert!(self.is_in(user), "{user} went twice");
                let end = Some(self.head());
                let stays = self.stays.get_mut(user).and_then(|stays| stays.last_mut());
                let stay = stays.expect("they were in");
                *stay = Stay { end, change_end: Some(place), ..*stay };
            }
            _ => {}
        }
    }

    fn is_in(&self, user: &str) -> bool {
        self.stays(user).last().is_some_and(|stay| stay.end.is_none())
    }

    /// The newest message's place.
    pub fn head(&self) -> u64 {
        self.messages.len() as u64
    }

    /// Every time somebody was in the group.
    pub fn stays(&self, user: &str) -> &[Stay] {
        self.stays.get(user).map_or(&[], Vec::as_slice)
    }

    /// Messages of others after a place, as far as a stay shows them.
    pub fn unread(&self, user: &str, stay: &Stay, read: u64) -> u64 {
        let above = self.messages.iter().filter(|it| seq(it) > read && stay.shows(seq(it)));
        above.filter(|message| text(&message["from"]) != user).count() as u64
    }
}

/// A frame's place among the changes.
pub fn change_seq(frame: &Value) -> u64 {
    let place = frame["changeSeq"].as_str().and_then(|place| place.parse().ok());
    place.unwrap_or_else(|| panic!("no place in {frame}"))
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}
