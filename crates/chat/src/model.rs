//! The things the domain speaks of.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use crate::change::{Change, ChangeKind, Kept};
use crate::ids::{
    ClientMsgId, ConnectionId, ConversationId, LoginId, MessageId, Millis, Platform, Seq, UserId,
    first_half,
};
pub use crate::standing::{
    CursorKind, Cursors, Edge, Hidden, Hiding, Receive, Settings, SettingsChange, Standing, Window,
};

/// A person's account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Who.
    pub id: UserId,
    /// What others see of them.
    pub profile: Profile,
    /// When they registered.
    pub created_at: Millis,
    /// When their profile last changed.
    pub updated_at: Millis,
    /// The password in its kept form.
    pub password_hash: String,
    /// Session version: tokens of an older one are dead. A password change raises it.
    pub session_version: u64,
}

/// What others see of a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The name shown.
    pub nickname: String,
    /// Where the picture is, as the app knows it.
    pub avatar: String,
    /// The app's own data, opaque to the server.
    pub extra: String,
}

/// A change to a profile; `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileChange {
    /// New nickname.
    pub nickname: Option<String>,
    /// New avatar.
    pub avatar: Option<String>,
    /// New app data.
    pub extra: Option<String>,
}

impl User {
    /// Changes the profile.
    pub fn update(&mut self, change: ProfileChange, at: Millis) {
        self.profile.apply(change);
        self.updated_at = self.updated_at.max(at);
    }
}

impl Profile {
    /// Takes over what a change names.
    pub fn apply(&mut self, change: ProfileChange) {
        self.nickname = change.nickname.unwrap_or(std::mem::take(&mut self.nickname));
        self.avatar = change.avatar.unwrap_or(std::mem::take(&mut self.avatar));
        self.extra = change.extra.unwrap_or(std::mem::take(&mut self.extra));
    }
}

/// One sign-in on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Which sign-in.
    pub id: LoginId,
    /// Whose.
    pub user: UserId,
    /// On what kind of device.
    pub platform: Platform,
    /// When it began.
    pub created_at: Millis,
    /// When its refresh token dies of age.
    pub expires_at: Millis,
    /// BLAKE3 of the refresh token that is valid now. The token itself is kept nowhere.
    pub refresh_hash: [u8; 32],
    /// How often it was replaced. A replaced one is remembered: whoever shows it again holds a
    /// copy, which ends the sign-in.
    pub generation: u64,
    /// When it was last replaced.
    pub rotated_at: Millis,
    /// Set once it ended.
    pub ended: bool,
}

/// A one-time code that sets somebody's password. The code itself is kept nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetCode {
    /// A hash of whose it is and of the code.
    pub hash: [u8; 32],
    /// From when on it is worth nothing.
    pub expires_at: Millis,
}

impl ResetCode {
    /// Whether a code with this hash can be used now. Compares without telling by its time how much
    /// fits.
    pub fn is(&self, hash: [u8; 32], now: Millis) -> bool {
        blake3::Hash::from(self.hash) == blake3::Hash::from(hash) && now < self.expires_at
    }
}

/// Who is asking, as proven by a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The token's user: the sender of whatever they send, whatever a frame claims.
    pub user: UserId,
    /// Their sign-in.
    pub login: LoginId,
    /// Their device.
    pub platform: Platform,
    /// When that sign-in began.
    pub signed_in_at: Millis,
    /// When the token dies.
    pub expires_at: Millis,
    /// The socket they ask through, if it is one.
    pub connection: Option<ConnectionId>,
}

/// What kind of content a message has. The server does not look inside; the number is the client's
/// to interpret, and unknown numbers are refused before they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContentKind(pub i32);

impl ContentKind {
    /// UTF-8 text.
    pub const TEXT: Self = Self(1);
    /// A picture.
    pub const IMAGE: Self = Self(2);
    /// A film.
    pub const VIDEO: Self = Self(3);
    /// A recording.
    pub const AUDIO: Self = Self(4);
    /// A file.
    pub const FILE: Self = Self(5);
    /// The app's own.
    pub const CUSTOM: Self = Self(100);

    /// Whether the number is one of the above.
    pub fn is_known(self) -> bool {
        matches!(self.0, 1..=5 | 100)
    }
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// How to read the body.
    pub kind: ContentKind,
    /// Opaque bytes; UTF-8 where the kind is text.
    pub body: Bytes,
    /// The app's own options, carried along.
    pub extra: BTreeMap<String, String>,
    /// The people it mentions.
    pub mentions: Vec<UserId>,
    /// Whether it mentions everybody.
    pub mentions_all: bool,
    /// The message it answers.
    pub reply_to: Option<ReplyTo>,
}

/// The message that another one answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyTo {
    /// Which.
    pub message: MessageId,
    /// Who had said it.
    pub sender: UserId,
}

impl Content {
    /// Plain text.
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

    /// Whether it speaks to this person in particular: names them or everybody, or answers them.
    pub fn concerns(&self, user: &UserId) -> bool {
        self.mentions_all
            || self.mentions.contains(user)
            || self.reply_to.as_ref().is_some_and(|reply| reply.sender == *user)
    }

    /// Stands for this content sent to that conversation: equal for a retry, different for
    /// anything else under the same client id.
    pub fn fingerprint(&self, conversation: &ConversationId) -> Fingerprint {
        let mut hasher = blake3::Hasher::new_derive_key("nexo content fingerprint v1");
        let mut part = |bytes: &[u8]| {
            // The length goes first, so that parts cannot run together.
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
            // Else two mentions would look like one entry.
            part(&(self.extra.len() as u64).to_le_bytes());
        }
        for (key, value) in &self.extra {
            part(key.as_bytes());
            part(value.as_bytes());
        }
        Fingerprint(first_half(&hasher.finalize()))
    }
}

/// 128 bits that stand for a content in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 16]);

/// A message on its way into the store: everything but its seq.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// Where to.
    pub conversation: ConversationId,
    /// Who says it.
    pub sender: UserId,
    /// The sender's name for it.
    pub client_id: ClientMsgId,
    /// What it says, as it was sent: a retry is known by this.
    pub content: Content,
    /// What is stored instead, where words were replaced.
    pub cleaned: Option<Content>,
    /// When the server got it.
    pub sent_at: Millis,
    /// The socket it came through, which gets an ACK instead of a push.
    pub origin: Option<ConnectionId>,
    /// Whether sending it reads everything before it.
    pub marks_read: bool,
}

impl Draft {
    /// The message it becomes at a place.
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

/// A stored message. Never changes once readable, except that it may be recalled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its name for everybody.
    pub id: MessageId,
    /// Where it is.
    pub conversation: ConversationId,
    /// Its place there.
    pub seq: Seq,
    /// Who said it.
    pub sender: UserId,
    /// The sender's name for it.
    pub client_id: ClientMsgId,
    /// When the server got it.
    pub sent_at: Millis,
    /// What it says; nothing once it is recalled.
    pub content: Content,
    /// Set once it is recalled.
    pub recalled: Option<Recall>,
}

/// Who took a message back, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recall {
    /// Who.
    pub by: UserId,
    /// When.
    pub at: Millis,
}

impl Message {
    /// The message without what it said.
    #[must_use]
    pub fn recalled(&self, recall: Recall) -> Self {
        let content = Content { kind: self.content.kind, ..Content::text("") };
        Self { content, recalled: Some(recall), ..self.clone() }
    }

    /// About how many bytes it costs to hold or to send.
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
