//! The names of keys and channels in Redis.

use nexo_chat::ids::{ConversationId, UserId};
use nexo_redis_link::NodeId;

use super::route_keys::RouteKey;

/// Names every key and channel. The part in braces decides which node of a Redis Cluster has the
/// key.
#[derive(Clone, Debug)]
pub(crate) struct BusKeys {
    prefix: String,
}

impl BusKeys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    /// Exists as long as the node is alive.
    pub(crate) fn node(&self, node: NodeId) -> String {
        format!("{}:node:{node}", self.prefix)
    }

    /// The channel that only this node subscribes to.
    pub(crate) fn channel(&self, node: NodeId) -> String {
        format!("{}:to:{node}", self.prefix)
    }

    /// The pattern of all such channels.
    pub(crate) fn channel_pattern(&self) -> String {
        format!("{}:to:*", self.prefix)
    }

    /// The node that this channel belongs to.
    pub(crate) fn node_of_channel(&self, channel: &[u8]) -> Option<NodeId> {
        let rest = channel.strip_prefix(self.prefix.as_bytes())?;
        NodeId::parse(rest.strip_prefix(b":to:")?)
    }

    /// A hash of the user's registrations: connection to
    /// [`super::registration_rows::RegistrationRow`].
    pub(crate) fn registrations(&self, user: &UserId) -> String {
        format!("{}:at:{{{user}}}", self.prefix)
    }

    /// The set of nodes that are subscribed to a group.
    pub(crate) fn subscribed_nodes(&self, group: &ConversationId) -> String {
        format!("{}:in:{{{group}}}", self.prefix)
    }

    /// The key that has the nodes of a route.
    pub(crate) fn route(&self, route: &RouteKey) -> String {
        match route {
            RouteKey::User(user) => self.registrations(user),
            RouteKey::Group(group) => self.subscribed_nodes(group),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        let (keys, node) = (BusKeys::new("a.b"), NodeId([0xab; 16]));
        assert_eq!(keys.node_of_channel(keys.channel(node).as_bytes()), Some(node));
        assert_eq!(keys.node_of_channel(b"a.b:to:1"), None);
        assert_eq!(keys.registrations(&UserId::parse("bob").unwrap()), "a.b:at:{bob}");
    }
}
