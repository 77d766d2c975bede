//! What things are called in Redis.

use std::fmt;

use nexo_chat::ids::{ConversationId, UserId};
use serde::{Deserialize, Serialize};

/// A node, from its start to its end: a restarted one has another name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub [u8; 16]);

impl NodeId {
    /// Reads what [`fmt::Display`] writes.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() == 32)?;
        u128::from_str_radix(text, 16).ok().map(|id| Self(id.to_be_bytes()))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whose nodes an event goes to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    /// Those where this user is.
    User(UserId),
    /// Those where somebody hears this group.
    Group(ConversationId),
}

/// Every key and channel. What belongs together in a cluster is in braces.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    prefix: String,
}

impl Names {
    /// Names that begin with `prefix`, if that is safe in keys and patterns.
    pub(crate) fn new(prefix: &str) -> Option<Self> {
        let is_safe = |b: u8| b.is_ascii_alphanumeric() || b".-_:".contains(&b);
        let fits = !prefix.is_empty() && prefix.bytes().all(is_safe);
        fits.then(|| Self { prefix: prefix.to_owned() })
    }

    /// Is there as long as the node is.
    pub(crate) fn node(&self, node: NodeId) -> String {
        format!("{}:node:{node}", self.prefix)
    }

    /// The channel only this node hears.
    pub(crate) fn channel(&self, node: NodeId) -> String {
        format!("{}:to:{node}", self.prefix)
    }

    /// All such channels, as a pattern.
    pub(crate) fn channels(&self) -> String {
        format!("{}:to:*", self.prefix)
    }

    /// The node whose channel this is.
    pub(crate) fn channel_of(&self, channel: &[u8]) -> Option<NodeId> {
        let rest = channel.strip_prefix(self.prefix.as_bytes())?;
        NodeId::parse(rest.strip_prefix(b":to:")?)
    }

    /// The hash of a user's places: connection to [`super::routes::Row`].
    pub(crate) fn places(&self, user: &UserId) -> String {
        format!("{}:at:{{{user}}}", self.prefix)
    }

    /// The set of nodes that hear a group.
    pub(crate) fn interest(&self, group: &ConversationId) -> String {
        format!("{}:in:{{{group}}}", self.prefix)
    }

    /// Where a topic's nodes are found.
    pub(crate) fn topic(&self, topic: &Topic) -> String {
        match topic {
            Topic::User(user) => self.places(user),
            Topic::Group(group) => self.interest(group),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        let (names, node) = (Names::new("a.b").unwrap(), NodeId([0xab; 16]));
        assert_eq!(names.channel_of(names.channel(node).as_bytes()), Some(node));
        assert_eq!(names.channel_of(b"a.b:to:1"), None);
        assert_eq!(names.places(&UserId::parse("bob").unwrap()), "a.b:at:{bob}");
        for bad in ["", "a*", "a{b}", "a b"] {
            assert!(Names::new(bad).is_none(), "{bad}");
        }
    }
}
