//! The data an app sees: messages, targets and changes.
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::group::Role;
use crate::reason::Reason;

/// The type of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum MessageType {
    /// Text. It is data, never interpreted as markup.
    #[default]
    Text,
    Image,
    Video,
    Audio,
    File,
    /// Anything the app defines.
    #[serde(other)]
    Custom,
}

/// Fields of the app.
pub type Extra = HashMap<String, String>;

/// The content of a message to send.
#[derive(Debug, Clone, Default)]
pub struct Content {
    pub kind: MessageType,
    /// The text, or what the type needs.
    pub body: String,
    /// Fields of the app.
    pub extra: Option<Extra>,
    /// User ids; in a group the owner and admins may also use `@all`.
    pub mentions: Option<Vec<String>>,
    /// The `server_msg_id` of the message this replies to.
    pub reply_to: Option<String>,
}

impl Content {
    /// A text message.
    pub fn text(body: impl Into<String>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    /// Sets the type.
    #[must_use]
    pub fn kind(self, kind: MessageType) -> Self {
        Self { kind, ..self }
    }

    /// Sets fields of the app, passed on unchanged.
    #[must_use]
    pub fn extra(self, extra: impl Into<Extra>) -> Self {
        Self { extra: Some(extra.into()), ..self }
    }

    /// Mentions these users.
    #[must_use]
    pub fn mentions<Id: Into<String>>(self, people: impl IntoIterator<Item = Id>) -> Self {
        Self { mentions: Some(people.into_iter().map(Into::into).collect()), ..self }
    }

    /// Replies to a message, by its `server_msg_id`.
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

/// Where a message goes: a user, a group, or a conversation by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A user.
    To(String),
    /// A group.
    Group(String),
    /// A conversation, by its id.
    Conversation(String),
}

impl Target {
    /// A user.
    pub fn to(user_id: impl Into<String>) -> Self {
        Self::To(user_id.into())
    }

    /// A group.
    pub fn group(group_id: impl Into<String>) -> Self {
        Self::Group(group_id.into())
    }

    /// The user or group, as seen by `me`.
    pub fn address(&self, me: &str) -> Address {
        match self {
            Self::To(to) => Address::To { to: to.clone() },
            Self::Group(group_id) => Address::Group { group_id: group_id.clone() },
            Self::Conversation(id) => Address::of(me, id),
        }
    }

    /// The id of the conversation. A private conversation id that does not name `me` is read as the
    /// private conversation with its first user: that is where a message would go.
    pub fn conversation_id(&self, me: &str) -> String {
        self.address(me).conversation_id(me)
    }
}

/// A conversation, by its id.
impl From<&str> for Target {
    fn from(conversation_id: &str) -> Self {
        Self::Conversation(conversation_id.to_owned())
    }
}

/// The user or group of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Address {
    /// A user.
    To { to: String },
    /// A group.
    Group {
        #[serde(rename = "groupId")]
        group_id: String,
    },
}

impl Address {
    /// The user or group of a conversation of `me`.
    pub fn of(me: &str, conversation_id: &str) -> Self {
        if let Some(group_id) = conversation_id.strip_prefix("sg_") {
            return Self::Group { group_id: group_id.to_owned() };
        }
        let mut ids = conversation_id.split('_').skip(1);
        let (a, b) = (ids.next().unwrap_or_default(), ids.next().unwrap_or_default());
        Self::To { to: if a == me { b } else { a }.to_owned() }
    }

    /// The id of the conversation of `me` with them.
    pub fn conversation_id(&self, me: &str) -> String {
        match self {
            Self::To { to } if me < to.as_str() => format!("si_{me}_{to}"),
            Self::To { to } => format!("si_{to}_{me}"),
            Self::Group { group_id } => format!("sg_{group_id}"),
        }
    }

    /// The id of the user or group.
    pub fn id(&self) -> &str {
        match self {
            Self::To { to } => to,
            Self::Group { group_id } => group_id,
        }
    }
}

/// The state of a message. In a group `Delivered` means that at least one member has it, `Read`
/// that every member who was in the group when it was sent has read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MessageState {
    /// Own: in the outbox.
    Sending,
    /// Own: accepted by the server, not on disk yet.
    Accepted,
    /// Own: on the server's disk.
    Saved,
    /// Own: delivered.
    Delivered,
    /// Own: read.
    Read,
    /// Own: refused by the server.
    Refused,
    /// Of another user.
    Received,
    /// Of another user, without a seq yet.
    Preview,
}

/// A message. It is immutable: a change makes a new `Message`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Message {
    pub conversation_id: String,
    /// The id its sender gave it.
    pub client_msg_id: String,
    /// Empty until the server has assigned it.
    pub server_msg_id: String,
    /// The sequence number in the conversation; 0 until it is saved.
    pub seq: u64,
    pub from: String,
    pub is_mine: bool,
    pub kind: MessageType,
    pub body: String,
    /// Fields of the sender's app.
    pub extra: Option<Extra>,
    pub mentions: Option<Vec<String>>,
    /// The `server_msg_id` of the message it replies to.
    pub reply_to: Option<String>,
    /// It mentions you or replies to a message of yours.
    pub is_important: bool,
    /// Recalled: the text is gone.
    pub is_recalled: bool,
    /// The server's disk lost it: only its place is known. It has no id, sender or text, and is
    /// reported by `Event::Update` instead of `Event::Message`.
    pub is_damaged: bool,
    /// When it was saved, else when it was sent; milliseconds since 1970.
    pub at: u64,
    pub state: MessageState,
    /// For own messages in a group: how many other members are known to have read it.
    pub read_by: Option<u64>,
    /// Why it was refused.
    pub reason: Option<Reason>,
    /// For a refused message: the last seq on this device when it was refused. It is shown after
    /// that message.
    pub after: Option<u64>,
}

impl Message {
    pub(crate) fn clear_recalled(&mut self) {
        self.is_recalled = true;
        self.body.clear();
        (self.extra, self.mentions) = (None, None);
    }
}

/// How you are notified of a conversation. A blocked one receives nothing on this device until it
/// is unblocked; `unread` of its summary still counts the waiting messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Receive {
    #[default]
    Normal,
    /// Received without a notification.
    Silent,
    /// Not received until it is unblocked.
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

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// A message was recalled.
    Recalled,
    /// Users joined the group.
    Joined,
    Left,
    Kicked,
    /// A member's role changed.
    Role,
    /// The group has a new owner.
    Owner,
    /// The profile of the group changed.
    Updated,
    /// A member was muted or unmuted.
    Muted,
    /// All members were muted or unmuted.
    AllMuted,
    Dissolved,
    Dismissed,
    /// A member's profile in the group changed.
    MemberUpdated,
    /// A kind of a newer server.
    #[serde(other)]
    Other,
}

/// A recall, or a change of the members or of the group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub conversation_id: String,
    /// Its sequence number among the changes of the conversation.
    pub change_seq: u64,
    pub kind: ChangeKind,
    pub by: String,
    /// Milliseconds since 1970.
    pub at: u64,
    /// The users concerned.
    pub user_ids: Vec<String>,
    /// Their new role.
    pub role: Option<Role>,
    /// Until when they are muted; 0 if they are not.
    pub muted_until: Option<i64>,
    /// For `AllMuted`: whether only the owner and admins may post.
    pub is_muted: Option<bool>,
    /// The fields of the group that changed.
    pub group: Option<Extra>,
    /// For a recall: the message. For a join: the first message that the new members see.
    pub seq: Option<u64>,
    /// For a recall: the message.
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
