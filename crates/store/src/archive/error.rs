//! Why data cannot be moved, and what to do then.

use nexo_chat::store::StoreError;

use crate::embedded::OpenError;

/// Why data could not be moved. Each says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The target has data.
    #[error("it is not empty, it has {0}: give a new folder or an empty database")]
    NotEmpty(String),
    /// A server works on it.
    #[error(
        "a server is using it: stop every server of it first (one that was killed counts as gone \
         after 10 seconds)"
    )]
    InUse,
    /// A migration works on it.
    #[error(
        "a migration is using it: wait until it has ended (one that was killed counts as gone after \
         10 seconds)"
    )]
    Migrating,
    /// An earlier migration filled a part of it.
    #[error(
        "a migration into it did not finish, and it holds a part of the data: empty it (DROP \
         DATABASE, CREATE DATABASE) and run the migration again"
    )]
    Unfinished,
    /// There is nothing to be moved.
    #[error("there is no data of Nexo in it: look at the address")]
    Missing,
    /// The tables are not those of a mini-im.
    #[error("it has no table {0}, so it is no database of mini-im: look at the address")]
    NotMiniIm(String),
    /// The folder cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store cannot do its work. Told once, and not again as its own cause.
    #[error("{}", told(_0))]
    Store(StoreError),
    /// What was given cannot be the whole.
    #[error("the data is damaged: {0}")]
    Damaged(String),
}

impl From<StoreError> for ArchiveError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn told(error: &StoreError) -> String {
    match error {
        StoreError::Unavailable(_) => {
            format!("{error}. Look at the address, and whether the database answers")
        }
        StoreError::Poisoned(_) => error.to_string(),
    }
}
