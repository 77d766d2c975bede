//! Faults beyond repair while the process runs: damage on disk, or a write of unknown outcome. A
//! full disk is not one: nothing happened, and the same write may work later.

use std::io;
use std::sync::OnceLock;

use nexo_chat::store::StoreError;
use rustix::io::Errno;

/// Something that must not happen on a sound disk, or that the system had no room for.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct EngineFault {
    what: String,
    is_temporary: bool,
}

impl EngineFault {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_temporary: false }
    }

    /// Nothing was written, because the disk was full.
    pub(crate) fn no_room(what: impl Into<String>) -> Self {
        Self { what: what.into(), is_temporary: true }
    }

    /// The system refused an operation before it had any effect that counts.
    pub(crate) fn io(what: &str, error: &io::Error) -> Self {
        Self { what: format!("{what}: {error}"), is_temporary: is_out_of_resources(error) }
    }

    /// Whether it goes away by itself, and nothing was lost.
    pub(crate) fn is_temporary(&self) -> bool {
        self.is_temporary
    }
}

/// Whether the system only ran out of disk space, file descriptors or memory, or was interrupted.
pub(crate) fn is_out_of_resources(error: &io::Error) -> bool {
    let passing = [
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::INTR,
        Errno::AGAIN,
    ];
    error.raw_os_error().is_some_and(|code| passing.iter().any(|it| it.raw_os_error() == code))
}

impl From<EngineFault> for String {
    fn from(fault: EngineFault) -> Self {
        fault.what
    }
}

/// The first fault, for good: once set, the store acknowledges nothing more.
#[derive(Default)]
pub(crate) struct Poison(OnceLock<String>);

impl Poison {
    /// Stores and logs the first fault, and returns the error for the caller. A temporary fault is
    /// only returned.
    pub(crate) fn set(&self, fault: &EngineFault) -> StoreError {
        if fault.is_temporary() {
            tracing::debug!(target: "nexo::store", %fault, "no room");
            return StoreError::Unavailable(fault.to_string().into());
        }
        let reason = self.0.get_or_init(|| {
            tracing::error!(target: "nexo::store", %fault, "the store has stopped");
            fault.to_string()
        });
        StoreError::Poisoned(reason.clone())
    }

    /// Returns `Ok`, or the fault.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.0.get().map_or(Ok(()), |reason| Err(StoreError::Poisoned(reason.clone())))
    }
}
