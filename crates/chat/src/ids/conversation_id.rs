//! Ids of groups and conversations.

use std::fmt;
use std::sync::Arc;

use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Serialize};

use super::UserId;
use crate::reason::Reason;

/// A group, in the alphabet of user ids.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupId(Arc<str>);

impl GroupId {
    /// Validates an id from a client. A malformed id is reported as an unknown group.
    pub fn parse(text: &str) -> Result<Self, Reason> {
        UserId::parse(text).map(|UserId(id)| Self(id)).map_err(|_| Reason::GroupNotFound)
    }

    /// Makes an id from random bytes.
    pub fn random(bytes: [u8; 16]) -> Self {
        Self(BASE32_NOPAD.encode(&bytes).to_ascii_lowercase().into())
    }

    /// The group's conversation.
    pub fn conversation(&self) -> ConversationId {
        ConversationId(format!("sg_{self}").into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A conversation: `si_{min}_{max}` for two users, `sg_{group}` for a group. Immutable.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConversationId(Arc<str>);

/// What a conversation id encodes.
#[derive(Debug, PartialEq, Eq)]
pub enum ConversationKind<'a> {
    /// Two users, in the order of their ids.
    Private(&'a str, &'a str),
    Group(&'a str),
}

impl ConversationId {
    /// The private conversation of two users, the same for either order of arguments.
    pub fn private(a: &UserId, b: &UserId) -> Self {
        let (low, high) = if a <= b { (a, b) } else { (b, a) };
        Self(format!("si_{low}_{high}").into())
    }

    /// Validates an id from a client.
    pub fn parse(text: &str) -> Result<Self, Reason> {
        let id = Self(text.into());
        let is_valid = match id.kind() {
            Some(ConversationKind::Private(a, b)) => {
                a < b && UserId::parse(a).is_ok() && UserId::parse(b).is_ok()
            }
            Some(ConversationKind::Group(group)) => UserId::parse(group).is_ok(),
            None => false,
        };
        if is_valid { Ok(id) } else { Err(Reason::ConversationNotFound) }
    }

    /// Wraps an id read from a store without validation: it was validated when it was created.
    pub fn stored(text: &str) -> Self {
        Self(text.into())
    }

    fn kind(&self) -> Option<ConversationKind<'_>> {
        if let Some(pair) = self.0.strip_prefix("si_") {
            let (a, b) = pair.split_once('_')?;
            return Some(ConversationKind::Private(a, b));
        }
        self.0.strip_prefix("sg_").map(ConversationKind::Group)
    }

    /// Both users of a private conversation; `None` for a group.
    pub fn pair(&self) -> Option<(UserId, UserId)> {
        match self.kind() {
            Some(ConversationKind::Private(a, b)) => Some((UserId(a.into()), UserId(b.into()))),
            _ => None,
        }
    }

    /// The group; `None` for a private conversation.
    pub fn group(&self) -> Option<GroupId> {
        match self.kind() {
            Some(ConversationKind::Group(group)) => Some(GroupId(group.into())),
            _ => None,
        }
    }

    /// The other user of a private conversation, if `user` is one of the two.
    pub fn peer_of(&self, user: &UserId) -> Option<UserId> {
        match self.kind() {
            Some(ConversationKind::Private(a, b)) if a == user.as_str() => Some(UserId(b.into())),
            Some(ConversationKind::Private(a, b)) if b == user.as_str() => Some(UserId(a.into())),
            _ => None,
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
