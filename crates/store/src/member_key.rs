//! Types that both engines use for members.

use nexo_chat::ids::{ConversationId, Seq, UserId};

/// Identifies a member: a user in a conversation.
pub(crate) type MemberKey = (UserId, ConversationId);

/// Whether it is one of the two users of a private conversation, who may choose settings before
/// the first message makes them members.
pub(crate) fn is_private_member((user, conversation): &MemberKey) -> bool {
    conversation.peer_of(user).is_some()
}

/// A message that moves its sender's own cursors.
#[derive(Clone, Debug)]
pub(crate) struct OwnSend {
    pub(crate) member_key: MemberKey,
    pub(crate) seq: Seq,
    pub(crate) marks_read: bool,
}
