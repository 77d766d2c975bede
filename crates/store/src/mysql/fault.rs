//! What can go wrong between us and the database.

use mysql_async::Error;
use nexo_chat::reason::BoxError;
use nexo_chat::store::StoreError;

/// Why a statement or a transaction did not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// Others were in the way and nothing happened: the same again may work at once.
    #[error("others were in the way: {0}")]
    Again(#[source] BoxError),
    /// A unique key is taken, or the name of a column.
    #[error("already there: {0}")]
    Taken(#[source] BoxError),
    /// The database cannot be reached, or does not do as it is told.
    #[error("{0}")]
    Away(#[source] BoxError),
    /// Whether a commit happened cannot be found out now.
    #[error("the answer to a commit was lost, and the database cannot be asked: {0}")]
    Unknown(#[source] BoxError),
    /// A row says something impossible.
    #[error("damaged row: {0}")]
    Damaged(String),
}

/// Duplicate key, and a column that is there already.
const TAKEN: [u16; 2] = [1062, 1060];
/// Lock wait timeout, deadlock, and what a distributed database says when writes meet.
const AGAIN: [u16; 6] = [1205, 1213, 1020, 8002, 8022, 9007];

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match &error {
            Error::Server(told) if TAKEN.contains(&told.code) => Self::Taken(error.into()),
            Error::Server(told) if AGAIN.contains(&told.code) => Self::Again(error.into()),
            _ => Self::Away(error.into()),
        }
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Damaged(_) => Self::Poisoned(fault.to_string()),
            Fault::Again(error) | Fault::Taken(error) | Fault::Away(error) => {
                Self::Unavailable(error)
            }
            Fault::Unknown(_) => Self::Unavailable(fault.into()),
        }
    }
}

/// A row that says something impossible.
pub(crate) fn damaged(what: impl Into<String>) -> Fault {
    Fault::Damaged(what.into())
}
