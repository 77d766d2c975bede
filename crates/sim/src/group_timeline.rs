//! A group's timeline as a permanent member received it: messages and changes in their one order, and what it
//! implies for every other member.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::socket::seq;

/// One period of a user's membership: the messages and changes that they may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MembershipPeriod {
    pub min: u64,
    /// The last message, once they left.
    pub end: Option<u64>,
    /// The first change: that they joined.
    pub change_min: u64,
    /// The last change: that they left.
    pub change_end: Option<u64>,
}

impl MembershipPeriod {
    pub fn shows(&self, seq: u64) -> bool {
        seq >= self.min && self.end.is_none_or(|end| seq <= end)
    }

    pub fn shows_change(&self, seq: u64) -> bool {
        seq >= self.change_min && self.change_end.is_none_or(|end| seq <= end)
    }
}

/// The messages and changes of a group.
#[derive(Clone, Debug, Default)]
pub struct GroupTimeline {
    /// From the first on.
    pub messages: Vec<Value>,
    /// From the first on.
    pub changes: Vec<Value>,
    periods: BTreeMap<String, Vec<MembershipPeriod>>,
}

impl GroupTimeline {
    /// Builds the timeline from received frames. Panics at a gap, a duplicate, or a frame that cannot have come
    /// at that point.
    pub fn from_frames(frames: &[Value]) -> Self {
        let mut timeline = Self::default();
        for frame in frames {
            match frame["type"].as_str() {
                Some("GROUP_CHAT") => timeline.add_message(frame),
                Some("GROUP_CHANGED") => timeline.add_change(frame),
                _ => {}
            }
        }
        timeline
    }

    fn add_message(&mut self, message: &Value) {
        assert_eq!(seq(message), self.head() + 1, "every message, once and in order");
        let from = text(&message["from"]);
        assert!(self.is_member(from), "{from} sends without being a member: {message}");
        self.messages.push(message.clone());
    }

    fn add_change(&mut self, change: &Value) {
        let at = change_seq(change);
        assert_eq!(at, self.changes.len() as u64 + 1, "every change, once and in order");
        self.changes.push(change.clone());
        match text(&change["event"]) {
            "joined" => {
                assert_eq!(seq(change), self.head() + 1, "they see what comes from now on");
                for user in change["userIds"].as_array().expect("people").iter().map(text) {
                    assert!(!self.is_member(user), "{user} joined twice");
                    let (min, change_min) = (self.head() + 1, at);
                    let period = MembershipPeriod { min, end: None, change_min, change_end: None };
                    self.periods.entry(user.to_owned()).or_default().push(period);
                }
            }
            "left" | "kicked" => {
                let user = text(&change["userId"]);
                assert!(self.is_member(user), "{user} left twice");
                let end = Some(self.head());
                let periods = self.periods.get_mut(user).and_then(|periods| periods.last_mut());
                let period = periods.expect("they were in");
                *period = MembershipPeriod { end, change_end: Some(at), ..*period };
            }
            _ => {}
        }
    }

    fn is_member(&self, user: &str) -> bool {
        self.periods(user).last().is_some_and(|period| period.end.is_none())
    }

    /// The seq of the newest message.
    pub fn head(&self) -> u64 {
        self.messages.len() as u64
    }

    /// All periods of a user's membership.
    pub fn periods(&self, user: &str) -> &[MembershipPeriod] {
        self.periods.get(user).map_or(&[], Vec::as_slice)
    }

    /// Messages of others after a seq that are visible in a period.
    pub fn unread(&self, user: &str, period: &MembershipPeriod, read: u64) -> u64 {
        let above = self.messages.iter().filter(|it| seq(it) > read && period.shows(seq(it)));
        above.filter(|message| text(&message["from"]) != user).count() as u64
    }
}

/// A frame's change seq.
pub fn change_seq(frame: &Value) -> u64 {
    let seq = frame["changeSeq"].as_str().and_then(|seq| seq.parse().ok());
    seq.unwrap_or_else(|| panic!("no change seq in {frame}"))
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}
