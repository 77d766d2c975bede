//! Where a member stands in a conversation: what they may see, how far they have come, what they
//! chose.

use serde::{Deserialize, Serialize};

use crate::ids::{ConversationId, Millis, Seq};

/// How far a member has come in a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursors {
    /// Everything up to here reached one of the member's devices.
    pub delivered: Seq,
    /// Everything up to here was read.
    pub read: Seq,
}

/// The two kinds of cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CursorKind {
    /// Reached a device.
    Delivered,
    /// Was read; moves delivered too.
    Read,
}

/// What a member may see: from `min` on, up to `end` once they left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first visible message.
    pub min: Seq,
    /// The first visible change.
    pub change_min: Seq,
    /// When it opened.
    pub since: Millis,
    /// Set for a former member, and for everybody once the group ended.
    pub end: Option<Edge>,
}

/// Where a window ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The last visible message.
    pub seq: Seq,
    /// The last visible change: the one that tells of the end.
    pub change_seq: Seq,
    /// When.
    pub at: Millis,
}

impl Window {
    /// Everything, from the first message on: both people of a private conversation.
    pub const ALL: Self = Self { min: Seq(1), change_min: Seq(1), since: Millis(0), end: None };

    /// The same, ended there unless it ended before.
    #[must_use]
    pub fn until(self, edge: Option<Edge>) -> Self {
        Self { end: self.end.or(edge), ..self }
    }
}

/// What a member wants to hear of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Receive {
    /// Everything.
    #[default]
    Normal,
    /// Everything, quietly.
    Silent,
    /// Nothing is pushed or sent again; it is there when they look.
    Blocked,
}

/// A member's own choices for a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Shown before all others.
    pub pinned: bool,
    /// What is pushed.
    pub receive: Receive,
    /// Set when they hid it from their list; [`Standing::is_hidden`] tells whether it still is.
    pub hidden: Option<Hidden>,
    /// The app's own data, opaque to the server.
    pub extra: String,
}

/// A conversation was hidden as it was then. What comes later brings it back without a write, since
/// the mark does not reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hidden {
    /// The newest message they could see.
    pub seq: Seq,
    /// When the window opened that they had: whoever comes back into a group has another one.
    pub since: Millis,
}

/// A change to the choices; `None` leaves one as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsChange {
    /// New pin.
    pub pinned: Option<bool>,
    /// New receive option.
    pub receive: Option<Receive>,
    /// Out of the list, or in it again.
    pub hiding: Option<Hiding>,
    /// New app data.
    pub extra: Option<String>,
}

/// What becomes of a conversation in its owner's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hiding {
    /// It goes.
    Hide(Hidden),
    /// It is there.
    Show,
}

impl Settings {
    /// Takes over what a change names.
    #[must_use]
    pub fn with(self, change: SettingsChange) -> Self {
        Self {
            pinned: change.pinned.unwrap_or(self.pinned),
            receive: change.receive.unwrap_or(self.receive),
            hidden: match change.hiding {
                Some(Hiding::Hide(hidden)) => Some(hidden),
                Some(Hiding::Show) => None,
                None => self.hidden,
            },
            extra: change.extra.unwrap_or(self.extra),
        }
    }
}

/// Where a member stands in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The conversation.
    pub conversation: ConversationId,
    /// What they may see.
    pub window: Window,
    /// How far they have come.
    pub cursors: Cursors,
    /// Own messages above the read cursor: those sent without marking anything read.
    pub own_unread: u64,
    /// What they chose.
    pub settings: Settings,
    /// The newest message's place; zero if there is none.
    pub max_seq: Seq,
    /// The newest change's place (recall, joins, roles …); zero if there is none.
    pub change_seq: Seq,
    /// When the newest message came.
    pub newest_at: Millis,
    /// Whether the conversation is over: its group was dissolved or dismissed.
    pub has_ended: bool,
}

impl Standing {
    /// The newest place this member may see.
    pub fn visible_max(&self) -> Seq {
        self.window.end.map_or(self.max_seq, |end| end.seq.min(self.max_seq))
    }

    /// The newest change this member may see.
    pub fn visible_change_max(&self) -> Seq {
        self.window.end.map_or(self.change_seq, |end| end.change_seq.min(self.change_seq))
    }

    /// Everything up to here counts as read.
    pub fn read_from(&self) -> Seq {
        self.cursors.read.max(self.window.min.previous())
    }

    /// Messages they have not read. One formula everywhere; their own never count.
    pub fn unread(&self) -> u64 {
        let above = self.visible_max().0.saturating_sub(self.read_from().0);
        above.saturating_sub(self.own_unread)
    }

    /// When something last happened here that they may see. What goes on after they left shows
    /// nowhere.
    pub fn updated_at(&self) -> Millis {
        self.window.end.map_or(self.newest_at, |end| end.at).max(self.window.since)
    }

    /// The mark that hides it as it is now.
    pub fn hidden_now(&self) -> Hidden {
        Hidden { seq: self.visible_max(), since: self.window.since }
    }

    /// Whether they hid it, and nothing was said since that they can see.
    pub fn is_hidden(&self) -> bool {
        let reaches =
            |hidden: Hidden| hidden.since == self.window.since && hidden.seq >= self.visible_max();
        self.settings.hidden.is_some_and(reaches)
    }

    /// Whether it is in their list of conversations. What is not is still there to be read.
    pub fn is_listed(&self) -> bool {
        !self.has_ended && !self.is_hidden()
    }

    /// Whether they are in it now.
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
            line.settings.hidden = Some(line.hidden_now());
            assert!(!line.is_listed());
            line.max_seq = Seq(before + 1);
            assert!(line.is_listed());
        }
        // What is said after they left is not theirs to see.
        let mut left = standing(5);
        left.window.end = Some(Edge { seq: Seq(4), change_seq: Seq(1), at: Millis(9) });
        left.settings.hidden = Some(left.hidden_now());
        left.max_seq = Seq(9);
        assert!(left.is_hidden());
        // Coming back brings it back.
        left.window = Window { since: Millis(10), min: Seq(10), ..Window::ALL };
        assert!(left.is_listed());
        left.has_ended = true;
        assert!(!left.is_listed() && !left.is_hidden());
    }

    #[test]
    fn unread_counts_the_window_above_the_read_cursor() {
        let check = |min: u64, max: Option<u64>, read: u64, max_seq: u64, expect: u64| {
            let end = max.map(|max| Edge { seq: Seq(max), change_seq: Seq(1), at: Millis(1) });
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
