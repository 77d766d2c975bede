//! A member's standing in a conversation: visible window, cursors and settings.

use serde::{Deserialize, Serialize};

use crate::ids::{ConversationId, Millis, Seq};

/// A member's cursors in a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursors {
    /// Everything up to this seq reached one of the member's devices.
    pub delivered: Seq,
    /// Everything up to this seq was read.
    pub read: Seq,
}

/// The two kinds of cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CursorKind {
    Delivered,
    /// Moving it moves delivered too.
    Read,
}

/// The messages and changes that a member may see: from `min` on, up to `end` once they left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first visible message.
    pub min: Seq,
    /// The first visible change.
    pub change_min: Seq,
    /// When the member joined.
    pub since: Millis,
    /// Set for a former member, and for all members once the group ended.
    pub end: Option<WindowEnd>,
}

/// The end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowEnd {
    /// The last visible message.
    pub seq: Seq,
    /// The last visible change: the one that closed the window.
    pub change_seq: Seq,
    pub at: Millis,
}

impl Window {
    /// Everything: the window of both users of a private conversation.
    pub const ALL: Self = Self { min: Seq(1), change_min: Seq(1), since: Millis(0), end: None };

    /// The same window with this end, unless it already has one.
    #[must_use]
    pub fn until(self, end: Option<WindowEnd>) -> Self {
        Self { end: self.end.or(end), ..self }
    }
}

/// How a member receives a conversation's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Receive {
    #[default]
    Normal,
    /// Pushed without a notification.
    Silent,
    /// Neither pushed nor resent; readable on request.
    Blocked,
}

/// A member's own settings of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Listed before all others.
    pub pinned: bool,
    pub receive: Receive,
    /// Set when they hid it from their list; [`Standing::is_hidden`] says whether it still is.
    pub hidden: Option<HiddenMark>,
    /// The app's own data, opaque to the server.
    pub extra: String,
}

/// Hides a conversation up to a message. A newer message makes it visible again without a write, because
/// the mark does not cover it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenMark {
    /// The newest visible message when it was hidden.
    pub seq: Seq,
    /// `since` of the window when it was hidden: a member who rejoins has another window.
    pub since: Millis,
}

/// A change to the settings; `None` leaves one as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsChange {
    pub pinned: Option<bool>,
    pub receive: Option<Receive>,
    pub hidden: Option<HiddenChange>,
    pub extra: Option<String>,
}

/// Hides a conversation from its owner's list or shows it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenChange {
    Hide(HiddenMark),
    Show,
}

impl Settings {
    /// Sets the fields that the change contains.
    #[must_use]
    pub fn with(self, change: SettingsChange) -> Self {
        Self {
            pinned: change.pinned.unwrap_or(self.pinned),
            receive: change.receive.unwrap_or(self.receive),
            hidden: match change.hidden {
                Some(HiddenChange::Hide(hidden)) => Some(hidden),
                Some(HiddenChange::Show) => None,
                None => self.hidden,
            },
            extra: change.extra.unwrap_or(self.extra),
        }
    }
}

/// A member's standing in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub conversation: ConversationId,
    pub window: Window,
    pub cursors: Cursors,
    /// Own messages above the read cursor: those sent without marking anything as read.
    pub own_unread: u64,
    pub settings: Settings,
    /// The seq of the newest message; zero if there is none.
    pub max_seq: Seq,
    /// The seq of the newest change (recall, join, role …); zero if there is none.
    pub change_seq: Seq,
    /// When the newest message was sent.
    pub newest_at: Millis,
    /// Whether its group was dissolved or dismissed.
    pub has_ended: bool,
}

impl Standing {
    /// The standing of either user in a private conversation in which nothing was said or chosen.
    pub fn before_first_message(conversation: ConversationId) -> Self {
        Self {
            conversation,
            window: Window::ALL,
            cursors: Cursors::default(),
            own_unread: 0,
            settings: Settings::default(),
            max_seq: Seq::ZERO,
            change_seq: Seq::ZERO,
            newest_at: Millis(0),
            has_ended: false,
        }
    }

    /// The seq of the newest message that this member may see.
    pub fn visible_max(&self) -> Seq {
        self.window.end.map_or(self.max_seq, |end| end.seq.min(self.max_seq))
    }

    /// The seq of the newest change that this member may see.
    pub fn visible_change_max(&self) -> Seq {
        self.window.end.map_or(self.change_seq, |end| end.change_seq.min(self.change_seq))
    }

    /// Everything up to this seq counts as read.
    pub fn read_up_to(&self) -> Seq {
        self.cursors.read.max(self.window.min.previous())
    }

    /// The unread count, by this one formula everywhere. Own messages never count.
    pub fn unread(&self) -> u64 {
        let above = self.visible_max().0.saturating_sub(self.read_up_to().0);
        above.saturating_sub(self.own_unread)
    }

    /// The time of the last visible activity. What happens after they left does not count.
    pub fn updated_at(&self) -> Millis {
        self.window.end.map_or(self.newest_at, |end| end.at).max(self.window.since)
    }

    /// The mark that hides it up to now.
    pub fn hidden_mark(&self) -> HiddenMark {
        HiddenMark { seq: self.visible_max(), since: self.window.since }
    }

    /// Whether they hid it and no visible message came since.
    pub fn is_hidden(&self) -> bool {
        let reaches = |hidden: HiddenMark| {
            hidden.since == self.window.since && hidden.seq >= self.visible_max()
        };
        self.settings.hidden.is_some_and(reaches)
    }

    /// Whether it is a group, or a private conversation with a message. Otherwise it only holds the
    /// settings that this user chose in advance: it is in no list, and nothing else can be asked of it.
    pub fn has_begun(&self) -> bool {
        self.max_seq > Seq::ZERO || self.conversation.group().is_some()
    }

    /// Whether it is in their list of conversations. An unlisted one can still be read.
    pub fn is_listed(&self) -> bool {
        self.has_begun() && !self.has_ended && !self.is_hidden()
    }

    /// Whether they are a member now.
    pub fn is_active(&self) -> bool {
        self.window.end.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(max_seq: u64) -> Standing {
        Standing {
            conversation: ConversationId::stored("sg_1"),
            window: Window { since: Millis(7), ..Window::ALL },
            cursors: Cursors::default(),
            own_unread: 0,
            settings: Settings::default(),
            max_seq: Seq(max_seq),
            change_seq: Seq::ZERO,
            newest_at: Millis(0),
            has_ended: false,
        }
    }

    #[test]
    fn what_is_hidden_comes_back_with_what_is_said() {
        for before in [0, 5] {
            let mut line = standing(before);
            assert!(line.is_listed());
            line.settings.hidden = Some(line.hidden_mark());
            assert!(!line.is_listed());
            line.max_seq = Seq(before + 1);
            assert!(line.is_listed());
        }
        // They cannot see messages sent after they left.
        let mut left = standing(5);
        left.window.end = Some(WindowEnd { seq: Seq(4), change_seq: Seq(1), at: Millis(9) });
        left.settings.hidden = Some(left.hidden_mark());
        left.max_seq = Seq(9);
        assert!(left.is_hidden());
        // Rejoining shows it again.
        left.window = Window { since: Millis(10), min: Seq(10), ..Window::ALL };
        assert!(left.is_listed());
        left.has_ended = true;
        assert!(!left.is_listed() && !left.is_hidden());
    }

    #[test]
    fn unread_counts_the_window_above_the_read_cursor() {
        let check = |min: u64, max: Option<u64>, read: u64, max_seq: u64, expect: u64| {
            let end = max.map(|max| WindowEnd { seq: Seq(max), change_seq: Seq(1), at: Millis(1) });
            let standing = Standing {
                window: Window { min: Seq(min), end, ..Window::ALL },
                cursors: Cursors { delivered: Seq(read), read: Seq(read) },
                ..standing(max_seq)
            };
            assert_eq!(standing.unread(), expect);
        };
        check(1, None, 0, 0, 0);
        check(1, None, 0, 5, 5);
        check(1, None, 3, 5, 2);
        check(4, None, 0, 5, 2);
        check(4, Some(4), 0, 9, 1);
        check(4, Some(2), 0, 9, 0);
    }
}
