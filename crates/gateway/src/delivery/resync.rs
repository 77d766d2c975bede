//! Compares every socket of this node with the store after events of other nodes were lost, and
//! from time to time while the bus is down.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use nexo_chat::model::Receive;
use nexo_chat::{Chat, Error, Reason, auth, sync};

use crate::delivery::sequencer::Sequencer;
use crate::socket::connection::Connection;

/// Groups and sockets that are compared concurrently.
const CONCURRENCY: usize = 16;
/// Between two tries while the store does not answer.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Runs one resync at a time. A request during a run starts another run after it.
pub(crate) struct Resync {
    sequencer: Arc<Sequencer>,
    requests: ResyncRequests,
}

/// In the order of what they demand: a run for `EventsLost` does all that one for `BusDown` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResyncCause {
    /// The bus is down.
    BusDown,
    /// The bus works again after a time in which events may have been lost.
    EventsLost,
}

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const BUS_DOWN: u8 = 2;
const EVENTS_LOST: u8 = 3;

/// Whether a run is under way, and the strongest cause requested since it began.
#[derive(Default)]
struct ResyncRequests(AtomicU8);

impl ResyncRequests {
    /// Returns whether the caller has to start the run.
    fn add(&self, cause: ResyncCause) -> bool {
        let level = match cause {
            ResyncCause::BusDown => BUS_DOWN,
            ResyncCause::EventsLost => EVENTS_LOST,
        };
        self.0.fetch_max(level, Ordering::SeqCst) == IDLE
    }

    /// Takes the cause that the run is for.
    fn begin(&self) -> ResyncCause {
        match self.0.swap(RUNNING, Ordering::SeqCst) {
            EVENTS_LOST => ResyncCause::EventsLost,
            _ => ResyncCause::BusDown,
        }
    }

    /// Ends the run, unless another one was requested meanwhile.
    fn try_end(&self) -> bool {
        self.0.compare_exchange(RUNNING, IDLE, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

impl Resync {
    pub(crate) fn new(sequencer: Arc<Sequencer>) -> Self {
        Self { sequencer, requests: ResyncRequests::default() }
    }

    /// Starts a resync, or marks the running one to be repeated.
    pub(crate) fn request(self: &Arc<Self>, cause: ResyncCause) {
        if self.requests.add(cause) {
            self.sequencer.background.spawn(Arc::clone(self).run());
        }
    }

    async fn run(self: Arc<Self>) {
        let fanout = &self.sequencer.fanout;
        loop {
            let cause = self.requests.begin();
            let Some(chat) = self.sequencer.background.chat() else { return };
            let groups = stream::iter(fanout.subscriptions.groups());
            groups
                .for_each_concurrent(CONCURRENCY, async |group| {
                    if let Err(error) = self.sequencer.read_changes(&*chat.store, &group).await {
                        tracing::debug!(target: "nexo::push", %error, "the changes cannot be read yet");
                    }
                })
                .await;
            let mut sockets = Vec::new();
            fanout.connections.for_each(|connection| sockets.push(Arc::clone(connection)));
            let count = sockets.len();
            let connections = stream::iter(sockets);
            connections.for_each_concurrent(CONCURRENCY, |it| self.compare(&chat, it, cause)).await;
            tracing::info!(target: "nexo::push", sockets = count, why = ?cause, "resynced");
            if self.requests.try_end() {
                return;
            }
        }
    }

    /// Compares a socket with the store, and tries again until the store answers.
    async fn compare(&self, chat: &Chat, connection: Arc<Connection>, cause: ResyncCause) {
        while connection.close_reason().is_none() {
            match self.try_compare(chat, &connection, cause).await {
                Ok(()) => return,
                Err(Error::Refused(_) | Error::RefusedWithDetail { .. }) => {
                    connection.close(Reason::SessionInvalid);
                }
                Err(error) => {
                    tracing::debug!(target: "nexo::push", %error, "a socket cannot be resynced yet");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        }
    }

    /// Checks that the login is still valid, subscribes to the current groups, and requests a resend
    /// of what was not delivered.
    async fn try_compare(
        &self,
        chat: &Chat,
        connection: &Arc<Connection>,
        cause: ResyncCause,
    ) -> Result<(), Error> {
        auth::check_login_active(chat, connection.login).await?;
        if !connection.dialect.pushes_missed() {
            // The server has no cursor of this client: only the client knows what it misses, and
            // asks for it when it reconnects.
            if cause == ResyncCause::EventsLost {
                connection.close(Reason::ShuttingDown);
            }
            return Ok(());
        }
        self.sequencer.fanout.subscriptions.subscribe_all(chat, connection).await?;
        for standing in sync::standings(chat, &connection.user).await? {
            let delivered = standing.cursors.delivered.max(standing.window.min.previous());
            if standing.visible_max() > delivered && standing.settings.receive != Receive::Blocked {
                connection.record_missed(&standing.conversation, delivered.next());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_events_are_not_forgotten_while_a_run_for_less_is_under_way() {
        let requests = ResyncRequests::default();
        assert!(requests.add(ResyncCause::BusDown), "starts the run");
        assert_eq!(requests.begin(), ResyncCause::BusDown);
        assert!(!requests.add(ResyncCause::EventsLost));
        assert!(!requests.add(ResyncCause::BusDown));
        assert!(!requests.try_end(), "another run was requested");
        assert_eq!(requests.begin(), ResyncCause::EventsLost);
        assert!(requests.try_end());
        assert!(requests.add(ResyncCause::EventsLost), "idle again");
    }
}
