//! The options of a client.
use std::sync::Arc;

use crate::storage::{MemoryStore, Store};
use crate::timing::Timing;

/// The options of a client.
#[derive(Clone)]
pub struct Options {
    /// The server, such as `https://chat.example.com`.
    pub url: String,
    /// Where the sign-in and unsent messages survive a restart; in memory they do not.
    pub store: Arc<dyn Store>,
    /// 1 iOS, 2 Android, 3 Windows, 4 macOS, 5 Web, 0 other.
    pub platform: u8,
    /// About this many messages of a conversation stay in memory; older ones are loaded again.
    pub keep: usize,
    /// Timeouts and intervals.
    pub timing: Timing,
}

impl Options {
    /// The default options for this server.
    pub fn new(url: impl Into<String>) -> Self {
        let (url, store) = (url.into(), Arc::new(MemoryStore::default()));
        Self { url, store, platform: 0, keep: 5_000, timing: Timing::default() }
    }

    /// Sets the store for what must survive a restart.
    #[must_use]
    pub fn store(self, store: impl Store + 'static) -> Self {
        Self { store: Arc::new(store), ..self }
    }
}
