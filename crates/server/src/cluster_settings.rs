//! Settings of what nodes share: a database and Redis.

use std::path::PathBuf;
use std::time::Duration;

use nexo_bus::{NodeId, RedisOptions};
use nexo_store::MySqlOptions;
use serde::{Deserialize, Serialize};

/// The database behind `store = "mysql://…"`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MySql {
    pub(crate) connections_max: usize,
    pub(crate) committers: usize,
    pub(crate) patience_ms: u64,
    pub(crate) statement_ms: u64,
    pub(crate) ca_file: String,
}

impl Default for MySql {
    fn default() -> Self {
        Self {
            connections_max: 32,
            committers: 4,
            patience_ms: 3_000,
            statement_ms: 5_000,
            ca_file: String::new(),
        }
    }
}

impl MySql {
    /// How the engine is told.
    pub(crate) fn options(&self, url: &str) -> MySqlOptions {
        MySqlOptions {
            ca_file: Some(&self.ca_file).filter(|file| !file.is_empty()).map(PathBuf::from),
            connections_max: self.connections_max,
            committers: self.committers,
            patience: Duration::from_millis(self.patience_ms),
            statement: Duration::from_millis(self.statement_ms),
            ..MySqlOptions::new(url)
        }
    }

    /// What is wrong with it.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.connections_max < self.committers + 4 {
            problems.push(
                "mysql.connections_max leaves at least 4 beside those of mysql.committers".into(),
            );
        }
        if self.committers == 0 || self.patience_ms == 0 || self.statement_ms == 0 {
            problems.push(
                "mysql.committers, mysql.patience_ms and mysql.statement_ms are at least 1".into(),
            );
        }
        problems
    }
}

/// What nodes say to each other through `redis`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Cluster {
    pub(crate) prefix: String,
    pub(crate) ca_file: String,
    pub(crate) node_ttl_ms: u64,
}

impl Default for Cluster {
    fn default() -> Self {
        Self { prefix: "nexo".into(), ca_file: String::new(), node_ttl_ms: 10_000 }
    }
}

impl Cluster {
    /// How the bus is told.
    pub(crate) fn options(&self, urls: &str, node: NodeId) -> RedisOptions {
        RedisOptions {
            ca_file: Some(&self.ca_file).filter(|file| !file.is_empty()).map(PathBuf::from),
            prefix: self.prefix.clone(),
            node_ttl: Duration::from_millis(self.node_ttl_ms),
            heartbeat: Duration::from_millis((self.node_ttl_ms / 3).max(1)),
            ..RedisOptions::new(urls, node)
        }
    }
}

/// An address as it may be shown: without the password in it.
pub(crate) fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let rest = rest.split('?').next().unwrap_or_default();
    match rest.rsplit_once('@') {
        Some((secret, rest)) => {
            let user = secret.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}:…@{rest}")
        }
        None => format!("{scheme}://{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (url, expect) in [
            ("embedded", "embedded"),
            ("mysql://db/nexo", "mysql://db/nexo"),
            ("mysql://nexo:a@b:c@db:3306/nexo", "mysql://nexo:…@db:3306/nexo"),
            ("redis://:secret@cache", "redis://:…@cache"),
            ("redis://cache/0?password=secret", "redis://cache/0"),
        ] {
            assert_eq!(shown(url), expect);
        }
    }
}
