//! Messages, from the draft to the stored and the recalled one.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use blake3::hazmat::{ContextKey, HasherExt, hash_derive_key_context};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::ids::{
    ClientMsgId, ConnectionId, ConversationId, MessageId, Millis, Seq, UserId, first_16_bytes,
};

/// The type of a message's content. The server does not look inside; clients interpret the number.
/// Unknown numbers are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContentKind(pub i32);

impl ContentKind {
    pub const TEXT: Self = Self(1);
    pub const IMAGE: Self = Self(2);
    pub const VIDEO: Self = Self(3);
    pub const AUDIO: Self = Self(4);
    pub const FILE: Self = Self(5);
    pub const CUSTOM: Self = Self(100);

    pub fn is_known(self) -> bool {
        matches!(self.0, 1..=5 | 100)
    }
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    pub kind: ContentKind,
    /// Opaque bytes; UTF-8 where the kind is text.
    pub body: Bytes,
    /// The app's own options, opaque to the server.
    pub extra: BTreeMap<String, String>,
    pub mentions: Vec<UserId>,
    /// Whether it mentions all members.
    pub mentions_all: bool,
    /// The message it replies to.
    pub reply_to: Option<ReplyTo>,
}

/// The message that another one replies to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyTo {
    pub message: MessageId,
    pub sender: UserId,
}

impl Content {
    pub fn text(body: impl Into<Bytes>) -> Self {
        Self {
            kind: ContentKind::TEXT,
            body: body.into(),
            extra: BTreeMap::new(),
            mentions: Vec::new(),
            mentions_all: false,
            reply_to: None,
        }
    }

    /// Whether it mentions this user or everyone, or replies to a message of this user.
    pub fn mentions_or_answers(&self, user: &UserId) -> bool {
        self.mentions_all
            || self.mentions.contains(user)
            || self.reply_to.as_ref().is_some_and(|reply| reply.sender == *user)
    }

    /// Identifies this content in that conversation: equal for a retry, different for any other content
    /// under the same client id.
    pub fn fingerprint(&self, conversation: &ConversationId) -> Fingerprint {
        /// Hashed once instead of for every message.
        static CONTEXT: LazyLock<ContextKey> =
            LazyLock::new(|| hash_derive_key_context("nexo content fingerprint v1"));
        let mut hasher = blake3::Hasher::new_from_context_key(&CONTEXT);
        let mut part = |bytes: &[u8]| {
            // Length-prefixed, so that two different splits never hash alike.
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        part(conversation.as_str().as_bytes());
        part(&self.kind.0.to_le_bytes());
        part(&self.body);
        part(self.reply_to.as_ref().map_or(&[][..], |reply| &reply.message.0));
        part(&[u8::from(self.mentions_all)]);
        for mention in &self.mentions {
            part(mention.as_str().as_bytes());
        }
        if !self.extra.is_empty() {
            // Otherwise two mentions would hash like one entry.
            part(&(self.extra.len() as u64).to_le_bytes());
        }
        for (key, value) in &self.extra {
            part(key.as_bytes());
            part(value.as_bytes());
        }
        Fingerprint(first_16_bytes(&hasher.finalize()))
    }
}

/// See [`Content::fingerprint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 16]);

/// A message on its way into the store: everything except its seq.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    pub conversation: ConversationId,
    pub sender: UserId,
    pub client_id: ClientMsgId,
    /// The content as sent. Retries are compared with this.
    pub content: Content,
    /// The content to store instead, if the word filter replaced something.
    pub cleaned: Option<Content>,
    pub sent_at: Millis,
    /// The sending socket, which gets an ACK instead of a push.
    pub origin: Option<ConnectionId>,
    /// Whether sending it marks everything before it as read.
    pub marks_read: bool,
}

impl Draft {
    /// The stored message with this id and seq.
    #[must_use]
    pub fn into_message(self, id: MessageId, seq: Seq) -> Message {
        Message {
            id,
            conversation: self.conversation,
            seq,
            sender: self.sender,
            client_id: self.client_id,
            sent_at: self.sent_at,
            content: self.cleaned.unwrap_or(self.content),
            recalled: None,
        }
    }
}

/// A stored message. It never changes, except that it may be recalled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub id: MessageId,
    pub conversation: ConversationId,
    pub seq: Seq,
    pub sender: UserId,
    pub client_id: ClientMsgId,
    pub sent_at: Millis,
    /// Empty once it is recalled.
    pub content: Content,
    pub recalled: Option<Recall>,
}

/// Who recalled a message, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recall {
    pub by: UserId,
    pub at: Millis,
}

impl Message {
    /// The message without its content.
    #[must_use]
    pub fn recalled(&self, recall: Recall) -> Self {
        let content = Content { kind: self.content.kind, ..Content::text("") };
        Self { content, recalled: Some(recall), ..self.clone() }
    }

    /// Its approximate size in bytes, in memory or on the wire.
    pub fn weight(&self) -> usize {
        let content = &self.content;
        let extra = content.extra.iter().map(|(key, value)| key.len() + value.len() + 64);
        512 + content.body.len() + extra.sum::<usize>() + content.mentions.len() * 80
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_tells_every_difference() {
        let (a, b) = (UserId::parse("a").unwrap(), UserId::parse("b").unwrap());
        let here = ConversationId::private(&a, &b);
        let there = ConversationId::private(&a, &UserId::parse("c").unwrap());
        let plain = Content::text("hi");
        let mut seen = vec![plain.fingerprint(&here), plain.fingerprint(&there)];
        for change in [
            Content::text("hi!"),
            Content { kind: ContentKind::CUSTOM, ..plain.clone() },
            Content { mentions: vec![a.clone()], ..plain.clone() },
            Content { mentions_all: true, ..plain.clone() },
            Content {
                reply_to: Some(ReplyTo { message: MessageId([7; 16]), sender: b.clone() }),
                ..plain.clone()
            },
            Content { extra: BTreeMap::from([("k".into(), "v".into())]), ..plain.clone() },
            Content { mentions: vec![a.clone(), b.clone()], ..plain.clone() },
            Content { extra: BTreeMap::from([("a".into(), "b".into())]), ..plain.clone() },
        ] {
            seen.push(change.fingerprint(&here));
        }
        for (i, one) in seen.iter().enumerate() {
            assert!(!seen[..i].contains(one), "content {i} looks like an earlier one");
        }
        assert_eq!(plain.fingerprint(&here), Content::text("hi").fingerprint(&here));
    }
}
