//! Receipts wait a moment in their outbox, so that they leave together with other frames: a session
//! writes everything it has in one system call, which costs more than all the rest of a receipt.
//! In a group, where every reader causes a receipt for every member, that is most of the work.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::socket::connection::Connection;

/// Sessions that have frames to write, but not at once.
pub(crate) struct DeferredWakes {
    /// How long a frame may wait; zero is not at all.
    delay: Duration,
    waiting: Mutex<Vec<Arc<Connection>>>,
    is_needed: Notify,
}

impl DeferredWakes {
    pub(crate) fn new(delay: Duration) -> Self {
        Self { delay, waiting: Mutex::default(), is_needed: Notify::new() }
    }

    /// Whether receipts may wait.
    pub(crate) fn is_on(&self) -> bool {
        !self.delay.is_zero()
    }

    /// Wakes the session of a connection after the delay, unless something wakes it before.
    pub(crate) fn add(&self, connection: &Arc<Connection>) {
        let mut waiting = self.waiting();
        waiting.push(Arc::clone(connection));
        if waiting.len() == 1 {
            self.is_needed.notify_one();
        }
    }

    /// Wakes sessions until its task is dropped. There is no timer while nothing waits.
    pub(crate) async fn run(&self) {
        loop {
            self.is_needed.notified().await;
            tokio::time::sleep(self.delay).await;
            let waiting = std::mem::take(&mut *self.waiting());
            for connection in waiting {
                connection.outbox.end_deferral();
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Arc<Connection>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
