//! Which sockets of this node hear a group. Kept as people connect, come and go, so that a message
//! walks those who are online and never the member list.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use nexo_chat::bus::Bus;
use nexo_chat::command::Event;
use nexo_chat::ids::{ConnectionId, ConversationId, Millis, Seq};
use nexo_chat::model::{Change, Receive, Standing, Window};
use nexo_chat::rules::GroupRules;
use nexo_chat::{Chat, Error, sync};

use crate::connection::Connection;
use crate::online::Online;

const SHARDS: usize = 32;
/// Between two looks at what others are changing, longer each time.
const PAUSE: Duration = Duration::from_millis(2);

type Shard = RwLock<HashMap<ConversationId, Heard>>;

/// The sockets that hear one group.
pub type Ears = HashMap<ConnectionId, Ear>;

/// A group that is heard here.
struct Heard {
    ears: Ears,
    /// How many sockets there were when other nodes were last told.
    told: usize,
    /// The ears are right up to this change. What comes after a later one waits until that is known
    /// too, or it would be told to somebody who left.
    known: Seq,
}

/// A socket that hears a group, from where its owner may see.
pub struct Ear {
    /// The socket.
    pub connection: Arc<Connection>,
    /// The first message they see. A membership may be known before the messages from before it
    /// are told.
    pub min: Seq,
    /// The first change they see.
    pub change_min: Seq,
    /// The newest change when it was known that they hear it.
    since: Seq,
}

/// Groups and the sockets that hear them.
pub struct Groups {
    bus: Arc<dyn Bus>,
    shards: [Shard; SHARDS],
    /// Held while a change is applied, so that they are applied one after the other.
    turns: [Mutex<()>; SHARDS],
    hasher: RandomState,
    /// Who hears them on other nodes, where that matters.
    online: Option<Online>,
    /// Groups that ended since the start: whoever was reading their places meanwhile looks again.
    endings: AtomicU64,
}

/// Whether what is known of a group is enough for something that happened in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knows {
    /// It is the next, or goes with what is known.
    Enough,
    /// It was known before.
    Already,
    /// Something in between is not known.
    TooLittle,
    /// Nobody here hears the group.
    Nothing,
}

impl Groups {
    /// No groups yet; the bus hears which of them are heard here.
    pub fn new(bus: Arc<dyn Bus>, rules: &GroupRules, instance: &Arc<str>) -> Self {
        Self {
            online: Online::new(rules, instance).filter(|_| bus.is_shared()),
            bus,
            turns: std::array::from_fn(|_| Mutex::default()),
            shards: std::array::from_fn(|_| Shard::default()),
            hasher: RandomState::new(),
            endings: AtomicU64::new(0),
        }
    }
}

impl Groups {
    fn place_of(&self, conversation: &ConversationId) -> usize {
        let hash = self.hasher.hash_one(conversation) % SHARDS as u64;
        usize::try_from(hash).unwrap_or(0)
    }

    fn shard(&self, conversation: &ConversationId) -> &Shard {
        &self.shards[self.place_of(conversation)]
    }

    /// Lets a socket hear a group that it came into by a change. Said again, the newer word counts.
    pub fn add(
        &self,
        conversation: &ConversationId,
        connection: &Arc<Connection>,
        window: Window,
        known: Seq,
    ) {
        self.add_if(conversation, connection, window, known, || true);
    }

    /// The same, if something is still so in the moment it begins to hear. Tells whether more is
    /// known here than whoever asks knew.
    fn add_if(
        &self,
        conversation: &ConversationId,
        connection: &Arc<Connection>,
        window: Window,
        known: Seq,
        is_so: impl FnOnce() -> bool,
    ) -> bool {
        let Window { min, change_min, .. } = window;
        let ear = Ear { connection: Arc::clone(connection), min, change_min, since: known };
        let word = {
            let mut shard =
                self.shard(conversation).write().unwrap_or_else(PoisonError::into_inner);
            if !is_so() {
                return true;
            }
            let entry = shard.entry(conversation.clone());
            let heard = entry.or_insert_with(|| Heard { ears: Ears::new(), told: 0, known });
            if known < heard.known {
                return false;
            }
            if heard.ears.insert(connection.id, ear).is_none() {
                connection.hears(conversation.clone());
            }
            self.recount(conversation, heard)
        };
        self.tell(word);
        true
    }

    /// Counts who hears a group here, if so many came or went that other nodes should know.
    fn recount(&self, conversation: &ConversationId, heard: &mut Heard) -> Option<Event> {
        let online = self.online.as_ref()?;
        if heard.ears.len().abs_diff(heard.told) < online.step {
            return None;
        }
        heard.told = heard.ears.len();
        Some(online.own(conversation, heard.ears.values().map(|ear| &ear.connection.user)))
    }

    fn tell(&self, word: Option<Event>) {
        if let Some(word) = word {
            self.bus.publish(word);
        }
    }

    /// How many people hear a group on all nodes, told exactly only from `enough` on. Of other nodes
    /// it may be a moment old.
    pub(crate) fn people(&self, group: &ConversationId, ears: &Ears, enough: usize) -> usize {
        let everywhere = self.online.as_ref().map_or(0, |online| online.total(group));
        people(ears, enough).max(everywhere)
    }

    /// Another node told who hears a group there.
    pub(crate) fn heard_online(
        &self,
        group: &ConversationId,
        people: (&str, &[u8]),
        asks: bool,
        now: Millis,
    ) {
        if let Some(online) = &self.online
            && self.known(group).is_some()
        {
            self.tell(online.heard(group, people, asks, now));
        }
    }

    /// Tells other nodes once more who hears groups here.
    pub(crate) fn tell_online(&self, now: Millis) {
        if let Some(online) = &self.online {
            self.bus.publish_all(online.again(now));
        }
    }

    /// Does something about a change in its turn, told whether it is the next one; a change that was
    /// done is known from then on.
    pub fn in_turn(&self, change: &Change, act: impl FnOnce(Knows)) {
        let conversation = &change.conversation;
        let turn = &self.turns[self.place_of(conversation)];
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let knows = {
            let shard = self.shard(conversation).read().unwrap_or_else(PoisonError::into_inner);
            match shard.get(conversation).map(|heard| heard.known) {
                None => Knows::Nothing,
                Some(known) if change.seq <= known => Knows::Already,
                Some(known) if change.seq == known.next() => Knows::Enough,
                Some(_) => Knows::TooLittle,
            }
        };
        act(knows);
        if knows == Knows::Enough {
            let mut shard =
                self.shard(conversation).write().unwrap_or_else(PoisonError::into_inner);
            if let Some(heard) = shard.get_mut(conversation) {
                heard.known = heard.known.max(change.seq);
            }
        }
    }

    /// Up to which change it is known who hears a group here.
    pub fn known(&self, conversation: &ConversationId) -> Option<Seq> {
        let shard = self.shard(conversation).read().unwrap_or_else(PoisonError::into_inner);
        shard.get(conversation).map(|heard| heard.known)
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

    /// A socket's owner was not in the group any more after a change; they may have come back since.
    fn remove_before(&self, conversation: &ConversationId, connection: &Connection, change: Seq) {
        let is_older = {
            let shard = self.shard(conversation).read().unwrap_or_else(PoisonError::into_inner);
            let ear = shard.get(conversation).and_then(|heard| heard.ears.get(&connection.id));
            ear.is_some_and(|ear| ear.since <= change)
        };
        if is_older {
            self.remove(conversation, connection);
        }
    }

    /// The groups that are heard here.
    pub(crate) fn heard(&self) -> Vec<ConversationId> {
        let shards = self.shards.iter().map(|it| it.read().unwrap_or_else(PoisonError::into_inner));
        shards.flat_map(|shard| shard.keys().cloned().collect::<Vec<_>>()).collect()
    }

    /// The sockets that hear a group.
    pub(crate) fn who_hears(&self, conversation: &ConversationId) -> Vec<Arc<Connection>> {
        let mut sockets = Vec::new();
        self.with(conversation, Seq::ZERO, |ears| {
            sockets.extend(ears.values().map(|ear| Arc::clone(&ear.connection)));
        });
        sockets
    }

    /// The group ended.
    pub fn close(&self, conversation: &ConversationId) {
        self.endings.fetch_add(1, Ordering::SeqCst);
        let heard = {
            let shard = self.shard(conversation).write();
            shard.unwrap_or_else(PoisonError::into_inner).remove(conversation)
        };
        if let Some(heard) = heard {
            for ear in heard.ears.into_values() {
                ear.connection.hears_no_more(conversation);
            }
            self.bus.tune_out(conversation);
            self.tell(self.online.as_ref().and_then(|online| online.forget(conversation)));
        }
    }

    fn drop_ear(&self, conversation: &ConversationId, connection: &Connection) {
        let word = {
            let mut shard =
                self.shard(conversation).write().unwrap_or_else(PoisonError::into_inner);
            let Some(heard) = shard.get_mut(conversation) else { return };
            heard.ears.remove(&connection.id);
            if heard.ears.is_empty() {
                shard.remove(conversation);
                self.bus.tune_out(conversation);
                self.online.as_ref().and_then(|online| online.forget(conversation))
            } else {
                self.recount(conversation, heard)
            }
        };
        self.tell(word);
    }

    /// Looks at everybody here who hears a group, if it is known who they are after a change. Tells
    /// whether it is.
    pub fn with(
        &self,
        conversation: &ConversationId,
        after: Seq,
        look: impl FnOnce(&Ears),
    ) -> bool {
        let shard = self.shard(conversation).read().unwrap_or_else(PoisonError::into_inner);
        let Some(heard) = shard.get(conversation) else { return true };
        if heard.known < after {
            return false;
        }
        look(&heard.ears);
        true
    }

    /// Lets a socket hear the groups its owner is in, and nothing of what they blocked. It must be
    /// in the roster already: whatever changes while this reads is heard there, and read again.
    pub async fn attend(&self, chat: &Chat, connection: &Arc<Connection>) -> Result<(), Error> {
        let mut was_deaf_before = false;
        for look in 0.. {
            tokio::time::sleep(PAUSE * look).await; // others are changing what is read here
            let (unsettled, endings) = (connection.unsettled(), self.endings());
            let (mut blocked, mut groups, mut is_new) = (HashSet::new(), Vec::new(), true);
            for standing in sync::standings(chat, &connection.user).await? {
                // Whoever was put out meanwhile hears nothing more, not even until the next look.
                is_new &= self.place(&standing, connection, || unsettled == connection.unsettled());
                if standing.conversation.group().is_some() {
                    if standing.is_active() {
                        groups.push(standing.conversation.clone());
                    } else {
                        let Standing { conversation, change_seq, .. } = &standing;
                        self.remove_before(conversation, connection, *change_seq);
                    }
                }
                if standing.settings.receive == Receive::Blocked {
                    blocked.insert(standing.conversation);
                }
            }
            connection.block_only(blocked);
            if endings != self.endings() {
                self.leave_ended(chat, connection).await?;
            }
            // Messages that are published elsewhere before this returns, the catch-up that follows
            // brings; for changes one has to look again.
            let was_deaf = self.bus.tune_in(groups.clone()).await;
            for group in groups.iter().filter(|group| self.known(group).is_none()) {
                self.bus.tune_out(group); // its last ear has gone meanwhile
            }
            if let (Some(online), true) = (&self.online, was_deaf) {
                for group in &groups {
                    self.tell(online.ask(group));
                }
            }
            if unsettled != connection.unsettled() {
                self.forget(connection);
                was_deaf_before = false;
            } else if is_new && (!was_deaf || was_deaf_before) {
                return Ok(()); // also if others cannot be heard at all now
            } else {
                was_deaf_before = was_deaf;
            }
        }
        Ok(())
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

    /// Lets a socket hear a group as its owner stands in it; tells whether that is still how it is.
    fn place(
        &self,
        standing: &Standing,
        connection: &Arc<Connection>,
        is_so: impl FnOnce() -> bool,
    ) -> bool {
        let Standing { conversation, window, change_seq, .. } = standing;
        if !standing.is_active() || conversation.group().is_none() {
            return true;
        }
        self.add_if(conversation, connection, *window, *change_seq, is_so)
    }
}

/// How many people these are, told exactly only from `enough` sockets on: fewer sockets are fewer
/// people.
fn people(ears: &Ears, enough: usize) -> usize {
    if ears.len() < enough {
        return ears.len();
    }
    ears.values().map(|ear| &ear.connection.user).collect::<HashSet<_>>().len()
}
