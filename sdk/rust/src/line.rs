//! A line of the list of conversations.
use std::sync::Arc;

use crate::types::{Address, Message, Receive};

/// What a conversation looks like in the list.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is told by the server on its own")]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) avatar: String,
    pub(crate) member_count: Option<u64>,
    pub(crate) pinned: bool,
    pub(crate) receive: Receive,
    /// We are no longer in it.
    pub(crate) left: bool,
    /// Its group was dissolved or dismissed.
    pub(crate) ended: bool,
    /// Out of the list until there is a message after this one.
    pub(crate) hidden_seq: Option<u64>,
    pub(crate) updated_at: u64,
    /// Whether its name is known.
    pub(crate) is_known: bool,
}

/// A line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is shown on its own")]
pub struct ConversationLine {
    /// Its id.
    pub id: String,
    /// The person or the group it is with.
    pub address: Address,
    /// What to call it.
    pub name: String,
    /// Its picture.
    pub avatar: String,
    /// Of a group, if it is known.
    pub member_count: Option<u64>,
    /// How many are unread.
    pub unread: u64,
    /// How many of them speak to you.
    pub mention_unread: u64,
    /// The last one, even if it is on its way.
    pub last_message: Option<Arc<Message>>,
    /// Whether it stays on top.
    pub pinned: bool,
    /// What you want to hear of it.
    pub receive: Receive,
    /// Whether you are still in it.
    pub active: bool,
    /// Whether its group was dissolved or dismissed: it is not in the list any more.
    pub ended: bool,
    /// Whether you hid it and nothing was said since: it is not in the list.
    pub hidden: bool,
    /// Everything up to here is on this device, from its oldest message on.
    pub last_seq: u64,
    /// How far you have read.
    pub read_seq: u64,
    /// How far the other person has received.
    pub peer_delivered_seq: u64,
    /// How far the other person has read.
    pub peer_read_seq: u64,
    /// When something happened in it.
    pub updated_at: u64,
}
