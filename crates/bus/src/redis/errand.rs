//! What is to be written in Redis, one after another: who comes and goes, in the order it happened.

use nexo_chat::bus::Place;
use nexo_chat::ids::{ConnectionId, ConversationId, UserId};
use redis::Value;
use tokio::sync::{mpsc, oneshot};

use super::link::Lot;
use super::names::{Names, NodeId};
use super::routes::{self, Row};

/// How many may wait. Whoever finds no room does without Redis.
pub(crate) const ERRANDS_MAX: usize = 65_536;

/// One of them.
pub(crate) enum Errand {
    /// A socket came.
    Claim {
        place: Place,
        /// Gets the rows before it; dropped if Redis is away.
        done: oneshot::Sender<Vec<Row>>,
    },
    /// Groups are heard here.
    TuneIn { groups: Vec<ConversationId>, done: oneshot::Sender<()> },
    /// Something is not there any more.
    Remove(Removal),
}

/// A field of a hash or a member of a set that goes. Doing it again does nothing.
#[derive(Clone, Debug)]
pub(crate) struct Removal {
    command: &'static str,
    key: String,
    what: String,
}

impl Removal {
    /// A socket is gone.
    pub(crate) fn place(names: &Names, user: &UserId, connection: ConnectionId) -> Self {
        Self { command: "HDEL", key: names.places(user), what: connection.0.to_string() }
    }

    /// A node does not hear a group any more.
    pub(crate) fn interest(names: &Names, group: &ConversationId, node: NodeId) -> Self {
        Self { command: "SREM", key: names.interest(group), what: node.to_string() }
    }

    pub(crate) fn add_to(&self, lot: &mut Lot) {
        lot.add(self.command, &self.key, &self.what);
    }
}

/// The way to the clerk.
#[derive(Clone)]
pub(crate) struct Errands {
    sender: mpsc::Sender<Errand>,
}

impl Errands {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Errand>) {
        let (sender, receiver) = mpsc::channel(ERRANDS_MAX);
        (Self { sender }, receiver)
    }

    pub(crate) fn claim(&self, place: Place) -> oneshot::Receiver<Vec<Row>> {
        let (done, answer) = oneshot::channel();
        self.send(Errand::Claim { place, done });
        answer
    }

    pub(crate) fn tune_in(&self, groups: Vec<ConversationId>) -> oneshot::Receiver<()> {
        let (done, answer) = oneshot::channel();
        self.send(Errand::TuneIn { groups, done });
        answer
    }

    pub(crate) fn remove(&self, removal: Removal) {
        self.send(Errand::Remove(removal));
    }

    fn send(&self, errand: Errand) {
        if self.sender.try_send(errand).is_err() {
            // What comes is written by the next refresh; what is gone lives until its key expires.
            tracing::debug!(target: "nexo::bus", "no room for an errand to redis");
        }
    }
}

/// The commands of some errands, and what becomes of their answers.
pub(crate) struct Round<'a> {
    pub(crate) names: &'a Names,
    pub(crate) node: NodeId,
    pub(crate) ttl_ms: u64,
    pub(crate) lot: Lot,
}

impl Round<'_> {
    /// Writes a place that may not be there yet.
    pub(crate) fn claim(&mut self, place: &Place) {
        let value = routes::unnumbered(self.node, place);
        let arguments = (place.connection.0, value, self.ttl_ms);
        self.lot.add_script(routes::CLAIM, &self.names.places(&place.user), arguments);
    }

    /// Writes a place again whose number is known.
    pub(crate) fn renew(&mut self, place: &Place, order: u64) {
        let value = routes::numbered(self.node, place, order);
        let key = self.names.places(&place.user);
        self.lot.add("HSETNX", &key, (place.connection.0, value));
        self.lot.add("PEXPIRE", &key, self.ttl_ms);
    }

    /// Writes that this node hears a group.
    pub(crate) fn tune_in(&mut self, group: &ConversationId) {
        let key = self.names.interest(group);
        self.lot.add("SADD", &key, self.node.to_string());
        self.lot.add("PEXPIRE", &key, self.ttl_ms);
    }

    /// How many answers an errand takes.
    pub(crate) fn add(&mut self, errand: &Errand) -> usize {
        let before = self.lot.len();
        match errand {
            Errand::Claim { place, .. } => self.claim(place),
            Errand::TuneIn { groups, .. } => groups.iter().for_each(|group| self.tune_in(group)),
            Errand::Remove(removal) => removal.add_to(&mut self.lot),
        }
        self.lot.len() - before
    }
}

/// Whether Redis did not refuse.
pub(crate) fn is_done(answer: &Value) -> bool {
    !matches!(answer, Value::ServerError(_))
}
