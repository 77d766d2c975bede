//! The connection pool: a maximum number of connections, and a deadline for each call.
//!
//! A call takes the connection out of its [`PooledConnection`] and puts it back when the answer is
//! complete. If a deadline or a dropped future interrupts the call, the connection is dropped with
//! it: no caller ever reads the rest of another's answer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Params, Row, ServerError, SslOpts};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use super::fault::SqlFault;
use super::options::MySqlOptions;

/// Statements a connection keeps prepared. Lists come in few sizes, so there are few.
const STATEMENTS: usize = 100;
/// A connection that was idle for longer is not reused: the database closes it after a minute.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Connecting may take so long, however long the wait for a permit took.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// The database is shutting down, or closed this connection.
const SHUTDOWN_CODES: [u16; 4] = [1053, 1077, 1079, 1927];

pub(crate) struct Pool {
    opts: Opts,
    idle: Mutex<Vec<IdleConnection>>,
    permits: Arc<Semaphore>,
    /// Raised when a connection broke: older idle ones are most likely broken too.
    generation: AtomicU64,
    patience: Duration,
    statement_timeout: Duration,
    /// Why the last connection could not be made.
    trouble: Mutex<Option<String>>,
    /// Whether a connection was ever made. Before that, the caller reports that there is none.
    was_reached: AtomicBool,
}

struct IdleConnection {
    conn: Conn,
    generation: u64,
    since: Instant,
}

impl Pool {
    pub(crate) fn new(options: &MySqlOptions) -> Result<Arc<Self>, mysql_async::UrlError> {
        let opts = opts(options)?;
        Ok(Arc::new(Self {
            opts,
            idle: Mutex::default(),
            permits: Arc::new(Semaphore::new(options.connections_max)),
            generation: AtomicU64::new(0),
            patience: options.patience,
            statement_timeout: options.statement,
            trouble: Mutex::default(),
            was_reached: AtomicBool::new(false),
        }))
    }

    /// Takes an idle connection or makes a new one, as soon as a permit is free.
    pub(crate) async fn acquire(self: &Arc<Self>) -> Result<PooledConnection, SqlFault> {
        let by = Instant::now() + self.patience;
        let busy = |_| SqlFault::Unreachable("all connections to the database are busy".into());
        let permit = timeout_at(by, Arc::clone(&self.permits).acquire_owned()).await;
        let permit = permit.map_err(busy)?.map_err(|error| SqlFault::Unreachable(error.into()))?;
        let generation = self.generation.load(Ordering::SeqCst);
        let conn = match self.take_idle(generation) {
            Some(conn) => conn,
            None => self.connect(by.max(Instant::now() + CONNECT_WITHIN)).await?,
        };
        Ok(PooledConnection {
            conn: Some(conn),
            generation,
            in_transaction: false,
            statement_timeout: self.statement_timeout,
            pool: Arc::clone(self),
            permit,
        })
    }

    fn take_idle(&self, generation: u64) -> Option<Conn> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|it| it.generation == generation && it.since.elapsed() < IDLE_MAX);
        idle.pop().map(|it| it.conn)
    }

    async fn connect(&self, by: Instant) -> Result<Conn, SqlFault> {
        let made = match timeout_at(by, Conn::new(self.opts.clone())).await {
            Ok(made) => made.map_err(SqlFault::unreachable),
            Err(_) => Err(SqlFault::Unreachable("no connection to the database in time".into())),
        };
        self.set_trouble(made.as_ref().err());
        made
    }

    /// Sets whether the database answers, and logs when that changes. A database that never answered
    /// is not logged: the start fails, and its error says why.
    pub(crate) fn set_trouble(&self, trouble: Option<&SqlFault>) {
        let trouble = trouble.map(ToString::to_string);
        let mut known = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*known, &trouble) {
            (None, Some(error)) if self.was_reached.load(Ordering::Relaxed) => {
                tracing::warn!(target: "nexo::store", %error, "the database is away");
            }
            (Some(_), None) => tracing::info!(target: "nexo::store", "the database is back"),
            _ => {}
        }
        if trouble.is_none() {
            self.was_reached.store(true, Ordering::Relaxed);
        }
        *known = trouble;
    }

    /// Returns why the database is unreachable, if it is.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn discard_idle(&self, generation: u64) {
        // If several calls notice at once, the later ones change nothing.
        self.generation.fetch_max(generation + 1, Ordering::SeqCst);
    }

    fn give_back(&self, generation: u64, conn: Conn) {
        if generation == self.generation.load(Ordering::SeqCst) {
            let idle = IdleConnection { conn, generation, since: Instant::now() };
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(idle);
        }
    }
}

/// The options of a connection.
pub(crate) fn opts(options: &MySqlOptions) -> Result<Opts, mysql_async::UrlError> {
    let opts = Opts::from_url(&options.url)?;
    let tls = options.ca_file.as_ref().map(|file| {
        let base = opts.ssl_opts().cloned().unwrap_or_default();
        base.with_root_certs(vec![file.clone().into()])
    });
    let tls: Option<SslOpts> = tls.or_else(|| opts.ssl_opts().cloned());
    let opts = OptsBuilder::from_opts(opts)
        .ssl_opts(tls)
        .tcp_nodelay(true)
        .prefer_socket(false)
        .stmt_cache_size(STATEMENTS)
        .setup(vec![
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES', SESSION innodb_lock_wait_timeout = 2",
            // A node that loses its network in a transaction holds its locks for no longer than
            // this.
            "SET SESSION wait_timeout = 60",
        ]);
    Ok(opts.into())
}

/// A connection in use. A transaction that is not committed when this is dropped is rolled back.
pub(crate) struct PooledConnection {
    conn: Option<Conn>,
    generation: u64,
    in_transaction: bool,
    statement_timeout: Duration,
    pool: Arc<Pool>,
    #[expect(dead_code, reason = "held, not read")]
    permit: OwnedSemaphorePermit,
}

impl PooledConnection {
    pub(crate) fn set_statement_timeout(&mut self, timeout: Duration) {
        self.statement_timeout = timeout;
    }

    /// Runs a call on the connection, with a deadline.
    async fn call<T, F>(&mut self, work: impl FnOnce(Conn) -> F) -> Result<T, SqlFault>
    where
        F: Future<Output = (Conn, mysql_async::Result<T>)>,
    {
        let Some(conn) = self.conn.take() else {
            return Err(SqlFault::Unreachable("the connection to the database broke".into()));
        };
        let fault = match timeout(self.statement_timeout, work(conn)).await {
            Ok((conn, Ok(answer))) => {
                self.conn = Some(conn);
                return Ok(answer);
            }
            Ok((conn, Err(error))) => {
                // After an error of a statement the connection is still usable, unless the database
                // is shutting down.
                let is_ending = |error: &ServerError| SHUTDOWN_CODES.contains(&error.code);
                let is_broken = match &error {
                    mysql_async::Error::Server(error) => is_ending(error),
                    _ => true,
                };
                if !is_broken {
                    self.conn = Some(conn);
                    return Err(SqlFault::from(error));
                }
                SqlFault::from(error)
            }
            Err(_) => SqlFault::Unreachable("the database did not answer in time".into()),
        };
        self.pool.discard_idle(self.generation);
        Err(fault)
    }

    /// Returns the rows of a prepared statement.
    pub(crate) async fn rows(
        &mut self,
        sql: impl AsRef<str>,
        params: impl Into<Params>,
    ) -> Result<Vec<Row>, SqlFault> {
        let (sql, params) = (sql.as_ref().to_owned(), params.into());
        let asked = self.call(|mut conn| async move {
            let rows = conn.exec(sql, params).await;
            (conn, rows)
        });
        asked.await
    }

    /// Runs a prepared statement and returns how many rows it changed.
    pub(crate) async fn run(
        &mut self,
        sql: impl AsRef<str>,
        params: impl Into<Params>,
    ) -> Result<u64, SqlFault> {
        let (sql, params) = (sql.as_ref().to_owned(), params.into());
        let done = self.call(|mut conn| async move {
            let done = conn.exec_drop(sql, params).await;
            let touched = conn.affected_rows();
            (conn, done.map(|()| touched))
        });
        done.await
    }

    /// Runs a statement without preparing it.
    pub(crate) async fn run_unprepared(&mut self, sql: &str) -> Result<(), SqlFault> {
        let sql = sql.to_owned();
        let done = self.call(|mut conn| async move {
            let done = conn.query_drop(sql).await;
            (conn, done)
        });
        done.await
    }

    pub(crate) async fn begin(&mut self) -> Result<(), SqlFault> {
        self.in_transaction = true;
        self.run_unprepared("BEGIN").await
    }

    /// Commits. After an error it is unknown whether the commit happened.
    pub(crate) async fn commit(&mut self) -> Result<(), SqlFault> {
        self.run_unprepared("COMMIT").await?;
        self.in_transaction = false;
        Ok(())
    }

    /// Rolls back, and keeps the connection.
    pub(crate) async fn roll_back(&mut self) -> Result<(), SqlFault> {
        self.run_unprepared("ROLLBACK").await?;
        self.in_transaction = false;
        Ok(())
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        // A connection with an open transaction is dropped: the database rolls it back when it
        // notices.
        if let (Some(conn), false) = (self.conn.take(), self.in_transaction) {
            self.pool.give_back(self.generation, conn);
        }
    }
}
