//! Which sockets a user has on this node.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, PoisonError, RwLock};

use nexo_chat::ids::{ConnectionId, UserId};

use crate::connection::Connection;

const SHARDS: usize = 32;

type Shard = RwLock<HashMap<UserId, Vec<Arc<Connection>>>>;

/// Users and their sockets, in shards so that deliveries rarely meet.
pub struct Roster {
    shards: [Shard; SHARDS],
    hasher: RandomState,
}

impl Default for Roster {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| Shard::default()), hasher: RandomState::new() }
    }
}

impl Roster {
    fn shard(&self, user: &UserId) -> &Shard {
        let hash = self.hasher.hash_one(user) % SHARDS as u64;
        &self.shards[usize::try_from(hash).unwrap_or(0)]
    }

    /// Adds a socket: from now on it hears.
    pub fn add(&self, connection: Arc<Connection>) {
        let mut shard =
            self.shard(&connection.user).write().unwrap_or_else(PoisonError::into_inner);
        shard.entry(connection.user.clone()).or_default().push(connection);
    }

    /// Removes a socket.
    pub fn remove(&self, user: &UserId, id: ConnectionId) {
        let mut shard = self.shard(user).write().unwrap_or_else(PoisonError::into_inner);
        if let Some(connections) = shard.get_mut(user) {
            connections.retain(|connection| connection.id != id);
            if connections.is_empty() {
                shard.remove(user);
            }
        }
    }

    /// Does something for each of a user's sockets.
    pub fn each_of(&self, user: &UserId, mut act: impl FnMut(&Arc<Connection>)) {
        let shard = self.shard(user).read().unwrap_or_else(PoisonError::into_inner);
        for connection in shard.get(user).into_iter().flatten() {
            act(connection);
        }
    }

    /// Does something for every socket.
    pub fn each(&self, mut act: impl FnMut(&Arc<Connection>)) {
        for shard in &self.shards {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            for connection in shard.values().flatten() {
                act(connection);
            }
        }
    }
}
