//! Messages on disk.

use std::collections::BTreeMap;

use nexo_chat::ids::{ClientMsgId, ConversationId, MessageId, Millis, Seq, UserId};
use nexo_chat::model::{Content, ContentKind, Fingerprint, Message, Recall, ReplyTo};
use serde::{Deserialize, Serialize};

use super::{impossible, user_id};
use crate::embedded::keys::Keyspace;
use crate::embedded::poison::EngineFault;

#[derive(Serialize, Deserialize)]
pub(crate) struct MessageRecord<'a> {
    id: [u8; 16],
    sender: &'a str,
    client_id: &'a str,
    sent_at: u64,
    kind: i32,
    body: &'a [u8],
    #[serde(borrow)]
    extra: BTreeMap<&'a str, &'a str>,
    #[serde(borrow)]
    mentions: Vec<&'a str>,
    mentions_all: bool,
    /// The id and the sender of the message it replies to.
    #[serde(borrow)]
    reply_to: Option<([u8; 16], &'a str)>,
    /// The user who recalled it, and when.
    #[serde(borrow)]
    recalled: Option<(&'a str, u64)>,
}

impl<'a> From<&'a Message> for MessageRecord<'a> {
    fn from(message: &'a Message) -> Self {
        let content = &message.content;
        Self {
            id: message.id.0,
            sender: message.sender.as_str(),
            client_id: message.client_id.as_str(),
            sent_at: message.sent_at.0,
            kind: content.kind.0,
            body: &content.body,
            extra: content.extra.iter().map(|(key, value)| (&**key, &**value)).collect(),
            mentions: content.mentions.iter().map(UserId::as_str).collect(),
            mentions_all: content.mentions_all,
            reply_to: content.reply_to.as_ref().map(|it| (it.message.0, it.sender.as_str())),
            recalled: message.recalled.as_ref().map(|recall| (recall.by.as_str(), recall.at.0)),
        }
    }
}

impl MessageRecord<'_> {
    pub(crate) fn sent_at(&self) -> Millis {
        Millis(self.sent_at)
    }

    pub(crate) fn message(
        &self,
        conversation: &ConversationId,
        seq: Seq,
    ) -> Result<Message, EngineFault> {
        let mentions: Result<_, _> = self.mentions.iter().copied().map(user_id).collect();
        let owned = |(key, value): (&&str, &&str)| ((*key).to_owned(), (*value).to_owned());
        Ok(Message {
            id: MessageId(self.id),
            conversation: conversation.clone(),
            seq,
            sender: user_id(self.sender)?,
            client_id: ClientMsgId::parse(self.client_id)
                .map_err(|_| impossible(Keyspace::Messages, "not a client id"))?,
            sent_at: Millis(self.sent_at),
            content: Content {
                kind: ContentKind(self.kind),
                body: self.body.to_vec().into(),
                extra: self.extra.iter().map(owned).collect(),
                mentions: mentions?,
                mentions_all: self.mentions_all,
                reply_to: match self.reply_to {
                    Some((message, sender)) => {
                        Some(ReplyTo { message: MessageId(message), sender: user_id(sender)? })
                    }
                    None => None,
                },
            },
            recalled: match self.recalled {
                Some((by, at)) => Some(Recall { by: user_id(by)?, at: Millis(at) }),
                None => None,
            },
        })
    }
}

/// The location of a message id, and the fingerprint of the content it was sent with.
#[derive(Serialize, Deserialize)]
pub(crate) struct IdRecord<'a> {
    pub(crate) conversation: &'a str,
    pub(crate) seq: u64,
    fingerprint: [u8; 16],
}

impl<'a> IdRecord<'a> {
    pub(crate) fn new(
        conversation: &'a ConversationId,
        seq: Seq,
        fingerprint: Fingerprint,
    ) -> Self {
        Self { conversation: conversation.as_str(), seq: seq.0, fingerprint: fingerprint.0 }
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint(self.fingerprint)
    }
}
