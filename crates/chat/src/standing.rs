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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Shown before all others.
    pub pinned: bool,
    /// What is pushed.
    pub receive: Receive,
}

/// A change to the choices; `None` leaves one as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettingsChange {
    /// New pin.
    pub pinned: Option<bool>,
    /// New receive option.
    pub receive: Option<Receive>,
}

impl Settings {
    /// Takes over what a change names.
    #[must_use]
    pub fn with(self, change: SettingsChange) -> Self {
        Self {
            pinned: change.pinned.unwrap_or(self.pinned),
            receive: change.receive.unwrap_or(self.receive),
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

    /// Whether they are in it now.
    pub fn is_active(&self) -> bool {
        self.window.end.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_counts_the_window_above_the_read_cursor() {
        let check = |min: u64, max: Option<u64>, read: u64, max_seq: u64, expect: u64| {
            let end = max.map(|max| Edge { seq: Seq(max), change_seq: Seq(1), at: Millis(1) });
            let standing = Standing {
                conversation: ConversationId::stored("sg_1"),
                window: Window { min: Seq(min), end, ..Window::ALL },
                cursors: Cursors { delivered: Seq(read), read: Seq(read) },
                own_unread: 0,
                settings: Settings::default(),
                max_seq: Seq(max_seq),
                change_seq: Seq::ZERO,
                newest_at: Millis(0),
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
