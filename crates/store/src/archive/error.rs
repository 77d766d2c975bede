//! Why a migration failed, and what to do then.

use nexo_chat::store::StoreError;

use crate::embedded::OpenError;

/// Why data could not be moved. Each message says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The target has data.
    #[error("it is not empty, it has {0}: give a new folder or an empty database")]
    NotEmpty(String),
    /// A server uses it.
    #[error(
        "a server is using it: stop every server of it first (one that was killed counts as gone \
         after 10 seconds)"
    )]
    InUse,
    /// A migration uses it.
    #[error(
        "a migration is using it: wait until it has ended (one that was killed counts as gone after \
         10 seconds)"
    )]
    Migrating,
    /// An earlier migration into it did not finish.
    #[error(
        "a migration into it did not finish, and it holds a part of the data: empty it (DROP \
         DATABASE, CREATE DATABASE) and run the migration again"
    )]
    Unfinished,
    /// There is no data to move.
    #[error("there is no data of Nexo in it: look at the address")]
    Missing,
    /// The tables are not those of mini-im.
    #[error("it has no table {0}, so it is no database of mini-im: look at the address")]
    NotMiniIm(String),
    /// The folder cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store failed. Its error is part of the message, and not repeated as the source.
    #[error("{}", advice(_0))]
    Store(StoreError),
    /// The exported data is not complete.
    #[error("the data is damaged: {0}")]
    Damaged(String),
}

impl From<StoreError> for ArchiveError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn advice(error: &StoreError) -> String {
    match error {
        StoreError::Unavailable(_) => {
            format!("{error}. Look at the address, and whether the database answers")
        }
        StoreError::Poisoned(_) => error.to_string(),
        StoreError::Damaged(_) => {
            format!("{error}. `nexo doctor` tells what is damaged and can copy the rest")
        }
    }
}
