//! Members of conversations: standings, cursors and settings.

use std::ops::RangeInclusive;

use super::StoreFuture;
use crate::ids::{ConversationId, Seq, UserId};
use crate::model::{CursorKind, Cursors, Settings, SettingsChange, Standing};

/// A member's cursors before and after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorMove {
    pub before: Cursors,
    /// Equal to `before` if the move was backwards or empty.
    pub after: Cursors,
}

/// Reads and changes what a member has in a conversation.
pub trait ConversationStore: Send + Sync {
    /// Returns a member's standing, or `None` if the user never was a member. A private
    /// conversation without messages has one for a user who changed its settings.
    fn standing(
        &self,
        user: &UserId,
        conversation: &ConversationId,
    ) -> StoreFuture<'_, Option<Standing>>;

    /// Returns up to `limit` standings of a user in the order of the conversation ids, after a
    /// given one.
    fn standings(
        &self,
        user: &UserId,
        after: Option<&ConversationId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Standing>>;

    /// Moves a cursor forward to `seq`, at most to the visible maximum; read moves delivered too.
    /// Backwards or equal changes nothing. `None` if the user is no member. Durable within about a
    /// second without a sync of its own: losing a move only repeats a delivery.
    fn advance_cursor(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        kind: CursorKind,
        seq: Seq,
    ) -> StoreFuture<'_, Option<CursorMove>>;

    /// Counts the messages of the range that `user` sent without marking anything read.
    fn sent_without_read(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
    ) -> StoreFuture<'_, u64>;

    /// Changes a member's settings and returns them as they are now; `None` if the user never was a
    /// member. Durable when it returns.
    ///
    /// Either user of a private conversation can change theirs before the first message: they get
    /// a standing with [`Window::ALL`] and the other user none. [`Standing::has_begun`] is `false`
    /// until the first message, which keeps the settings. Whether the other user exists is up to
    /// the caller.
    ///
    /// [`Window::ALL`]: crate::model::Window::ALL
    fn update_settings(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        change: SettingsChange,
    ) -> StoreFuture<'_, Option<Settings>>;
}
