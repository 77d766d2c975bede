//! How the database is reached.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::pool::opts;

/// What the operator chooses, and what tests turn.
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

    /// Why they are of no use, as far as that shows without a database.
    pub fn check(&self) -> Result<(), String> {
        opts(self).map(drop).map_err(|error| error.to_string())
    }
}

/// Without the address, which may hold a password.
impl fmt::Debug for MySqlOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlOptions")
            .field("ca_file", &self.ca_file)
            .field("connections_max", &self.connections_max)
            .field("committers", &self.committers)
            .finish_non_exhaustive()
    }
}
