//! Who uses the database: the servers, and a migration that reads or fills it. A server leaves a
//! row that it keeps fresh; one that was killed is known by its age. A migration that fills the
//! database leaves one that stays until all data is there, so that nobody takes a part for the whole.
//!
//! Whoever comes writes first and looks second, so of two that come at once one sees the other.

use mysql_async::Value;

use super::core::Core;
use super::fault::Fault;
use super::pool::Lease;
use super::sql::values;
use crate::archive::ArchiveError;

/// How often a row is made fresh, in seconds.
pub(crate) const STAY_EVERY: u64 = 2;

/// Rows of servers that were killed.
pub(crate) const FORGET: &str =
    "DELETE FROM nodes WHERE at < CURRENT_TIMESTAMP - INTERVAL 1 HOUR LIMIT 10000";

/// What is true of a row that somebody keeps fresh.
const FRESH: &str = "at > CURRENT_TIMESTAMP - INTERVAL 10 SECOND";

/// What we do with the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A server.
    Serve,
    /// A migration takes everything out.
    Read,
    /// A migration puts everything in.
    Fill,
}

/// That we are there.
#[derive(Clone, Copy)]
pub(crate) struct Presence {
    role: Role,
    name: [u8; 16],
}

const READING: &str = "reading";
const FILLING: &str = "filling";

/// Says that we are there, if we may be.
pub(crate) async fn enter(core: &Core, role: Role) -> Result<Presence, ArchiveError> {
    let mut tries = core.tries();
    loop {
        match try_enter(core, role).await {
            Ok(entered) => return entered,
            Err(fault) => tries.again(fault).await?,
        }
    }
}

async fn try_enter(core: &Core, role: Role) -> Result<Result<Presence, ArchiveError>, Fault> {
    let presence = Presence { role, name: core.names.next() };
    let mut lease = core.pool.lease().await?;
    // Before anything is written: a database that is in use stays as it is.
    if let Some(reason) = presence.obstacle(&mut lease, false).await? {
        return Ok(Err(reason));
    }
    if role == Role::Fill {
        let sql = "INSERT INTO migrations (role) VALUES (?)";
        match lease.run(sql, values![FILLING]).await {
            Err(Fault::Taken(_)) => return Ok(Err(ArchiveError::Migrating)),
            done => done?,
        };
    } else {
        presence.stay(&mut lease).await?;
    }
    if let Some(reason) = presence.obstacle(&mut lease, true).await? {
        presence.erase(&mut lease).await?;
        return Ok(Err(reason));
    }
    Ok(Ok(presence))
}

impl Presence {
    /// Why we may not be there; `entered` if our own row is there already.
    async fn obstacle(
        &self,
        lease: &mut Lease,
        entered: bool,
    ) -> Result<Option<ArchiveError>, Fault> {
        let fills = self.role == Role::Fill && entered;
        if let (false, Some(reason)) = (fills, filling(lease).await?) {
            return Ok(Some(reason));
        }
        if self.role == Role::Serve {
            let fresh = format!("migrations WHERE role = ? AND {FRESH}");
            let is_read = is_any(lease, &fresh, values![READING]).await?;
            return Ok(is_read.then_some(ArchiveError::Migrating));
        }
        let serves = is_any(lease, &format!("nodes WHERE {FRESH}"), values![]).await?;
        Ok(serves.then_some(ArchiveError::InUse))
    }

    /// Keeps our row fresh.
    pub(crate) async fn stay(&self, lease: &mut Lease) -> Result<(), Fault> {
        let (table, column, key) = self.row();
        let sql = format!(
            "INSERT INTO {table} ({column}) VALUES (?) \
             ON DUPLICATE KEY UPDATE at = CURRENT_TIMESTAMP"
        );
        lease.run(sql, vec![key]).await?;
        Ok(())
    }

    /// Goes. That data was being put in stays to be seen until it is all there.
    pub(crate) async fn leave(&self, core: &Core) -> Result<(), Fault> {
        match self.role {
            Role::Fill => Ok(()),
            Role::Serve | Role::Read => self.erase(&mut core.pool.lease().await?).await,
        }
    }

    async fn erase(&self, lease: &mut Lease) -> Result<(), Fault> {
        let (table, column, key) = self.row();
        lease.run(format!("DELETE FROM {table} WHERE {column} = ?"), vec![key]).await?;
        Ok(())
    }

    fn row(&self) -> (&'static str, &'static str, Value) {
        match self.role {
            Role::Serve => ("nodes", "id", Value::from(&self.name[..])),
            Role::Read => ("migrations", "role", Value::from(READING)),
            Role::Fill => ("migrations", "role", Value::from(FILLING)),
        }
    }
}

/// What is to be said of a database that data is or was being put into.
async fn filling(lease: &mut Lease) -> Result<Option<ArchiveError>, Fault> {
    if !is_any(lease, "migrations WHERE role = ?", values![FILLING]).await? {
        return Ok(None);
    }
    let fresh = format!("migrations WHERE role = ? AND {FRESH}");
    let goes_on = is_any(lease, &fresh, values![FILLING]).await?;
    Ok(Some(if goes_on { ArchiveError::Migrating } else { ArchiveError::Unfinished }))
}

/// The same for whoever has no row yet.
pub(crate) async fn is_filling(core: &Core) -> Result<Option<ArchiveError>, Fault> {
    filling(&mut core.pool.lease().await?).await
}

/// Whether a server is there now.
pub(crate) async fn is_served(core: &Core) -> Result<bool, Fault> {
    is_any(&mut core.pool.lease().await?, &format!("nodes WHERE {FRESH}"), values![]).await
}

/// All data is there.
pub(crate) async fn filled(core: &Core) -> Result<(), Fault> {
    let mut lease = core.pool.lease().await?;
    lease.run("DELETE FROM migrations WHERE role = ?", values![FILLING]).await?;
    Ok(())
}

async fn is_any(lease: &mut Lease, of: &str, params: Vec<Value>) -> Result<bool, Fault> {
    Ok(!lease.rows(format!("SELECT 1 FROM {of} LIMIT 1"), params).await?.is_empty())
}
