//! Sockets that were given something and have yet to be told. Told once, after all of a batch is in
//! their outboxes, so that it leaves in one system call.

use std::sync::Arc;

use crate::connection::Connection;

/// So many may wait to be told; then they are, so that a large batch delays nobody for long.
const MAX: usize = 4096;

/// Wakes its sockets when it is dropped.
#[derive(Default)]
pub(crate) struct Wakes(Vec<Arc<Connection>>);

impl Wakes {
    /// Tells this one too.
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

impl Drop for Wakes {
    fn drop(&mut self) {
        self.wake();
    }
}
