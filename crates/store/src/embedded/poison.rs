//! What can go wrong with the disk: it has no room (passes by itself), a part of the stored data is
//! damaged (that part is refused, everything else goes on), or nothing can be relied on any more (a
//! failed sync, a write of unknown outcome, damage to what every decision needs).

use std::error::Error;
use std::io;
use std::sync::OnceLock;

use nexo_chat::store::StoreError;
use rustix::io::Errno;

/// Something that must not happen on a sound disk, or that the system had no room for.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct EngineFault {
    what: String,
    kind: FaultClass,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultClass {
    /// It goes away by itself, and nothing was lost.
    Temporary,
    /// Stored data cannot be read; what needs it is refused.
    Damage,
    /// The store stops.
    Fatal,
}

impl EngineFault {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), kind: FaultClass::Fatal }
    }

    /// Nothing was written, because the disk was full.
    pub(crate) fn no_room(what: impl Into<String>) -> Self {
        Self { what: what.into(), kind: FaultClass::Temporary }
    }

    /// A part of the stored data cannot be read. The text names the place, so that the same damage
    /// has the same text, and never holds content.
    pub(crate) fn damage(place: impl Into<String>) -> Self {
        Self { what: place.into(), kind: FaultClass::Damage }
    }

    /// The system refused an operation before it had any effect that counts.
    pub(crate) fn io(what: &str, error: &io::Error) -> Self {
        let is_temporary = is_out_of_resources(error);
        let kind = if is_temporary { FaultClass::Temporary } else { FaultClass::Fatal };
        Self { what: format!("{what}: {error}"), kind }
    }

    /// Whether it goes away by itself, and nothing was lost.
    pub(crate) fn is_temporary(&self) -> bool {
        self.kind == FaultClass::Temporary
    }

    /// Whether only a part of the stored data cannot be read.
    pub(crate) fn is_damage(&self) -> bool {
        self.kind == FaultClass::Damage
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
    os_code(error).is_some_and(|code| passing.iter().any(|it| it.raw_os_error() == code))
}

/// The system's code, also of an error that another one wraps to name a path.
fn os_code(error: &io::Error) -> Option<i32> {
    if let Some(code) = error.raw_os_error() {
        return Some(code);
    }
    let mut cause: Option<&(dyn Error + 'static)> = Some(error.get_ref()?);
    while let Some(inner) = cause {
        if let Some(code) = inner.downcast_ref::<io::Error>().and_then(os_code) {
            return Some(code);
        }
        cause = inner.source();
    }
    None
}

impl From<EngineFault> for String {
    fn from(fault: EngineFault) -> Self {
        fault.what
    }
}

/// The first fatal fault, for good: once set, the store acknowledges nothing more.
#[derive(Default)]
pub(crate) struct Poison(OnceLock<String>);

impl Poison {
    /// Returns the error for the caller. The first fatal fault is also stored and logged.
    pub(crate) fn set(&self, fault: &EngineFault) -> StoreError {
        match fault.kind {
            FaultClass::Temporary => {
                tracing::debug!(target: "nexo::store", %fault, "no room");
                return StoreError::Unavailable(fault.to_string().into());
            }
            FaultClass::Damage => return StoreError::Damaged(fault.to_string()),
            FaultClass::Fatal => {}
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_known_also_when_the_error_names_a_path() {
        // As the trees fail: a temporary file names its path.
        let missing = tempfile::Builder::new().tempfile_in("/nowhere/at/all").unwrap_err();
        assert_eq!(os_code(&missing), Some(Errno::NOENT.raw_os_error()));
        assert!(!is_out_of_resources(&missing));
        assert!(is_out_of_resources(&io::Error::from_raw_os_error(Errno::NOSPC.raw_os_error())));
        let named = io::Error::other(io::Error::from_raw_os_error(Errno::NOSPC.raw_os_error()));
        assert!(is_out_of_resources(&named));
        assert!(!is_out_of_resources(&io::Error::other("something else")));
    }
}
