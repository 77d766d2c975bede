//! The summary of a conversation.
use std::sync::Arc;

use crate::types::{Address, Message, Receive};

/// The fields of a summary that come from the server.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "the server sends each on its own")]
pub(crate) struct ConversationDetails {
    pub(crate) name: String,
    pub(crate) avatar: String,
    pub(crate) member_count: Option<u64>,
    pub(crate) is_pinned: bool,
    pub(crate) receive: Receive,
    /// The user is no longer a member.
    pub(crate) left: bool,
    /// The group was dissolved or dismissed.
    pub(crate) is_ended: bool,
    /// Hidden from the list until there is a message after this seq.
    pub(crate) hidden_seq: Option<u64>,
    pub(crate) updated_at: u64,
    /// Whether name, avatar and member count are loaded.
    pub(crate) has_info: bool,
}

/// A conversation as the list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is shown on its own")]
pub struct ConversationSummary {
    pub id: String,
    /// The user or group.
    pub address: Address,
    pub name: String,
    pub avatar: String,
    /// Of a group, if loaded.
    pub member_count: Option<u64>,
    pub unread: u64,
    /// Unread messages that mention you or reply to you.
    pub mention_unread: u64,
    /// The last message, also while it is in the outbox.
    pub last_message: Option<Arc<Message>>,
    pub is_pinned: bool,
    pub receive: Receive,
    /// Whether you are still a member.
    pub is_active: bool,
    /// Whether the group was dissolved or dismissed, so that it is no longer in the list.
    pub is_ended: bool,
    /// Whether you hid it and no message came since, so that it is not in the list.
    pub is_hidden: bool,
    /// The last message on this device; there is no gap between the oldest one and this.
    pub last_seq: u64,
    pub read_seq: u64,
    /// The delivered cursor of the peer.
    pub peer_delivered_seq: u64,
    /// The read cursor of the peer.
    pub peer_read_seq: u64,
    pub updated_at: u64,
}
