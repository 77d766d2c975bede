//! Access to the domain and the runtime for the tasks that events start.

use std::sync::{Arc, Weak};

use nexo_chat::Chat;
use nexo_chat::store::Store;
use tokio::runtime::Handle;

#[derive(Clone)]
pub(crate) struct Background {
    /// Weak: the domain owns the bus, which owns delivery as its listener.
    chat: Weak<Chat>,
    /// Events also arrive on threads of the store, which have no runtime of their own.
    runtime: Handle,
}

impl Background {
    pub(crate) fn new(chat: &Arc<Chat>) -> Self {
        Self { chat: Arc::downgrade(chat), runtime: Handle::current() }
    }

    /// `None` while the process shuts down.
    pub(crate) fn chat(&self) -> Option<Arc<Chat>> {
        self.chat.upgrade()
    }

    pub(crate) fn store(&self) -> Option<Arc<dyn Store>> {
        self.chat().map(|chat| Arc::clone(&chat.store))
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }
}
