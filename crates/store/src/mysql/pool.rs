//! Connections to the database: so many at most, each call with a deadline.
//!
//! A call takes the connection out of its lease and puts it back when the answer is whole. Whatever
//! interrupts it, a deadline or a caller who is gone, drops the connection with it: nobody ever
//! reads the rest of somebody else's answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, Params, Row, ServerError, SslOpts};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use super::fault::Fault;
use super::options::MySqlOptions;

/// Statements a connection keeps prepared. Lists come in few sizes, so there are few.
const STATEMENTS: usize = 100;
/// A connection that was idle for longer is not used again: the database ends it after a minute.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Connecting may take so long, however long it took to be allowed to.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// The database is going down, or ended this connection.
const ENDING: [u16; 4] = [1053, 1077, 1079, 1927];

pub(crate) struct Pool {
    opts: Opts,
    idle: Mutex<Vec<Idle>>,
    permits: Arc<Semaphore>,
    /// Raised when a connection broke: older idle ones are broken too, most likely.
    generation: AtomicU64,
    patience: Duration,
    statement: Duration,
    /// Why the last connection could not be made.
    trouble: Mutex<Option<String>>,
}

/// A connection that nobody uses, of which generation, and since when.
struct Idle {
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
            statement: options.statement,
            trouble: Mutex::default(),
        }))
    }

    /// A connection, as soon as there is one.
    pub(crate) async fn lease(self: &Arc<Self>) -> Result<Lease, Fault> {
        let by = Instant::now() + self.patience;
        let busy = |_| Fault::Away("all connections to the database are busy".into());
        let permit = timeout_at(by, Arc::clone(&self.permits).acquire_owned()).await;
        let permit = permit.map_err(busy)?.map_err(|error| Fault::Away(error.into()))?;
        let generation = self.generation.load(Ordering::SeqCst);
        let conn = match self.idle_one(generation) {
            Some(conn) => conn,
            None => self.connect(by.max(Instant::now() + CONNECT_WITHIN)).await?,
        };
        Ok(Lease {
            conn: Some(conn),
            generation,
            in_transaction: false,
            statement: self.statement,
            pool: Arc::clone(self),
            permit,
        })
    }

    fn idle_one(&self, generation: u64) -> Option<Conn> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|it| it.generation == generation && it.since.elapsed() < IDLE_MAX);
        idle.pop().map(|it| it.conn)
    }

    async fn connect(&self, by: Instant) -> Result<Conn, Fault> {
        let made = match timeout_at(by, Conn::new(self.opts.clone())).await {
            Ok(made) => made.map_err(Fault::away),
            Err(_) => Err(Fault::Away("no connection to the database in time".into())),
        };
        self.note(made.as_ref().err());
        made
    }

    /// Notes whether the database answers.
    pub(crate) fn note(&self, trouble: Option<&Fault>) {
        let trouble = trouble.map(ToString::to_string);
        let mut known = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*known, &trouble) {
            (None, Some(error)) => {
                tracing::warn!(target: "nexo::store", %error, "the database is away");
            }
            (Some(_), None) => tracing::info!(target: "nexo::store", "the database is back"),
            _ => {}
        }
        *known = trouble;
    }

    /// Why there are no connections, if there are none.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn broke(&self, generation: u64) {
        // Of several that notice, the later ones change nothing.
        self.generation.fetch_max(generation + 1, Ordering::SeqCst);
    }

    fn give_back(&self, generation: u64, conn: Conn) {
        if generation == self.generation.load(Ordering::SeqCst) {
            let idle = Idle { conn, generation, since: Instant::now() };
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(idle);
        }
    }
}

/// How a connection is made.
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
            // A node that is cut off in a transaction holds its locks for no longer than this.
            "SET SESSION wait_timeout = 60",
        ]);
    Ok(opts.into())
}

/// A connection for a while. A transaction that is not committed when it is dropped never was.
pub(crate) struct Lease {
    conn: Option<Conn>,
    generation: u64,
    in_transaction: bool,
    /// How long a statement may take.
    statement: Duration,
    pool: Arc<Pool>,
    #[expect(dead_code, reason = "held, not read")]
    permit: OwnedSemaphorePermit,
}

impl Lease {
    /// Lets statements take longer from now on.
    pub(crate) fn be_patient(&mut self, statement: Duration) {
        self.statement = statement;
    }

    /// Does something with the connection, in time.
    async fn call<T, F>(&mut self, work: impl FnOnce(Conn) -> F) -> Result<T, Fault>
    where
        F: Future<Output = (Conn, mysql_async::Result<T>)>,
    {
        let Some(conn) = self.conn.take() else {
            return Err(Fault::Away("the connection to the database broke".into()));
        };
        let fault = match timeout(self.statement, work(conn)).await {
            Ok((conn, Ok(answer))) => {
                self.conn = Some(conn);
                return Ok(answer);
            }
            Ok((conn, Err(error))) => {
                // Whoever is told no can go on asking, unless the database is going down.
                let is_ending = |told: &ServerError| ENDING.contains(&told.code);
                let is_broken = match &error {
                    mysql_async::Error::Server(told) => is_ending(told),
                    _ => true,
                };
                if !is_broken {
                    self.conn = Some(conn);
                    return Err(Fault::from(error));
                }
                Fault::from(error)
            }
            Err(_) => Fault::Away("the database did not answer in time".into()),
        };
        self.pool.broke(self.generation);
        Err(fault)
    }

    /// The rows of a prepared statement.
    pub(crate) async fn rows(
        &mut self,
        sql: impl AsRef<str>,
        params: impl Into<Params>,
    ) -> Result<Vec<Row>, Fault> {
        let (sql, params) = (sql.as_ref().to_owned(), params.into());
        let asked = self.call(|mut conn| async move {
            let rows = conn.exec(sql, params).await;
            (conn, rows)
        });
        asked.await
    }

    /// How many rows a prepared statement touched.
    pub(crate) async fn run(
        &mut self,
        sql: impl AsRef<str>,
        params: impl Into<Params>,
    ) -> Result<u64, Fault> {
        let (sql, params) = (sql.as_ref().to_owned(), params.into());
        let done = self.call(|mut conn| async move {
            let done = conn.exec_drop(sql, params).await;
            let touched = conn.affected_rows();
            (conn, done.map(|()| touched))
        });
        done.await
    }

    /// Does a statement that is not prepared.
    pub(crate) async fn plain(&mut self, sql: &str) -> Result<(), Fault> {
        let sql = sql.to_owned();
        let done = self.call(|mut conn| async move {
            let done = conn.query_drop(sql).await;
            (conn, done)
        });
        done.await
    }

    /// Begins a transaction.
    pub(crate) async fn begin(&mut self) -> Result<(), Fault> {
        self.in_transaction = true;
        self.plain("BEGIN").await
    }

    /// Ends it. An error says nothing about whether it happened.
    pub(crate) async fn commit(&mut self) -> Result<(), Fault> {
        self.plain("COMMIT").await?;
        self.in_transaction = false;
        Ok(())
    }

    /// Ends it without an effect, and keeps the connection.
    pub(crate) async fn roll_back(&mut self) -> Result<(), Fault> {
        self.plain("ROLLBACK").await?;
        self.in_transaction = false;
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // One with an open transaction is dropped: the database rolls it back when it notices.
        if let (Some(conn), false) = (self.conn.take(), self.in_transaction) {
            self.pool.give_back(self.generation, conn);
        }
    }
}
