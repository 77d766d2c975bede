//! `session_type`: the number that tells private conversations from groups.

use nexo_chat::ids::ConversationId;

pub const SESSION_PRIVATE: i32 = 1;
pub const SESSION_GROUP: i32 = 2;

pub(super) fn session_type(conversation: &ConversationId) -> i32 {
    if conversation.group().is_some() { SESSION_GROUP } else { SESSION_PRIVATE }
}
