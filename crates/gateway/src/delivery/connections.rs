//! The sockets of each user on this node.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, PoisonError, RwLock};

use nexo_chat::ids::{ConnectionId, UserId};

use crate::socket::connection::Connection;

const SHARDS: usize = 32;

type Shard = RwLock<HashMap<UserId, Vec<Arc<Connection>>>>;

/// Sharded, so that deliveries to different users rarely contend for a lock.
pub(crate) struct Connections {
    shards: [Shard; SHARDS],
    hasher: RandomState,
}

impl Default for Connections {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| Shard::default()), hasher: RandomState::new() }
    }
}

impl Connections {
    fn shard(&self, user: &UserId) -> &Shard {
        let hash = self.hasher.hash_one(user) % SHARDS as u64;
        &self.shards[usize::try_from(hash).unwrap_or(0)]
    }

    /// From now on the connection receives events for its user.
    pub(crate) fn add(&self, connection: Arc<Connection>) {
        let mut shard =
            self.shard(&connection.user).write().unwrap_or_else(PoisonError::into_inner);
        shard.entry(connection.user.clone()).or_default().push(connection);
    }

    pub(crate) fn remove(&self, user: &UserId, id: ConnectionId) {
        let mut shard = self.shard(user).write().unwrap_or_else(PoisonError::into_inner);
        if let Some(connections) = shard.get_mut(user) {
            connections.retain(|connection| connection.id != id);
            if connections.is_empty() {
                shard.remove(user);
            }
        }
    }

    pub(crate) fn for_each_of(&self, user: &UserId, mut visit: impl FnMut(&Arc<Connection>)) {
        let shard = self.shard(user).read().unwrap_or_else(PoisonError::into_inner);
        for connection in shard.get(user).into_iter().flatten() {
            visit(connection);
        }
    }

    pub(crate) fn for_each(&self, mut visit: impl FnMut(&Arc<Connection>)) {
        for shard in &self.shards {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            for connection in shard.values().flatten() {
                visit(connection);
            }
        }
    }
}
