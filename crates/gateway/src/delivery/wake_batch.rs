//! Wakes the sessions that received pushes once, after a whole batch of events is in their outboxes,
//! so that each session writes the batch with one system call.

use std::sync::Arc;

use tokio::runtime::Handle;

use crate::socket::connection::Connection;

/// Wakes at this many sessions even within a batch, so that a large batch does not delay them.
const MAX: usize = 4096;
/// Sessions that one task wakes. A thread of the runtime wakes a session much faster than any other
/// thread, and meanwhile this one can deliver the next event.
const PER_TASK: usize = 128;

/// Sessions to wake when this is dropped.
#[derive(Default)]
pub(crate) struct WakeBatch {
    sessions: Vec<Arc<Connection>>,
    /// Where many sessions are woken, if this is not a thread of the runtime.
    runtime: Option<Handle>,
}

impl WakeBatch {
    /// For a thread outside of the runtime.
    pub(crate) fn outside(runtime: &Handle) -> Self {
        Self { sessions: Vec::new(), runtime: Some(runtime.clone()) }
    }

    pub(crate) fn add(&mut self, connection: &Arc<Connection>) {
        if self.sessions.len() >= MAX {
            self.wake();
        }
        self.sessions.push(Arc::clone(connection));
    }

    fn wake(&mut self) {
        if let Some(runtime) = &self.runtime {
            while self.sessions.len() >= PER_TASK {
                let some = self.sessions.split_off(self.sessions.len() - PER_TASK);
                runtime.spawn(async move { wake_all(some) });
            }
        }
        wake_all(self.sessions.drain(..));
    }
}

fn wake_all(sessions: impl IntoIterator<Item = Arc<Connection>>) {
    for connection in sessions {
        connection.outbox.wake();
    }
}

impl Drop for WakeBatch {
    fn drop(&mut self) {
        self.wake();
    }
}
