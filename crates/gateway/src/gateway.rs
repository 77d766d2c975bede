//! What the sockets of one node share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use nexo_chat::Chat;
use nexo_chat::bus::Listener;
use nexo_chat::ids::ConnectionId;
use nexo_wire::dialect::Limits;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::beginning::Beginnings;
use crate::behind::Behind;
use crate::delivery::Delivery;
use crate::groups::Groups;
use crate::measure::Measures;
use crate::options::Options;
use crate::recalls::Recalls;
use crate::relearn::Relearning;
use crate::roster::Roster;
use crate::settling::Settling;
use crate::unsettled::Unsettled;

/// One node's sockets and what they need.
pub struct Gateway {
    /// The domain.
    pub chat: Arc<Chat>,
    /// The limits.
    pub options: Options,
    /// What clients are told of them.
    pub limits: Limits,
    /// Who is here.
    pub roster: Arc<Roster>,
    /// Who of them hears which group.
    pub groups: Arc<Groups>,
    /// Puts events into their outboxes.
    pub(crate) delivery: Arc<Delivery>,
    /// What was recalled a moment ago.
    pub recalls: Arc<Recalls>,
    /// Who knows which message before it is saved.
    pub unsettled: Arc<Unsettled>,
    /// What is counted.
    pub measures: Arc<Measures>,
    /// Renders the metrics page.
    pub metrics_page: Box<dyn Fn() -> String + Send + Sync>,
    draining: watch::Sender<bool>,
    sessions: watch::Sender<usize>,
    next_connection: AtomicU64,
}

impl Gateway {
    /// Puts the sockets' side together and lets it hear the bus.
    pub fn new(
        chat: Arc<Chat>,
        options: Options,
        metrics_page: Box<dyn Fn() -> String + Send + Sync>,
    ) -> Arc<Self> {
        let roster = Arc::new(Roster::default());
        let measures = Arc::new(Measures::default());
        let groups =
            Arc::new(Groups::new(Arc::clone(&chat.bus), &chat.rules.groups, &chat.instance));
        let recalls = Arc::new(Recalls::default());
        let unsettled = Arc::new(Unsettled::default());
        let delivery = Arc::new_cyclic(|me| Delivery {
            roster: Arc::clone(&roster),
            groups: Arc::clone(&groups),
            rules: chat.rules.groups,
            recalls: Arc::clone(&recalls),
            behind: Behind::default(),
            beginnings: Beginnings::default(),
            unsettled: Arc::clone(&unsettled),
            settling: Settling::default(),
            relearning: Relearning::default(),
            chat: Arc::downgrade(&chat),
            me: Weak::clone(me),
            runtime: Handle::current(),
            clock: Arc::clone(&chat.clock),
            measures: Arc::clone(&measures),
            instance: Arc::clone(&chat.instance),
        });
        chat.bus.subscribe(Arc::clone(&delivery) as Arc<dyn Listener>);
        let mut upper = [0; 4];
        chat.dice.fill(&mut upper);
        let first = u64::from(u32::from_be_bytes(upper)) << 32;
        Arc::new(Self {
            limits: options.limits(&chat.rules),
            chat,
            options,
            roster,
            groups,
            delivery,
            recalls,
            unsettled,
            measures,
            metrics_page,
            draining: watch::Sender::new(false),
            sessions: watch::Sender::new(0),
            next_connection: AtomicU64::new(first | 1),
        })
    }

    /// A name for the next socket.
    pub fn name_connection(&self) -> ConnectionId {
        ConnectionId(self.next_connection.fetch_add(1, Ordering::Relaxed))
    }

    /// Begins to go down: nothing new is accepted, sockets are told to reconnect elsewhere.
    pub fn drain(&self) {
        self.draining.send_replace(true);
        self.roster.each(|connection| connection.end(nexo_chat::Reason::ShuttingDown));
    }

    /// Whether it is going down.
    pub fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Returns when it begins to go down.
    pub async fn drained(&self) {
        // An error means the sender is gone, which is as good as going down.
        let _gone = self.draining.subscribe().wait_for(|draining| *draining).await.is_err();
    }

    /// Counts a session for as long as the guard lives.
    pub(crate) fn count_session(self: &Arc<Self>) -> Counted {
        self.sessions.send_modify(|count| *count += 1);
        self.measures.connections.increment(1);
        Counted(Arc::clone(self))
    }

    /// Returns when no session is left.
    pub async fn emptied(&self) {
        let _gone = self.sessions.subscribe().wait_for(|count| *count == 0).await.is_err();
    }
}

/// A session that is counted.
pub(crate) struct Counted(Arc<Gateway>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.sessions.send_modify(|count| *count -= 1);
        self.0.measures.connections.decrement(1);
    }
}
