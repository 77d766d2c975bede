//! Shares out the file descriptors of the process: the store and the database connections get theirs first,
//! connections of clients get the rest. Otherwise a flood of connections would leave none for the next file of the
//! store.

use anyhow::bail;
use nexo_gateway::listen::DESCRIPTORS_BESIDE;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::config::Config;

/// With fewer, the server does not start.
const LIMIT_MIN: usize = 256;
/// The store's cache of open table files, at most.
const TABLE_FILES_MAX: usize = 512;
/// What the store has open beside that cache: segments of the log, and the inputs and outputs of a flush and a
/// compaction, one for each sorted run.
const STORE_FILES: usize = 64;
/// Connections to the database beside its pool: the heartbeat of the node, and what is being replaced.
const DATABASE_BESIDE: usize = 8;
/// Connections to Redis, also to the nodes of a cluster.
const REDIS_CONNECTIONS: usize = 32;
/// Standard streams, listeners, the runtime, name lookups, and files that are read in passing.
const MARGIN: usize = 32;

/// What each part of the server may have open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DescriptorBudget {
    limit: usize,
    /// The setting `limits.connections_max`.
    asked: usize,
    /// Connections of clients.
    pub(crate) connections: usize,
}

impl DescriptorBudget {
    /// Shares out `limit` descriptors. Fails if there are too few for a server.
    pub(crate) fn new(limit: usize, config: &Config) -> anyhow::Result<Self> {
        if limit < LIMIT_MIN {
            bail!(
                "this process may have {limit} files and connections open, and a server needs at least \
                 {LIMIT_MIN}: raise the limit (`ulimit -n`, LimitNOFILE= in systemd, ulimits in a container)"
            );
        }
        let mut reserved = MARGIN + DESCRIPTORS_BESIDE;
        if config.store == "embedded" {
            reserved += table_files(limit) + STORE_FILES;
        } else if config.store != "memory" {
            reserved += config.mysql.connections_max + DATABASE_BESIDE;
        }
        if !config.redis.is_empty() {
            reserved += REDIS_CONNECTIONS;
        }
        let asked = config.limits.connections_max;
        let connections = limit.saturating_sub(reserved).min(asked);
        if connections == 0 {
            bail!(
                "this process may have {limit} files and connections open, and the store and the database \
                 need {reserved}: raise the limit (`ulimit -n`), or lower mysql.connections_max"
            );
        }
        Ok(Self { limit, asked, connections })
    }

    pub(crate) fn warn_if_clamped(&self) {
        let Self { limit, asked, connections, .. } = *self;
        if connections < asked {
            tracing::warn!(
                asked,
                limit,
                given = connections,
                "limits.connections_max is more than there are file descriptors for (`ulimit -n`)"
            );
        }
    }
}

/// Table files that the embedded store keeps open, with this limit.
pub(crate) fn table_files(limit: usize) -> usize {
    (limit / 8).min(TABLE_FILES_MAX)
}

/// The limit of open files.
pub(crate) fn limit() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Raises the limit of open files as far as the system allows, and returns it: every socket is one.
pub(crate) fn raise_limit() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
    self::limit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(config: &Config, limit: usize, expect: Option<usize>) {
        let given = DescriptorBudget::new(limit, config).ok().map(|budget| budget.connections);
        assert_eq!(given, expect, "{limit}");
    }

    #[test]
    fn connections_get_what_the_store_leaves() {
        let mut config = Config::default();
        check(&config, 255, None);
        check(&config, 256, Some(80));
        check(&config, 1024, Some(752));
        check(&config, 20_000, Some(19_344));
        check(&config, 1_048_576, Some(100_000));
        check(&config, usize::MAX, Some(100_000));
        config.limits.connections_max = 50;
        check(&config, 1024, Some(50));
    }

    #[test]
    fn a_node_needs_its_database_and_redis() {
        let mut config = Config { store: "mysql://db/nexo".into(), ..Config::default() };
        check(&config, 1024, Some(904));
        config.redis = "redis://r".into();
        check(&config, 1024, Some(872));
        config.mysql.connections_max = 2000;
        check(&config, 1024, None);
        assert!(DescriptorBudget::new(1024, &config).unwrap_err().to_string().contains("2120"));
    }
}
