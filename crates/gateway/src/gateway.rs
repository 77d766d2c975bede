//! The state that all sockets of a node share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use nexo_chat::bus::Listener;
use nexo_chat::ids::ConnectionId;
use nexo_chat::{Chat, Reason};
use nexo_wire::dialect::ClientLimits;
use tokio::sync::watch;

use crate::admission::{Admission, AdmissionLimits};
use crate::backups::Backups;
use crate::delivery::Delivery;
use crate::delivery::fanout::Fanout;
use crate::http;
use crate::meters::Meters;
use crate::options::Options;

/// How long a connection may take to sign in while others wait for its place.
const SIGN_IN_MS: u64 = 1000;

pub struct Gateway {
    pub chat: Arc<Chat>,
    pub options: Options,
    /// The limits that clients are told.
    pub limits: ClientLimits,
    pub(crate) fanout: Arc<Fanout>,
    pub(crate) delivery: Arc<Delivery>,
    pub(crate) meters: Arc<Meters>,
    /// The places of clients' connections.
    pub(crate) admission: Arc<Admission>,
    /// Renders the page of `/metrics`.
    pub metrics_page: Box<dyn Fn() -> String + Send + Sync>,
    /// Set once, if this server makes backups.
    backups: OnceLock<Arc<dyn Backups>>,
    draining: watch::Sender<bool>,
    sessions: watch::Sender<usize>,
    next_connection: AtomicU64,
}

impl Gateway {
    /// Creates the gateway and makes it the listener of the bus. Must be called within the runtime.
    pub fn new(
        chat: Arc<Chat>,
        options: Options,
        metrics_page: Box<dyn Fn() -> String + Send + Sync>,
    ) -> Arc<Self> {
        let meters = Arc::new(Meters::default());
        let receipt_delay = options.receipt_delay;
        let fanout = Arc::new(Fanout::new(&chat, Arc::clone(&meters), receipt_delay));
        let deferred_wakes = Arc::clone(&fanout.deferred_wakes);
        tokio::spawn(async move { deferred_wakes.run().await });
        let delivery = Arc::new(Delivery::new(&chat, &fanout));
        chat.bus.set_listener(Arc::clone(&delivery) as Arc<dyn Listener>);
        // Random upper half: ids must not repeat after a restart, nor on other nodes.
        let mut upper = [0; 4];
        chat.rng.fill(&mut upper);
        let first = u64::from(u32::from_be_bytes(upper)) << 32;
        let admission = Admission::new(AdmissionLimits {
            connections: options.connections_max,
            unauthenticated: options.unauthenticated_max,
            per_address: options.connections_per_address,
            patience_ms: SIGN_IN_MS,
        });
        Arc::new(Self {
            limits: options.limits(&chat.rules),
            chat,
            options,
            fanout,
            delivery,
            meters,
            admission,
            metrics_page,
            backups: OnceLock::new(),
            draining: watch::Sender::new(false),
            sessions: watch::Sender::new(0),
            next_connection: AtomicU64::new(first | 1),
        })
    }

    /// Serves `/admin/backup` with this; only the first call counts.
    pub fn set_backups(&self, backups: Arc<dyn Backups>) {
        self.backups.get_or_init(|| backups);
    }

    pub(crate) fn backups(&self) -> Option<&Arc<dyn Backups>> {
        self.backups.get()
    }

    /// Continues the broadcasts that were not finished when the server stopped.
    pub fn resume_broadcasts(&self) {
        tokio::spawn(http::resume_broadcasts(Arc::clone(&self.chat)));
    }

    pub(crate) fn next_connection_id(&self) -> ConnectionId {
        ConnectionId(self.next_connection.fetch_add(1, Ordering::Relaxed))
    }

    /// Begins the shutdown: accepts no more connections, and closes all sockets with a reason that
    /// makes clients reconnect.
    pub fn drain(&self) {
        self.draining.send_replace(true);
        self.fanout.connections.for_each(|connection| connection.close(Reason::ShuttingDown));
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Returns when the shutdown begins.
    pub(crate) async fn drain_started(&self) {
        // An error means that the sender is gone, which is a shutdown as well.
        let _gone = self.draining.subscribe().wait_for(|draining| *draining).await.is_err();
    }

    /// Counts a session for as long as the guard lives.
    pub(crate) fn count_session(self: &Arc<Self>) -> SessionCount {
        self.sessions.send_modify(|count| *count += 1);
        self.meters.connections.increment(1);
        SessionCount(Arc::clone(self))
    }

    /// Returns when no session is left.
    pub(crate) async fn sessions_ended(&self) {
        let _gone = self.sessions.subscribe().wait_for(|count| *count == 0).await.is_err();
    }
}

/// Counts a session until it is dropped.
pub(crate) struct SessionCount(Arc<Gateway>);

impl Drop for SessionCount {
    fn drop(&mut self) {
        self.0.sessions.send_modify(|count| *count -= 1);
        self.0.meters.connections.decrement(1);
    }
}
