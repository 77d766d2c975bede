//! Wakes the sessions that received pushes once, after a whole batch of events is in their outboxes,
//! so that each session writes the batch with one system call.

use std::sync::Arc;

use crate::socket::connection::Connection;

/// Wakes at this many sessions even within a batch, so that a large batch does not delay them.
const MAX: usize = 4096;

/// Sessions to wake when this is dropped.
#[derive(Default)]
pub(crate) struct WakeBatch(Vec<Arc<Connection>>);

impl WakeBatch {
    pub(crate) fn add(&mut self, connection: &Arc<Connection>) {
        if self.0.len() >= MAX {
            self.wake();
        }
        self.0.push(Arc::clone(connection));
    }

    fn wake(&mut self) {
        for connection in self.0.drain(..) {
            connection.outbox.wake();
        }
    }
}

impl Drop for WakeBatch {
    fn drop(&mut self) {
        self.wake();
    }
}
