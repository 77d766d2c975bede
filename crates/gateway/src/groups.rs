//! Which sockets of this node hear a group. Kept as people connect, come and go, so that a message
//! walks those who are online and never the member list.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use nexo_chat::ids::{ConnectionId, ConversationId, Seq};
use nexo_chat::model::{Receive, Standing, Window};
use nexo_chat::{Chat, Error, sync};

use crate::connection::Connection;

const SHARDS: usize = 32;

type Shard = RwLock<HashMap<ConversationId, Ears>>;

/// The sockets that hear one group.
pub type Ears = HashMap<ConnectionId, Ear>;

/// A socket that hears a group, from where its owner may see.
pub struct Ear {
    /// The socket.
    pub connection: Arc<Connection>,
    /// The first message they see. A membership may be known before the messages from before it
    /// are told.
    pub min: Seq,
    /// The first change they see.
    pub change_min: Seq,
}

/// Groups and the sockets that hear them.
pub struct Groups {
    shards: [Shard; SHARDS],
    hasher: RandomState,
    /// Groups that ended since the start: whoever was reading their places meanwhile looks again.
    endings: AtomicU64,
}

impl Default for Groups {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Shard::default()),
            hasher: RandomState::new(),
            endings: AtomicU64::new(0),
        }
    }
}

impl Groups {
    fn shard(&self, conversation: &ConversationId) -> &Shard {
        let hash = self.hasher.hash_one(conversation) % SHARDS as u64;
        &self.shards[usize::try_from(hash).unwrap_or(0)]
    }

    /// Lets a socket hear a group. Said again, the newer word counts.
    pub fn add(&self, conversation: &ConversationId, connection: &Arc<Connection>, window: Window) {
        self.add_if(conversation, connection, window, || true);
    }

    /// The same, if something is still so in the moment it begins to hear.
    fn add_if(
        &self,
        conversation: &ConversationId,
        connection: &Arc<Connection>,
        window: Window,
        is_so: impl FnOnce() -> bool,
    ) {
        let Window { min, change_min, .. } = window;
        let ear = Ear { connection: Arc::clone(connection), min, change_min };
        let mut shard = self.shard(conversation).write().unwrap_or_else(PoisonError::into_inner);
        if !is_so() {
            return;
        }
        let ears = shard.entry(conversation.clone()).or_default();
        if ears.insert(connection.id, ear).is_none() {
            connection.hears(conversation.clone());
        }
    }

    /// A socket is gone: it hears nothing more.
    pub fn forget(&self, connection: &Connection) {
        for conversation in connection.take_heard() {
            self.drop_ear(&conversation, connection);
        }
    }

    /// A socket's owner is not in the group any more.
    pub fn remove(&self, conversation: &ConversationId, connection: &Connection) {
        connection.hears_no_more(conversation);
        self.drop_ear(conversation, connection);
    }

    /// The group ended.
    pub fn close(&self, conversation: &ConversationId) {
        self.endings.fetch_add(1, Ordering::SeqCst);
        let ears = {
            let shard = self.shard(conversation).write();
            shard.unwrap_or_else(PoisonError::into_inner).remove(conversation)
        };
        for ear in ears.into_iter().flat_map(HashMap::into_values) {
            ear.connection.hears_no_more(conversation);
        }
    }

    fn drop_ear(&self, conversation: &ConversationId, connection: &Connection) {
        let mut shard = self.shard(conversation).write().unwrap_or_else(PoisonError::into_inner);
        if let Some(ears) = shard.get_mut(conversation) {
            ears.remove(&connection.id);
            if ears.is_empty() {
                shard.remove(conversation);
            }
        }
    }

    /// Looks at everybody here who hears a group.
    pub fn with(&self, conversation: &ConversationId, look: impl FnOnce(&Ears)) {
        let shard = self.shard(conversation).read().unwrap_or_else(PoisonError::into_inner);
        if let Some(ears) = shard.get(conversation) {
            look(ears);
        }
    }

    /// Lets a socket hear the groups its owner is in, and nothing of what they blocked. It must be
    /// in the roster already: whatever changes while this reads is heard there, and read again.
    pub async fn attend(&self, chat: &Chat, connection: &Arc<Connection>) -> Result<(), Error> {
        loop {
            let (unsettled, endings) = (connection.unsettled(), self.endings());
            let mut blocked = HashSet::new();
            for standing in sync::standings(chat, &connection.user).await? {
                // Whoever was put out meanwhile hears nothing more, not even until the next look.
                self.place(&standing, connection, || unsettled == connection.unsettled());
                if standing.settings.receive == Receive::Blocked {
                    blocked.insert(standing.conversation);
                }
            }
            connection.block_only(blocked);
            if endings != self.endings() {
                self.leave_ended(chat, connection).await?;
            }
            if unsettled == connection.unsettled() {
                return Ok(());
            }
            self.forget(connection);
        }
    }

    fn endings(&self) -> u64 {
        self.endings.load(Ordering::SeqCst)
    }

    /// Groups ended while their members' places were read: whichever of them this socket was put
    /// into, the store knows of its end by now.
    async fn leave_ended(&self, chat: &Chat, connection: &Connection) -> Result<(), Error> {
        for conversation in connection.heard_groups() {
            let Some(id) = conversation.group() else { continue };
            if chat.store.group(&id).await?.is_none_or(|group| group.ended.is_some()) {
                self.remove(&conversation, connection);
            }
        }
        Ok(())
    }

    fn place(
        &self,
        standing: &Standing,
        connection: &Arc<Connection>,
        is_so: impl FnOnce() -> bool,
    ) {
        if standing.is_active() && standing.conversation.group().is_some() {
            self.add_if(&standing.conversation, connection, standing.window, is_so);
        }
    }
}

/// How many people these are, told exactly only from `enough` sockets on: fewer sockets are fewer
/// people.
pub fn people(ears: &Ears, enough: usize) -> usize {
    if ears.len() < enough {
        return ears.len();
    }
    ears.values().map(|ear| &ear.connection.user).collect::<HashSet<_>>().len()
}
