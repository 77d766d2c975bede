//! An entry of the outbox.
use serde::{Deserialize, Serialize};

use crate::frames::{ClientFrame, OutgoingChat};
use crate::reason::Reason;
use crate::types::{Address, Extra, MessageType};

/// A message in the outbox until the server saves or refuses it. Also its stored format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutboxEntry {
    /// The order of sending, across conversations and restarts.
    pub(crate) order: u64,
    pub(crate) client_msg_id: String,
    pub(crate) conversation_id: String,
    pub(crate) address: Address,
    #[serde(rename = "type")]
    pub(crate) kind: MessageType,
    pub(crate) body: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) extra: Option<Extra>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mentions: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reply_to: Option<String>,
    pub(crate) at: u64,
    /// Why it was refused for good; it stays until the app retries or discards it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<Reason>,
    /// For a refused entry: the last seq of the conversation at that time. It is shown after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<u64>,
}

impl OutboxEntry {
    /// Sorts by order. The client message id keeps two clients apart that share a store.
    pub(crate) fn key(&self, user_id: &str) -> String {
        format!("outbox/{user_id}/{:017}-{}", self.order, self.client_msg_id)
    }

    pub(crate) fn frame(&self) -> String {
        let said = OutgoingChat {
            address: &self.address,
            client_msg_id: &self.client_msg_id,
            body: &self.body,
            msg_type: self.kind,
            extra: self.extra.as_ref(),
            mentions: self.mentions.as_deref(),
            reply_to_server_msg_id: self.reply_to.as_deref(),
        };
        let frame = match self.address {
            Address::To { .. } => ClientFrame::SingleChat(said),
            Address::Group { .. } => ClientFrame::GroupChat(said),
        };
        frame.text()
    }
}
