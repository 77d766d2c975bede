//! How the database is reached.

use std::path::PathBuf;
use std::time::Duration;

/// What the operator chooses, and what tests turn. The address may hold a password, so none of it is
/// shown.
#[derive(Clone)]
pub struct MySqlOptions {
    /// `mysql://user:password@host:port/database`.
    pub url: String,
    /// A certificate authority to trust beside the well-known ones; asks for TLS.
    pub ca_file: Option<PathBuf>,
    /// Connections at most.
    pub connections_max: usize,
    /// Batches of messages that are stored at the same time.
    pub committers: usize,
    /// How long something may take before it is given up, waiting for the database included.
    pub patience: Duration,
    /// How long one statement may take before its connection is taken for dead.
    pub statement: Duration,
}

impl MySqlOptions {
    /// The defaults on a database.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            ca_file: None,
            connections_max: 32,
            committers: 4,
            patience: Duration::from_secs(3),
            statement: Duration::from_secs(5),
        }
    }
}
