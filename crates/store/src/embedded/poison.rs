//! What is beyond repair while the process runs: damage on disk, or a write of unknown outcome. A
//! disk without room is not: nothing happened, and the same may work later.

use std::io;
use std::sync::OnceLock;

use nexo_chat::store::StoreError;
use rustix::io::Errno;

/// Something that must not happen on a sound disk, or that the system had no room for.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Fault {
    what: String,
    is_passing: bool,
}

impl Fault {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_passing: false }
    }

    /// Nothing was written, because there was no room.
    pub(crate) fn no_room(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_passing: true }
    }

    /// The system would not do something before it had any effect that counts.
    pub(crate) fn io(what: &str, error: &io::Error) -> Self {
        Self { what: format!("{what}: {error}"), is_passing: is_passing(error) }
    }

    /// Whether it passes by itself, and nothing was lost.
    pub(crate) fn is_passing(&self) -> bool {
        self.is_passing
    }
}

/// Whether the system only had no room, or no file to give.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    let passing = [Errno::NOSPC, Errno::DQUOT, Errno::MFILE, Errno::NFILE];
    error.raw_os_error().is_some_and(|code| passing.iter().any(|it| it.raw_os_error() == code))
}

impl From<Fault> for String {
    fn from(fault: Fault) -> Self {
        fault.what
    }
}

/// The first fault, for good: once set, the store acknowledges nothing more.
#[derive(Default)]
pub(crate) struct Poison(OnceLock<String>);

impl Poison {
    /// Remembers and logs a fault, if it is the first, and says so to whoever met it. What passes is
    /// only said.
    pub(crate) fn set(&self, fault: &Fault) -> StoreError {
        if fault.is_passing() {
            tracing::debug!(target: "nexo::store", %fault, "no room");
            return StoreError::Unavailable(fault.to_string().into());
        }
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
