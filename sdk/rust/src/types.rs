//! What an app sees: messages, conversations, changes, events.
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::reason::Reason;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum MessageType {
    /// Text, which is data: it is never read as markup.
    #[default]
    Text,
    /// A picture.
    Image,
    /// A film.
    Video,
    /// A sound.
    Audio,
    /// A file.
    File,
    /// What the app makes of it.
    #[serde(other)]
    Custom,
}

/// Strings by name.
pub type Extra = HashMap<String, String>;

/// What one says: a text, or more with the methods.
#[derive(Debug, Clone, Default)]
pub struct Content {
    /// What it is.
    pub kind: MessageType,
    /// The text, or what the type needs.
    pub body: String,
    /// Whatever the app wants to add.
    pub extra: Option<Extra>,
    /// User ids, or `@all` by owner and admins of a group.
    pub mentions: Option<Vec<String>>,
    /// The `server_msg_id` of what is answered.
    pub reply_to: Option<String>,
}

impl Content {
    /// A text.
    pub fn text(body: impl Into<String>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    /// Something else than a text.
    #[must_use]
    pub fn kind(self, kind: MessageType) -> Self {
        Self { kind, ..self }
    }

    /// Your app's own, carried along.
    #[must_use]
    pub fn extra(self, extra: impl Into<Extra>) -> Self {
        Self { extra: Some(extra.into()), ..self }
    }

    /// Speaks to these people in particular.
    #[must_use]
    pub fn mentions<Id: Into<String>>(self, people: impl IntoIterator<Item = Id>) -> Self {
        Self { mentions: Some(people.into_iter().map(Into::into).collect()), ..self }
    }

    /// Answers a message, by its `server_msg_id`.
    #[must_use]
    pub fn reply_to(self, server_msg_id: impl Into<String>) -> Self {
        Self { reply_to: Some(server_msg_id.into()), ..self }
    }
}

impl From<&str> for Content {
    fn from(body: &str) -> Self {
        Self::text(body)
    }
}

impl From<String> for Content {
    fn from(body: String) -> Self {
        Self::text(body)
    }
}

/// Whom it is for: a person, a group, or a conversation by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A person.
    To(String),
    /// A group.
    Group(String),
    /// A conversation.
    Conversation(String),
}

impl Target {
    /// A person.
    pub fn to(user_id: impl Into<String>) -> Self {
        Self::To(user_id.into())
    }

    /// A group.
    pub fn group(group_id: impl Into<String>) -> Self {
        Self::Group(group_id.into())
    }

    /// Whom it is for, in my name.
    pub fn address(&self, me: &str) -> Address {
        match self {
            Self::To(to) => Address::To { to: to.clone() },
            Self::Group(group_id) => Address::Group { group_id: group_id.clone() },
            Self::Conversation(id) => Address::of(me, id),
        }
    }

    /// The id of the conversation, which one may build. It is always one of mine: an id that names the
    /// conversation of two others stands for mine with one of them.
    pub fn conversation_id(&self, me: &str) -> String {
        self.address(me).conversation_id(me)
    }
}

/// A conversation by its id.
impl From<&str> for Target {
    fn from(conversation_id: &str) -> Self {
        Self::Conversation(conversation_id.to_owned())
    }
}

/// Whom a conversation is with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Address {
    /// A person.
    To {
        /// Their id.
        to: String,
    },
    /// A group.
    Group {
        /// Its id.
        #[serde(rename = "groupId")]
        group_id: String,
    },
}

impl Address {
    /// Whom a conversation of mine is with.
    pub fn of(me: &str, conversation_id: &str) -> Self {
        if let Some(group_id) = conversation_id.strip_prefix("sg_") {
            return Self::Group { group_id: group_id.to_owned() };
        }
        let mut ids = conversation_id.split('_').skip(1);
        let (a, b) = (ids.next().unwrap_or_default(), ids.next().unwrap_or_default());
        Self::To { to: if a == me { b } else { a }.to_owned() }
    }

    /// The id of my conversation with them.
    pub fn conversation_id(&self, me: &str) -> String {
        match self {
            Self::To { to } if me < to.as_str() => format!("si_{me}_{to}"),
            Self::To { to } => format!("si_{to}_{me}"),
            Self::Group { group_id } => format!("sg_{group_id}"),
        }
    }

    /// The id of the person or group.
    pub fn id(&self) -> &str {
        match self {
            Self::To { to } => to,
            Self::Group { group_id } => group_id,
        }
    }
}

/// How far a message is. In a group `Delivered` means that somebody has it, `Read` that everybody has read
/// it who was there for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MessageState {
    /// Ours, on its way.
    Sending,
    /// Ours, taken by the server but not on disk yet.
    Accepted,
    /// Ours, on the server's disk.
    Saved,
    /// Ours, and it arrived.
    Delivered,
    /// Ours, and it was read.
    Read,
    /// Ours, and the server does not want it.
    Refused,
    /// Somebody else's.
    Received,
    /// Somebody else's that has no place in the order yet.
    Preview,
}

/// A message. Never changed in place: news about it is a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Where it was said.
    pub conversation_id: String,
    /// The name its sender gave it.
    pub client_msg_id: String,
    /// Empty until the server has named it.
    pub server_msg_id: String,
    /// Its place in the conversation; 0 until it is saved.
    pub seq: u64,
    /// Who said it.
    pub from: String,
    /// Whether that is us.
    pub mine: bool,
    /// What it is.
    pub kind: MessageType,
    /// The text.
    pub body: String,
    /// Whatever the sender's app added.
    pub extra: Option<Extra>,
    /// Whom it speaks to.
    pub mentions: Option<Vec<String>>,
    /// What it answers.
    pub reply_to: Option<String>,
    /// It speaks to you in particular.
    pub important: bool,
    /// Taken back: there is no text any more.
    pub revoked: bool,
    /// When it was saved, else when it was written; milliseconds since 1970.
    pub at: u64,
    /// How far it is.
    pub state: MessageState,
    /// Of an own message in a group: how many others have read it, as far as is known.
    pub read_by: Option<u64>,
    /// Why it was refused.
    pub reason: Option<Reason>,
    /// Of a refused one: the place it stays behind, the last one that was here when it was refused.
    pub after: Option<u64>,
}

impl Message {
    pub(crate) fn take_back(&mut self) {
        self.revoked = true;
        self.body.clear();
        (self.extra, self.mentions) = (None, None);
    }
}

/// What you hear of a conversation. Of a blocked one nothing new comes to this device; it comes when that
/// ends. `unread` of its line still counts what waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Receive {
    /// Everything.
    #[default]
    Normal,
    /// Everything, without a sound.
    Silent,
    /// Nothing, until it is unblocked.
    Blocked,
}

impl Receive {
    pub(crate) fn of(option: u8) -> Self {
        match option {
            1 => Self::Silent,
            2 => Self::Blocked,
            _ => Self::Normal,
        }
    }
}

/// Something that happened to what is stored: a recall, or people or the group changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub conversation_id: String,
    /// Its place among the changes.
    pub change_seq: u64,
    /// `recalled`, `joined`, `left`, `kicked`, `role`, `owner`, `updated`, `muted`, `all_muted`,
    /// `dissolved`, `dismissed` or `member_updated`.
    pub kind: String,
    /// Who did it.
    pub by: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Whom it is about.
    pub user_ids: Vec<String>,
    /// Their role now.
    pub role: Option<String>,
    /// Until when they may not speak; 0: they may.
    pub muted_until: Option<i64>,
    /// Whether only owner and admins may speak.
    pub on: Option<bool>,
    /// The fields of the group that changed.
    pub group: Option<Extra>,
    /// Of a recall: which message. Of a join: the first one they see.
    pub seq: Option<u64>,
    /// Of a recall: which message.
    pub server_msg_id: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_has_the_same_id_on_both_sides() {
        assert_eq!(Target::to("bob").conversation_id("alice"), "si_alice_bob");
        assert_eq!(Target::to("alice").conversation_id("bob"), "si_alice_bob");
        assert_eq!(Address::of("bob", "si_alice_bob").id(), "alice");
        assert_eq!(Address::of("bob", "sg_7"), Address::Group { group_id: "7".to_owned() });
    }

    #[test]
    fn a_conversation_is_one_of_mine_however_it_is_named() {
        for id in ["si_alice_bob", "si_bob_carol", "si_bob_bob", "sg_7"] {
            assert_eq!(Target::from(id).conversation_id("bob"), id);
        }
        assert_eq!(Target::from("si_alice_bob").conversation_id("carol"), "si_alice_carol");
        assert_eq!(Target::from("si_bob_alice").conversation_id("bob"), "si_alice_bob");
    }
}
