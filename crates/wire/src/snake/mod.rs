//! The bodies of HTTP answers over the `snake_case` paths: `snake_case`, seqs as numbers.

mod conversations;
mod messages;

pub use conversations::{Chosen, ConversationInfo, Conversations, Cursor, ReadState, Unread};
pub use messages::{MaxSeq, Mentioned, MessageInfo, Pulled, ReaderInfo, Readers, content};

use nexo_chat::ids::ConversationId;

/// The number of a private conversation, as `session_type` counts them.
pub const SESSION_PRIVATE: i32 = 1;
/// The number of a group's conversation.
pub const SESSION_GROUP: i32 = 2;

fn session_type(conversation: &ConversationId) -> i32 {
    if conversation.group().is_some() { SESSION_GROUP } else { SESSION_PRIVATE }
}
