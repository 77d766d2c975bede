//! Which processes use the database: the servers, and a migration that exports or imports it. A
//! server holds a lease, a row that it renews; a server that was killed is recognized by the age of
//! its row. A migration that imports leaves a row that stays until all data is there, so that no
//! server starts on a part of it.
//!
//! A process writes its row first and looks for conflicts second, so of two that start at once one
//! sees the other.

use mysql_async::Value;

use super::core::Core;
use super::fault::SqlFault;
use super::pool::PooledConnection;
use super::sql::values;
use crate::archive::ArchiveError;

/// How often a lease is renewed, in seconds.
pub(crate) const RENEW_EVERY: u64 = 2;

/// Deletes the leases of servers that were killed.
pub(crate) const DELETE_EXPIRED: &str =
    "DELETE FROM nodes WHERE at < CURRENT_TIMESTAMP - INTERVAL 1 HOUR LIMIT 10000";

/// True of a row that is being renewed.
const FRESH: &str = "at > CURRENT_TIMESTAMP - INTERVAL 10 SECOND";

/// What this process does with the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeRole {
    Serve,
    /// A migration that exports.
    Read,
    /// A migration that imports.
    Fill,
}

/// The row that says that this process uses the database.
#[derive(Clone, Copy)]
pub(crate) struct NodeLease {
    role: NodeRole,
    name: [u8; 16],
}

const READING: &str = "reading";
const FILLING: &str = "filling";

/// Acquires the lease, unless another process excludes this role.
pub(crate) async fn acquire(core: &Core, role: NodeRole) -> Result<NodeLease, ArchiveError> {
    let mut retry = core.retry_policy();
    loop {
        match try_acquire(core, role).await {
            Ok(entered) => return entered,
            Err(fault) => retry.wait(fault).await?,
        }
    }
}

async fn try_acquire(
    core: &Core,
    role: NodeRole,
) -> Result<Result<NodeLease, ArchiveError>, SqlFault> {
    let lease = NodeLease { role, name: core.transaction_ids.next() };
    let mut connection = core.pool.acquire().await?;
    // Checked before anything is written: a database that is in use stays as it is.
    if let Some(reason) = lease.conflict(&mut connection, false).await? {
        return Ok(Err(reason));
    }
    if role == NodeRole::Fill {
        let sql = "INSERT INTO migrations (role) VALUES (?)";
        match connection.run(sql, values![FILLING]).await {
            Err(SqlFault::DuplicateKey(_)) => return Ok(Err(ArchiveError::Migrating)),
            done => done?,
        };
    } else {
        lease.renew(&mut connection).await?;
    }
    if let Some(reason) = lease.conflict(&mut connection, true).await? {
        lease.delete(&mut connection).await?;
        return Ok(Err(reason));
    }
    Ok(Ok(lease))
}

impl NodeLease {
    /// Returns why this role is excluded; `entered` if our own row is there already.
    async fn conflict(
        &self,
        connection: &mut PooledConnection,
        entered: bool,
    ) -> Result<Option<ArchiveError>, SqlFault> {
        let fills = self.role == NodeRole::Fill && entered;
        if let (false, Some(reason)) = (fills, filling(connection).await?) {
            return Ok(Some(reason));
        }
        if self.role == NodeRole::Serve {
            let fresh = format!("migrations WHERE role = ? AND {FRESH}");
            let is_read = any_row(connection, &fresh, values![READING]).await?;
            return Ok(is_read.then_some(ArchiveError::Migrating));
        }
        let serves = any_row(connection, &format!("nodes WHERE {FRESH}"), values![]).await?;
        Ok(serves.then_some(ArchiveError::InUse))
    }

    /// Writes our row, or sets its time to now.
    pub(crate) async fn renew(&self, connection: &mut PooledConnection) -> Result<(), SqlFault> {
        let (table, column, key) = self.row();
        let sql = format!(
            "INSERT INTO {table} ({column}) VALUES (?) \
             ON DUPLICATE KEY UPDATE at = CURRENT_TIMESTAMP"
        );
        connection.run(sql, vec![key]).await?;
        Ok(())
    }

    /// Deletes our row. The row of an import stays until all data is there.
    pub(crate) async fn release(&self, core: &Core) -> Result<(), SqlFault> {
        match self.role {
            NodeRole::Fill => Ok(()),
            NodeRole::Serve | NodeRole::Read => self.delete(&mut core.pool.acquire().await?).await,
        }
    }

    async fn delete(&self, connection: &mut PooledConnection) -> Result<(), SqlFault> {
        let (table, column, key) = self.row();
        connection.run(format!("DELETE FROM {table} WHERE {column} = ?"), vec![key]).await?;
        Ok(())
    }

    fn row(&self) -> (&'static str, &'static str, Value) {
        match self.role {
            NodeRole::Serve => ("nodes", "id", Value::from(&self.name[..])),
            NodeRole::Read => ("migrations", "role", Value::from(READING)),
            NodeRole::Fill => ("migrations", "role", Value::from(FILLING)),
        }
    }
}

/// Returns the error for a database with an import that is running or did not finish.
async fn filling(connection: &mut PooledConnection) -> Result<Option<ArchiveError>, SqlFault> {
    if !any_row(connection, "migrations WHERE role = ?", values![FILLING]).await? {
        return Ok(None);
    }
    let fresh = format!("migrations WHERE role = ? AND {FRESH}");
    let goes_on = any_row(connection, &fresh, values![FILLING]).await?;
    Ok(Some(if goes_on { ArchiveError::Migrating } else { ArchiveError::Unfinished }))
}

/// The same for a process that holds no lease yet.
pub(crate) async fn filling_conflict(core: &Core) -> Result<Option<ArchiveError>, SqlFault> {
    filling(&mut core.pool.acquire().await?).await
}

/// Whether a server uses the database now.
pub(crate) async fn is_served(core: &Core) -> Result<bool, SqlFault> {
    any_row(&mut core.pool.acquire().await?, &format!("nodes WHERE {FRESH}"), values![]).await
}

/// Deletes the row of the import: all data is there.
pub(crate) async fn end_filling(core: &Core) -> Result<(), SqlFault> {
    let mut connection = core.pool.acquire().await?;
    connection.run("DELETE FROM migrations WHERE role = ?", values![FILLING]).await?;
    Ok(())
}

async fn any_row(
    connection: &mut PooledConnection,
    of: &str,
    params: Vec<Value>,
) -> Result<bool, SqlFault> {
    Ok(!connection.rows(format!("SELECT 1 FROM {of} LIMIT 1"), params).await?.is_empty())
}
