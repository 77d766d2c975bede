//! Errors between the engine and the database.

use mysql_async::{Error, IoError};
use nexo_chat::reason::BoxError;
use nexo_chat::store::StoreError;

/// Why a statement or a transaction failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SqlFault {
    /// A lock conflict, and nothing was changed: the same transaction may succeed at once.
    #[error("others were in the way: {0}")]
    Retryable(#[source] BoxError),
    /// A unique key exists already, or a column does.
    #[error("already there: {0}")]
    DuplicateKey(#[source] BoxError),
    /// The database cannot be reached, or refuses the statement.
    #[error("{0}")]
    Unreachable(#[source] BoxError),
    /// It cannot be found out now whether a commit happened.
    #[error("the answer to a commit was lost, and the database cannot be asked: {0}")]
    UnknownOutcome(#[source] BoxError),
    /// A row has impossible content.
    #[error("damaged row: {0}")]
    Damaged(String),
}

/// Duplicate key, and duplicate column.
const DUPLICATE_KEY_CODES: [u16; 2] = [1062, 1060];
/// Lock wait timeout, deadlock, and the write conflicts of a distributed database.
const RETRYABLE_CODES: [u16; 6] = [1205, 1213, 1020, 8002, 8022, 9007];

impl From<Error> for SqlFault {
    fn from(error: Error) -> Self {
        match &error {
            Error::Server(server) if DUPLICATE_KEY_CODES.contains(&server.code) => {
                Self::DuplicateKey(error.into())
            }
            Error::Server(server) if RETRYABLE_CODES.contains(&server.code) => {
                Self::Retryable(error.into())
            }
            _ => Self::unreachable(error),
        }
    }
}

impl SqlFault {
    /// The database cannot be reached. Each layer of the library repeats the same words before an
    /// error; only the innermost error is kept.
    pub(crate) fn unreachable(error: Error) -> Self {
        Self::Unreachable(match error {
            Error::Io(IoError::Io(error)) => error.into(),
            Error::Io(IoError::Tls(error)) => format!("TLS: {error}").into(),
            error => error.into(),
        })
    }
}

impl From<SqlFault> for StoreError {
    fn from(fault: SqlFault) -> Self {
        match fault {
            SqlFault::Damaged(_) => Self::Poisoned(fault.to_string()),
            SqlFault::Retryable(error)
            | SqlFault::DuplicateKey(error)
            | SqlFault::Unreachable(error) => Self::Unavailable(error),
            SqlFault::UnknownOutcome(_) => Self::Unavailable(fault.into()),
        }
    }
}

pub(crate) fn damaged(what: impl Into<String>) -> SqlFault {
    SqlFault::Damaged(what.into())
}
