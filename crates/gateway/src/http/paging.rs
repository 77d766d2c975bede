//! Page sizes and cursors of query parameters.

use nexo_chat::conversations::ListCursor;
use nexo_chat::ids::{ConversationId, Millis};
use nexo_chat::{DetailedReason, Reason};

/// A page size: zero is the default, and more than `max` is cut to `max`.
pub(super) fn page_size(asked: Option<usize>, default: usize, max: usize) -> usize {
    asked.filter(|limit| *limit > 0).map_or(default, |limit| limit.min(max))
}

/// The id that the page before ended with. One of a wrong form is a wrong parameter, not an unknown user or group.
pub(super) fn page_cursor<T>(
    given: Option<&str>,
    parse: impl FnOnce(&str) -> Result<T, Reason>,
) -> Result<Option<T>, DetailedReason> {
    given.map(parse).transpose().map_err(|_| DetailedReason::field("cursor"))
}

/// Where a page of the conversation list begins. Its parts come together or not at all.
pub(super) fn list_cursor(
    updated_at: Option<u64>,
    conversation: Option<ConversationId>,
    pinned: Option<bool>,
) -> Result<Option<ListCursor>, DetailedReason> {
    match (updated_at, conversation) {
        (None, None) if pinned.is_none() => Ok(None),
        (Some(at), Some(conversation)) => {
            Ok(Some(ListCursor { pinned, updated_at: Millis(at), conversation }))
        }
        _ => {
            let detail = "the parts of the cursor come together or not at all";
            Err(DetailedReason::new(Reason::InvalidParam, detail))
        }
    }
}
