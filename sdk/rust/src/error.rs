//! The errors of a client.
use std::time::Duration;

use crate::reason::Reason;

/// The server refused a request, with its reason.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Refused {
    pub reason: Reason,
    /// The message of the server.
    pub message: String,
    /// The HTTP status, if it came over HTTP.
    pub status: Option<u16>,
    /// When to retry, if the server said so.
    pub retry_after: Option<Duration>,
    /// Identifies the request in the server's log.
    pub request_id: Option<String>,
}

impl Refused {
    /// Whether the server refused the sign-in rather than what was asked for.
    pub(crate) fn concerns_sign_in(&self) -> bool {
        self.status == Some(401) || self.reason == Reason::AccountDisabled
    }
}

/// The error of a call.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server refused the request.
    #[error(transparent)]
    Refused(Box<Refused>),
    /// No usable answer came; it is unknown whether the server handled the request.
    #[error("{0}")]
    Unreachable(String),
    /// The address of the server is not valid.
    #[error("{0}")]
    BadUrl(String),
    /// The method, path or query of a request is not valid.
    #[error("{0}")]
    InvalidRequest(String),
    /// The store failed: what should survive a restart may not.
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

    /// When to retry, if the server said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refused) => refused.retry_after,
            _ => None,
        }
    }

    /// Whether it is temporary, so that a retry makes sense.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused(refused) => refused.reason.may_retry(),
            _ => false,
        }
    }
}
