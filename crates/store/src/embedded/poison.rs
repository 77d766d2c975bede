//! What is beyond repair while the process runs: damage on disk, or a write of unknown outcome.

use std::sync::OnceLock;

use nexo_chat::store::StoreError;

/// Something that must not happen on a sound disk.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Fault(String);

impl Fault {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl From<Fault> for String {
    fn from(fault: Fault) -> Self {
        fault.0
    }
}

/// The first fault, for good: once set, the store acknowledges nothing more.
#[derive(Default)]
pub(crate) struct Poison(OnceLock<String>);

impl Poison {
    /// Remembers and logs a fault, if it is the first, and says so to whoever met it.
    pub(crate) fn set(&self, fault: &Fault) -> StoreError {
        let reason = self.0.get_or_init(|| {
            tracing::error!(target: "nexo::store", %fault, "the store has stopped");
            fault.to_string()
        });
        StoreError::Poisoned(reason.clone())
    }

    /// Whether all is well.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.0.get().map_or(Ok(()), |reason| Err(StoreError::Poisoned(reason.clone())))
    }
}
