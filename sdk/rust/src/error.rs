//! What can go wrong when one asks for something.
use std::time::Duration;

use crate::reason::Reason;

/// The server said no, and why.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Refused {
    /// Its reason.
    pub reason: Reason,
    /// What the server said about it.
    pub message: String,
    /// The HTTP status, if it came over HTTP.
    pub status: Option<u16>,
    /// The server said when to come back.
    pub retry_after: Option<Duration>,
    /// Names the request in the server's log.
    pub request_id: Option<String>,
}

/// Why something was not done.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server said no.
    #[error(transparent)]
    Refused(Box<Refused>),
    /// No answer came that one can use; whether the server did it is not known.
    #[error("{0}")]
    Unreachable(String),
    /// The address of the server is none.
    #[error("{0}")]
    BadUrl(String),
    /// What was to be asked for is no request: its method, its path or its query.
    #[error("{0}")]
    InvalidRequest(String),
    /// What should survive a restart may not.
    #[error("cannot keep or find what was kept: {0}")]
    Store(String),
    /// The client was closed, or signed out meanwhile.
    #[error("the client is closed")]
    Closed,
}

impl Error {
    pub(crate) fn refused(reason: Reason) -> Self {
        Self::refused_with(reason, reason.text().to_owned())
    }

    pub(crate) fn refused_with(reason: Reason, message: String) -> Self {
        let (status, retry_after, request_id) = (None, None, None);
        Self::Refused(Box::new(Refused { reason, message, status, retry_after, request_id }))
    }

    /// Why the server refused, if it did.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Refused(refused) => Some(refused.reason),
            _ => None,
        }
    }

    /// When the server said to come back, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refused) => refused.retry_after,
            _ => None,
        }
    }

    /// Whether asking again later makes sense.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused(refused) => refused.reason.may_retry(),
            _ => false,
        }
    }
}
