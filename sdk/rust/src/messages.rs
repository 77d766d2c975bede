//! Converts frames, pulled items and outbox entries to messages and changes.
use serde::Deserialize;

use crate::frames::{ChatFrame, GroupChangedFrame, RevokedFrame};
use crate::group::Role;
use crate::outbox_entry::OutboxEntry;
use crate::types::{Change, ChangeKind, Extra, Message, MessageState, MessageType};

/// A message, as HTTP returns it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct MessageInfo {
    server_msg_id: String,
    client_msg_id: String,
    conversation_id: String,
    pub(crate) seq: u64,
    sender_id: String,
    msg_type: u8,
    #[serde(default)]
    content: Extra,
    extra: Option<Extra>,
    mentions: Option<Vec<String>>,
    reply_to_server_msg_id: Option<String>,
    send_at: u64,
    recall_at: Option<u64>,
}

/// A change, as HTTP returns it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ChangeInfo {
    conversation_id: String,
    pub(crate) change_seq: u64,
    kind: ChangeKind,
    #[serde(default)]
    operator_id: String,
    #[serde(default)]
    at: u64,
    server_msg_id: Option<String>,
    seq: Option<u64>,
    from_seq: Option<u64>,
    user_id: Option<String>,
    user_ids: Option<Vec<String>>,
    role: Option<Role>,
    muted_until: Option<i64>,
    on: Option<bool>,
    group: Option<Extra>,
}

fn type_of(number: u8) -> MessageType {
    match number {
        1 => MessageType::Text,
        2 => MessageType::Image,
        3 => MessageType::Video,
        4 => MessageType::Audio,
        5 => MessageType::File,
        _ => MessageType::Custom,
    }
}

impl Message {
    /// A message from a pushed frame.
    pub(crate) fn pushed(chat: ChatFrame, me: &str) -> Self {
        let is_mine = chat.from == me;
        let state = match chat.msg_seq {
            None => MessageState::Preview,
            Some(_) if is_mine => MessageState::Saved,
            Some(_) => MessageState::Received,
        };
        Self {
            conversation_id: chat.conversation_id,
            client_msg_id: chat.client_msg_id,
            server_msg_id: chat.server_msg_id,
            seq: chat.msg_seq.unwrap_or(0),
            from: chat.from,
            is_mine,
            kind: chat.msg_type,
            body: chat.body,
            extra: chat.extra,
            mentions: chat.mentions,
            reply_to: chat.reply_to_server_msg_id,
            is_important: chat.important,
            is_recalled: chat.revoked,
            is_damaged: false,
            at: chat.ts,
            state,
            read_by: None,
            reason: None,
            after: None,
        }
    }

    /// A message from a pull.
    pub(crate) fn pulled(info: MessageInfo, me: &str) -> Self {
        let is_mine = info.sender_id == me;
        let mentioned = info.mentions.iter().flatten().any(|who| who == me || who == "@all");
        Self {
            conversation_id: info.conversation_id,
            client_msg_id: info.client_msg_id,
            server_msg_id: info.server_msg_id,
            seq: info.seq,
            from: info.sender_id,
            is_mine,
            kind: type_of(info.msg_type),
            // One string, keyed by the type.
            body: info.content.into_values().next().unwrap_or_default(),
            extra: info.extra,
            mentions: info.mentions,
            reply_to: info.reply_to_server_msg_id,
            is_important: !is_mine && mentioned,
            is_recalled: info.recall_at.is_some(),
            is_damaged: false,
            at: info.send_at,
            state: if is_mine { MessageState::Saved } else { MessageState::Received },
            read_by: None,
            reason: None,
            after: None,
        }
    }

    /// The place of a message that the server cannot read any more.
    pub(crate) fn damaged(conversation_id: &str, seq: u64, at: u64) -> Self {
        Self {
            conversation_id: conversation_id.to_owned(),
            client_msg_id: String::new(),
            server_msg_id: String::new(),
            seq,
            from: String::new(),
            is_mine: false,
            kind: MessageType::Custom,
            body: String::new(),
            extra: None,
            mentions: None,
            reply_to: None,
            is_important: false,
            is_recalled: false,
            is_damaged: true,
            at,
            state: MessageState::Received,
            read_by: None,
            reason: None,
            after: None,
        }
    }

    /// A message from an outbox entry.
    pub(crate) fn waiting(entry: &OutboxEntry, me: &str) -> Self {
        let refused = entry.reason.is_some();
        Self {
            conversation_id: entry.conversation_id.clone(),
            client_msg_id: entry.client_msg_id.clone(),
            server_msg_id: String::new(),
            seq: 0,
            from: me.to_owned(),
            is_mine: true,
            kind: entry.kind,
            body: entry.body.clone(),
            extra: entry.extra.clone(),
            mentions: entry.mentions.clone(),
            reply_to: entry.reply_to.clone(),
            is_important: false,
            is_recalled: false,
            is_damaged: false,
            at: entry.at,
            state: if refused { MessageState::Refused } else { MessageState::Sending },
            read_by: None,
            reason: entry.reason,
            after: entry.after,
        }
    }
}

impl From<RevokedFrame> for Change {
    fn from(frame: RevokedFrame) -> Self {
        Self {
            conversation_id: frame.conversation_id,
            change_seq: frame.change_seq,
            kind: ChangeKind::Recalled,
            by: frame.from,
            at: frame.ts,
            user_ids: Vec::new(),
            role: None,
            muted_until: None,
            is_muted: None,
            group: None,
            seq: Some(frame.msg_seq),
            server_msg_id: Some(frame.server_msg_id),
        }
    }
}

impl From<GroupChangedFrame> for Change {
    fn from(frame: GroupChangedFrame) -> Self {
        Self {
            conversation_id: frame.conversation_id,
            change_seq: frame.change_seq,
            kind: frame.event,
            by: frame.from,
            at: frame.ts,
            user_ids: frame.user_ids.unwrap_or_else(|| frame.user_id.into_iter().collect()),
            role: frame.role,
            muted_until: frame.muted_until,
            is_muted: frame.on,
            group: frame.group,
            seq: frame.msg_seq,
            server_msg_id: None,
        }
    }
}

impl From<ChangeInfo> for Change {
    fn from(info: ChangeInfo) -> Self {
        Self {
            conversation_id: info.conversation_id,
            change_seq: info.change_seq,
            kind: info.kind,
            by: info.operator_id,
            at: info.at,
            user_ids: info.user_ids.unwrap_or_else(|| info.user_id.into_iter().collect()),
            role: info.role,
            muted_until: info.muted_until,
            is_muted: info.on,
            group: info.group,
            seq: info.seq.or(info.from_seq),
            server_msg_id: info.server_msg_id,
        }
    }
}
