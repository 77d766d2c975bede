//! A transaction whose outcome can be found out even if the answer to its commit is lost.
//!
//! Each transaction inserts a row with its own id into `acts`. If the answer to the commit is lost,
//! the node inserts a row with the same id that says *void*: the database accepts only one of the
//! two. While the first transaction is undecided it holds the lock on its id, so the second insert
//! waits, and then either fails, because the transaction is committed, or succeeds, and the
//! transaction can never commit.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mysql_async::{Params, Row};
use nexo_chat::store::StoreError;
use tokio::time::{Instant, sleep};

use super::core::Core;
use super::fault::{SqlFault, damaged};
use super::fields::Fields;
use super::pool::{Pool, PooledConnection};
use super::sql::{insert_rows, select_in, values};

/// How long the outcome of a commit is asked for.
const RESOLVE_WITHIN: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(100);

/// Ids for transactions: half random at start, half counted.
pub(crate) struct TransactionIds {
    random: u64,
    next: AtomicU64,
}

impl TransactionIds {
    pub(crate) fn new() -> Self {
        Self { random: RandomState::new().hash_one(0), next: AtomicU64::new(0) }
    }

    pub(crate) fn next(&self) -> [u8; 16] {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        ((u128::from(self.random) << 64) | u128::from(number)).to_be_bytes()
    }
}

/// An open transaction. Rolled back if it is dropped.
pub(crate) struct Transaction {
    connection: PooledConnection,
    pool: Arc<Pool>,
    id: [u8; 16],
}

impl Core {
    pub(crate) async fn begin(&self) -> Result<Transaction, SqlFault> {
        let mut connection = self.pool.acquire().await?;
        connection.begin().await?;
        Ok(Transaction {
            connection,
            pool: Arc::clone(&self.pool),
            id: self.transaction_ids.next(),
        })
    }

    /// How long a call is retried: for `patience`, and not at all if the database is known to be
    /// unreachable.
    pub(crate) fn retry_policy(&self) -> RetryPolicy {
        let patience = if self.pool.trouble().is_some() { Duration::ZERO } else { self.patience };
        RetryPolicy { until: Instant::now() + patience, count: 0 }
    }

    /// Returns the rows of a statement that only reads, and retries it if its connection broke.
    pub(crate) async fn rows(
        &self,
        sql: &str,
        params: impl Into<Params>,
    ) -> Result<Vec<Row>, StoreError> {
        let params = params.into();
        let mut retry = self.retry_policy();
        loop {
            let read = async { self.pool.acquire().await?.rows(sql, params.clone()).await };
            match read.await {
                Ok(rows) => return Ok(rows),
                Err(fault) => retry.wait(fault).await?,
            }
        }
    }
}

impl Transaction {
    pub(crate) async fn rows(
        &mut self,
        sql: impl AsRef<str>,
        params: impl Into<Params>,
    ) -> Result<Vec<Row>, SqlFault> {
        self.connection.rows(sql, params).await
    }

    pub(crate) async fn run(
        &mut self,
        sql: impl AsRef<str>,
        params: impl Into<Params>,
    ) -> Result<u64, SqlFault> {
        self.connection.run(sql, params).await
    }

    /// Returns the rows with any of these keys; `{}` in the statement stands for the list.
    pub(crate) async fn rows_by_keys(
        &mut self,
        sql: &str,
        keys: &[Vec<mysql_async::Value>],
    ) -> Result<Vec<Row>, SqlFault> {
        let mut found = Vec::new();
        for (sql, params) in select_in(sql, &[], keys) {
            found.append(&mut self.connection.rows(sql, params).await?);
        }
        Ok(found)
    }

    /// Writes rows; `{}` in the statement stands for the list.
    pub(crate) async fn write(
        &mut self,
        sql: &str,
        rows: Vec<Vec<mysql_async::Value>>,
    ) -> Result<(), SqlFault> {
        for (sql, params) in insert_rows(sql, rows) {
            self.connection.run(sql, params).await?;
        }
        Ok(())
    }

    pub(crate) async fn roll_back(mut self) -> Result<(), SqlFault> {
        self.connection.roll_back().await
    }

    /// Makes it durable. `Ok` means that it is; [`SqlFault::Retryable`] that it is not and never
    /// will be.
    pub(crate) async fn commit(mut self) -> Result<(), SqlFault> {
        let insert = "INSERT INTO acts (id, is_void) VALUES (?, 0)";
        self.connection.run(insert, values![&self.id[..]]).await?;
        let Self { mut connection, pool, id } = self;
        match connection.commit().await {
            Err(SqlFault::Unreachable(error)) => {
                drop(connection); // the connection is closed: if the commit is undecided, the database rolls it back
                tracing::warn!(target: "nexo::store", %error, "the answer to a commit was lost");
                resolve(&pool, id).await
            }
            answered => answered,
        }
    }
}

/// Finds out whether a transaction was committed.
async fn resolve(pool: &Arc<Pool>, id: [u8; 16]) -> Result<(), SqlFault> {
    let until = Instant::now() + RESOLVE_WITHIN;
    loop {
        match void_unless_committed(pool, id).await {
            Ok(true) => {
                return Err(SqlFault::Retryable("the connection broke before the commit".into()));
            }
            Ok(false) => return Ok(()),
            Err(SqlFault::Retryable(error) | SqlFault::Unreachable(error))
                if Instant::now() >= until =>
            {
                return Err(SqlFault::UnknownOutcome(error));
            }
            Err(SqlFault::Retryable(_) | SqlFault::Unreachable(_)) => sleep(PAUSE).await,
            Err(fault) => return Err(fault),
        }
    }
}

/// Voids a transaction that is not committed, and returns whether it is void.
async fn void_unless_committed(pool: &Arc<Pool>, id: [u8; 16]) -> Result<bool, SqlFault> {
    let mut connection = pool.acquire().await?;
    let insert = "INSERT INTO acts (id, is_void) VALUES (?, 1)";
    match connection.run(insert, values![&id[..]]).await {
        Ok(_) => return Ok(true),
        Err(SqlFault::DuplicateKey(_)) => {}
        Err(fault) => return Err(fault),
    }
    let rows = connection.rows("SELECT is_void FROM acts WHERE id = ?", values![&id[..]]).await?;
    let row = rows.into_iter().next().ok_or_else(|| damaged("the row of a transaction is gone"))?;
    Fields::from(row).bool()
}

/// Decides whether and when a transaction is tried again.
pub(crate) struct RetryPolicy {
    until: Instant,
    count: u32,
}

impl RetryPolicy {
    /// Returns when it is time to try again, or with the error if it is not.
    pub(crate) async fn wait(&mut self, fault: SqlFault) -> Result<(), StoreError> {
        Ok(self.wait_or_fault(fault).await?)
    }

    /// The same, with the fault itself.
    pub(crate) async fn wait_or_fault(&mut self, fault: SqlFault) -> Result<(), SqlFault> {
        match fault {
            SqlFault::UnknownOutcome(_) | SqlFault::Damaged(_) => return Err(fault),
            _ if Instant::now() >= self.until => return Err(fault),
            SqlFault::Retryable(_) | SqlFault::DuplicateKey(_) | SqlFault::Unreachable(_) => {}
        }
        // With jitter, so that transactions that conflicted do not meet again.
        let jitter = RandomState::new().hash_one(self.count) % 8;
        let pause = (1 << self.count.min(6)) + jitter;
        self.count += 1;
        sleep(Duration::from_millis(pause)).await;
        Ok(())
    }
}

/// Repeats an attempt at a transaction for as long as [`RetryPolicy`] allows.
macro_rules! with_retries {
    ($core:expr, $attempt:expr) => {{
        let mut retry = $core.retry_policy();
        loop {
            match $attempt.await {
                Ok(done) => return Ok(done),
                Err(fault) => retry.wait(fault).await?,
            }
        }
    }};
}
pub(crate) use with_retries;
