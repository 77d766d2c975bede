//! Something to be said.
use serde::{Deserialize, Serialize};

use crate::frames::{ClientFrame, Said};
use crate::reason::Reason;
use crate::types::{Address, Extra, MessageType};

/// Something to be said, until the server has saved or refused it. This is also how it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// In the order of sending, over all conversations and restarts.
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
    /// Why it was refused for good; it then waits for the app.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<Reason>,
    /// Of a refused one: the last place that was here then. It stays behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<u64>,
}

impl Entry {
    /// Sorts by order. The name keeps two clients apart that share a store.
    pub(crate) fn key(&self, user_id: &str) -> String {
        format!("outbox/{user_id}/{:017}-{}", self.order, self.client_msg_id)
    }

    pub(crate) fn frame(&self) -> String {
        let said = Said {
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
