//! A transaction whose outcome can be found out, whatever happens to its answer.
//!
//! Each leaves a row with a name of its own in `acts`. If the answer to the commit is lost, whoever
//! sent it writes a row of that name that says *void*: the database lets one of the two in. The
//! first still holds its name while it is undecided, so the second waits, and learns what became of
//! it; and if it never was, it never will be.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mysql_async::{Params, Row};
use nexo_chat::store::StoreError;
use tokio::time::{Instant, sleep};

use super::core::Core;
use super::fault::{Fault, damaged};
use super::pool::{Lease, Pool};
use super::row::Fields;
use super::sql::{looking, values, writing};

/// How long the outcome of a commit is asked for.
const RESOLVE_WITHIN: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(100);

/// Names for transactions: half drawn at start, half counted.
pub(crate) struct Names {
    drawn: u64,
    next: AtomicU64,
}

impl Names {
    pub(crate) fn new() -> Self {
        Self { drawn: RandomState::new().hash_one(0), next: AtomicU64::new(0) }
    }

    pub(crate) fn next(&self) -> [u8; 16] {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        ((u128::from(self.drawn) << 64) | u128::from(number)).to_be_bytes()
    }
}

/// A transaction under way. Dropped without an end, it never was.
pub(crate) struct Act {
    lease: Lease,
    pool: Arc<Pool>,
    name: [u8; 16],
}

impl Core {
    /// Begins a transaction.
    pub(crate) async fn begin(&self) -> Result<Act, Fault> {
        let mut lease = self.pool.lease().await?;
        lease.begin().await?;
        Ok(Act { lease, pool: Arc::clone(&self.pool), name: self.names.next() })
    }

    /// How often something is tried: for as long as there is patience, and once if the database
    /// is known to be away.
    pub(crate) fn tries(&self) -> Tries {
        let patience = if self.pool.trouble().is_some() { Duration::ZERO } else { self.patience };
        Tries { until: Instant::now() + patience, count: 0 }
    }

    /// The rows of a statement that only reads, tried again if its connection broke.
    pub(crate) async fn rows(
        &self,
        sql: &str,
        params: impl Into<Params>,
    ) -> Result<Vec<Row>, StoreError> {
        let params = params.into();
        let mut tries = self.tries();
        loop {
            let asked = async { self.pool.lease().await?.rows(sql, params.clone()).await };
            match asked.await {
                Ok(rows) => return Ok(rows),
                Err(fault) => tries.again(fault).await?,
            }
        }
    }
}

impl Act {
    pub(crate) async fn rows(
        &mut self,
        sql: impl AsRef<str>,
        params: impl Into<Params>,
    ) -> Result<Vec<Row>, Fault> {
        self.lease.rows(sql, params).await
    }

    pub(crate) async fn run(
        &mut self,
        sql: impl AsRef<str>,
        params: impl Into<Params>,
    ) -> Result<u64, Fault> {
        self.lease.run(sql, params).await
    }

    /// The rows with any of these keys; `{}` in the statement stands for the list.
    pub(crate) async fn look(
        &mut self,
        sql: &str,
        keys: &[Vec<mysql_async::Value>],
    ) -> Result<Vec<Row>, Fault> {
        let mut found = Vec::new();
        for (sql, params) in looking(sql, &[], keys) {
            found.append(&mut self.lease.rows(sql, params).await?);
        }
        Ok(found)
    }

    /// Writes rows; `{}` in the statement stands for the list.
    pub(crate) async fn write(
        &mut self,
        sql: &str,
        rows: Vec<Vec<mysql_async::Value>>,
    ) -> Result<(), Fault> {
        for (sql, params) in writing(sql, rows) {
            self.lease.run(sql, params).await?;
        }
        Ok(())
    }

    /// Ends it without an effect.
    pub(crate) async fn roll_back(mut self) -> Result<(), Fault> {
        self.lease.roll_back().await
    }

    /// Makes it durable. If this returns, it is; [`Fault::Again`] means that it is not and never
    /// will be.
    pub(crate) async fn commit(mut self) -> Result<(), Fault> {
        let noted = "INSERT INTO acts (id, is_void) VALUES (?, 0)";
        self.lease.run(noted, values![&self.name[..]]).await?;
        let Self { mut lease, pool, name } = self;
        match lease.commit().await {
            Err(Fault::Away(error)) => {
                drop(lease); // its connection is closed: whatever is undecided now is rolled back
                tracing::warn!(target: "nexo::store", %error, "the answer to a commit was lost");
                resolve(&pool, name).await
            }
            answered => answered,
        }
    }
}

/// Finds out what became of a transaction.
async fn resolve(pool: &Arc<Pool>, name: [u8; 16]) -> Result<(), Fault> {
    let until = Instant::now() + RESOLVE_WITHIN;
    loop {
        match void(pool, name).await {
            Ok(true) => {
                return Err(Fault::Again("the connection broke before the commit".into()));
            }
            Ok(false) => return Ok(()),
            Err(Fault::Again(error) | Fault::Away(error)) if Instant::now() >= until => {
                return Err(Fault::Unknown(error));
            }
            Err(Fault::Again(_) | Fault::Away(_)) => sleep(PAUSE).await,
            Err(fault) => return Err(fault),
        }
    }
}

/// Makes a transaction void if it is not durable, and tells whether it is void.
async fn void(pool: &Arc<Pool>, name: [u8; 16]) -> Result<bool, Fault> {
    let mut lease = pool.lease().await?;
    let voided = "INSERT INTO acts (id, is_void) VALUES (?, 1)";
    match lease.run(voided, values![&name[..]]).await {
        Ok(_) => return Ok(true),
        Err(Fault::Taken(_)) => {}
        Err(fault) => return Err(fault),
    }
    let rows = lease.rows("SELECT is_void FROM acts WHERE id = ?", values![&name[..]]).await?;
    let row = rows.into_iter().next().ok_or_else(|| damaged("an act is gone"))?;
    Fields::from(row).bool()
}

/// Tells whether to try again.
pub(crate) struct Tries {
    until: Instant,
    count: u32,
}

impl Tries {
    /// Returns when it is time to try again, or with the error if it is not worth it.
    pub(crate) async fn again(&mut self, fault: Fault) -> Result<(), StoreError> {
        Ok(self.again_or(fault).await?)
    }

    /// The same, with the fault itself.
    pub(crate) async fn again_or(&mut self, fault: Fault) -> Result<(), Fault> {
        match fault {
            Fault::Unknown(_) | Fault::Damaged(_) => return Err(fault),
            _ if Instant::now() >= self.until => return Err(fault),
            Fault::Again(_) | Fault::Taken(_) | Fault::Away(_) => {}
        }
        // Those who were in each other's way should not meet again.
        let jitter = RandomState::new().hash_one(self.count) % 8;
        let pause = (1 << self.count.min(6)) + jitter;
        self.count += 1;
        sleep(Duration::from_millis(pause)).await;
        Ok(())
    }
}
