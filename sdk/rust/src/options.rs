//! What a client is made with.
use std::sync::Arc;

use crate::storage::{MemoryStore, Store};
use crate::timing::Timing;

/// What a client is made with.
#[derive(Clone)]
pub struct Options {
    /// The server, such as `https://chat.example.com`.
    pub url: String,
    /// Where the sign-in and unsent messages survive a restart; in memory they do not.
    pub store: Arc<dyn Store>,
    /// 1 iOS, 2 Android, 3 Windows, 4 macOS, 5 Web, 0 something else.
    pub platform: u8,
    /// About so many messages of a conversation stay in memory; older ones are loaded again.
    pub keep: usize,
    /// How long things may take.
    pub timing: Timing,
}

impl Options {
    /// For this server, with the defaults.
    pub fn new(url: impl Into<String>) -> Self {
        let (url, store) = (url.into(), Arc::new(MemoryStore::default()));
        Self { url, store, platform: 0, keep: 5_000, timing: Timing::default() }
    }

    /// Keeps what must survive a restart there.
    #[must_use]
    pub fn store(self, store: impl Store + 'static) -> Self {
        Self { store: Arc::new(store), ..self }
    }
}
