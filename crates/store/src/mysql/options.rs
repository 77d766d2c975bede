//! Options of the MySQL engine.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::pool::opts;

/// Settings of the operator, and what tests change.
#[derive(Clone)]
pub struct MySqlOptions {
    /// `mysql://user:password@host:port/database`.
    pub url: String,
    /// A certificate authority to trust besides the well-known ones; enables TLS.
    pub ca_file: Option<PathBuf>,
    pub connections_max: usize,
    /// Batches of messages that are stored at the same time.
    pub committers: usize,
    /// How long a call may take, including waiting for a connection and retries.
    pub patience: Duration,
    /// How long one statement may take before its connection counts as dead.
    pub statement: Duration,
}

impl MySqlOptions {
    /// The defaults for a database.
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

    /// Checks what can be checked without connecting.
    pub fn check(&self) -> Result<(), String> {
        opts(self).map(drop).map_err(|error| error.to_string())
    }

    /// The host of the database, if its connections are not encrypted.
    pub fn plain_text_host(&self) -> Option<String> {
        let opts = opts(self).ok()?;
        let is_plain = opts.ssl_opts().is_none() && opts.socket().is_none();
        is_plain.then(|| opts.ip_or_hostname().to_owned())
    }
}

/// Without the URL, which may have a password.
impl fmt::Debug for MySqlOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlOptions")
            .field("ca_file", &self.ca_file)
            .field("connections_max", &self.connections_max)
            .field("committers", &self.committers)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_plain_without_tls_or_a_socket() {
        for (url, expect) in [
            ("mysql://u:p@db:3306/nexo", Some("db")),
            ("mysql://u:p@127.0.0.1/nexo", Some("127.0.0.1")),
            ("mysql://u:p@db/nexo?require_ssl=true", None),
            ("mysql://u:p@localhost/nexo?socket=/run/mysqld.sock", None),
        ] {
            assert_eq!(MySqlOptions::new(url).plain_text_host().as_deref(), expect, "{url}");
        }
    }
}
