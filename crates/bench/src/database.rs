//! Stores messages in a database: through the engine, and as plain multi-row inserts of the same rows
//! over as many connections, in batches as large as the engine's.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, Params, Value};
use nexo_chat::ids::{ClientMsgId, ConversationId, Millis, UserId};
use nexo_chat::model::{Content, Draft};
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{Appended, Store};
use serde::Serialize;

use crate::measure::Percentiles;
use crate::options::DatabaseOptions;
use crate::plot::PlottedPhase;
use crate::report::BenchReport;
use crate::table::{heads, step};

/// Figures of a database.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DatabaseReport {
    /// Messages per second through the engine.
    pub engine_per_second: f64,
    /// From calling the engine to being durable.
    pub saved: Percentiles,
    /// Messages per transaction of the engine, on average.
    pub batch: f64,
    /// Rows of messages alone, inserted per second.
    pub messages_per_second: f64,
    /// The same rows the engine writes: the message, its conversation's head, its sender's cursors.
    pub same_rows_per_second: f64,
    /// Transactions at the same time.
    pub committers: usize,
    /// Pairs of people.
    pub senders: usize,
    /// The engine's share of the same rows.
    pub p8_ratio: f64,
}

/// Measures an engine on a database, then the database.
pub async fn database(options: &DatabaseOptions, store: Arc<dyn Store>) -> Result<DatabaseReport> {
    options.check()?;
    let opts = Opts::from_url(&options.url)?;
    let mut conn = Conn::new(opts.clone()).await.context("the database")?;
    let people: Option<u64> = conn.query_first("SELECT COUNT(*) FROM users").await?;
    let stored: Option<u64> = conn.query_first("SELECT COUNT(*) FROM messages").await?;
    ensure!(
        (people, stored) == (Some(0), Some(0)),
        "there is something in this database: give one to throw away"
    );
    let (mut times, mut took) = (Vec::new(), Duration::ZERO);
    let (mut batch, mut messages, mut same_rows) =
        (1.0, Throughput::default(), Throughput::default());
    // Alternating, so that other load on the machine slows all of them alike.
    for round in 0..ROUNDS {
        let (mut some, lasted) = engine(options, &store, round).await?;
        times.append(&mut some);
        took += lasted;
        let batches: Option<u64> = conn.query_first("SELECT COUNT(*) FROM acts").await?;
        batch = average(times.len(), batches.unwrap_or(1));
        same_rows.add(bare(options, &opts, batch, true).await?);
        messages.add(bare(options, &opts, batch, false).await?);
    }
    let engine_per_second = rate(times.len(), took);
    let same_rows_per_second = same_rows.per_second();
    Ok(DatabaseReport {
        engine_per_second,
        saved: Percentiles::of_times(times)?,
        batch,
        messages_per_second: messages.per_second(),
        same_rows_per_second,
        committers: options.committers,
        senders: options.senders,
        p8_ratio: engine_per_second / same_rows_per_second,
    })
}

/// How often the engine and the plain inserts alternate.
const ROUNDS: u32 = 4;

/// A count and the time it took.
#[derive(Default)]
struct Throughput(usize, Duration);

impl Throughput {
    fn add(&mut self, (count, took): (usize, Duration)) {
        self.0 += count;
        self.1 += took;
    }

    fn per_second(&self) -> f64 {
        rate(self.0, self.1)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "a mean needs no more digits")]
fn average(count: usize, of: u64) -> f64 {
    count as f64 / of.max(1) as f64
}

/// Every sender stores one message after the other.
async fn engine(
    options: &DatabaseOptions,
    store: &Arc<dyn Store>,
    round: u32,
) -> Result<(Vec<Duration>, Duration)> {
    let since = Instant::now();
    let until = since + options.duration / ROUNDS;
    let senders: Vec<_> = (0..options.senders)
        .map(|number| {
            let (store, text) = (Arc::clone(store), "x".repeat(options.size));
            tokio::spawn(async move {
                let (from, to) = people(number);
                let conversation = ConversationId::private(&from, &to);
                let mut times = Vec::new();
                for count in 0_u64.. {
                    let began = Instant::now();
                    let draft = Draft {
                        conversation: conversation.clone(),
                        sender: from.clone(),
                        client_id: ClientMsgId::parse(&format!("bench-{round}-{count}"))?,
                        content: Content::text(text.clone()),
                        cleaned: None,
                        sent_at: Millis(1_700_000_000_000 + count),
                        origin: None,
                        marks_read: true,
                    };
                    let appended = store.append(Permit::for_tests(), draft).await?;
                    ensure!(matches!(appended, Appended::Stored(_)), "not stored: {appended:?}");
                    times.push(began.elapsed());
                    if Instant::now() >= until {
                        break;
                    }
                }
                Ok(times)
            })
        })
        .collect();
    let mut times = Vec::new();
    for sender in senders {
        times.append(&mut sender.await??);
    }
    Ok((times, since.elapsed()))
}

fn people(number: usize) -> (UserId, UserId) {
    let user = |name: &str| UserId::parse(&format!("{name}-{number}"));
    (
        user("sender").unwrap_or_else(|_| UserId::system()),
        user("z").unwrap_or_else(|_| UserId::system()),
    )
}

/// Inserts rows in transactions of `batch`, over as many connections as the engine has committers.
async fn bare(
    options: &DatabaseOptions,
    opts: &Opts,
    batch: f64,
    all: bool,
) -> Result<(usize, Duration)> {
    let mut conn = Conn::new(opts.clone()).await?;
    for table in ["messages", "conversations", "members"] {
        conn.query_drop(format!("DROP TABLE IF EXISTS bare_{table}")).await?;
        conn.query_drop(format!("CREATE TABLE bare_{table} LIKE {table}")).await?;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 256")]
    let batch = (batch.round() as usize).clamp(1, 256);
    let since = Instant::now();
    let until = since + options.duration / ROUNDS;
    let writers: Vec<_> = (0..options.committers)
        .map(|writer| {
            let (opts, size) = (opts.clone(), options.size);
            tokio::spawn(async move { write(&opts, writer, batch, size, all, until).await })
        })
        .collect();
    let mut count = 0;
    for writer in writers {
        count += writer.await??;
    }
    Ok((count, since.elapsed()))
}

async fn write(
    opts: &Opts,
    writer: usize,
    batch: usize,
    size: usize,
    all: bool,
    until: Instant,
) -> Result<usize> {
    let mut conn = Conn::new(opts.clone()).await?;
    conn.query_drop("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await?;
    let marks = |width: usize| vec![format!("({})", vec!["?"; width].join(",")); batch].join(",");
    let messages = format!(
        "INSERT INTO bare_messages (conversation_id, seq, id, sender, client_id, sent_at, kind, \
         body, details, fingerprint) VALUES {}",
        marks(10),
    );
    let heads = format!(
        "INSERT INTO bare_conversations (id, max_seq, change_seq, newest_at) VALUES {} \
         ON DUPLICATE KEY UPDATE max_seq = VALUES(max_seq), newest_at = VALUES(newest_at)",
        marks(4),
    );
    let cursors = format!(
        "INSERT INTO bare_members (user_id, conversation_id, min_seq, min_change_seq, since, \
         delivered_seq, read_seq, own_first, own_last, quiet_seq) VALUES {} ON DUPLICATE KEY \
         UPDATE delivered_seq = VALUES(delivered_seq), read_seq = VALUES(read_seq), \
         own_last = VALUES(own_last)",
        marks(10),
    );
    let mut count = 0;
    for round in 1_u64.. {
        let (mut rows, mut tops, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..batch {
            let (from, to) = people(writer * batch + number);
            let conversation = ConversationId::private(&from, &to);
            let client_id = ClientMsgId::parse(&format!("bench-{round}"))?;
            let id = nexo_chat::ids::MessageId::of(&from, &client_id).0;
            let row: [Value; 10] = [
                conversation.as_str().into(),
                round.into(),
                (&id[..]).into(),
                from.as_str().into(),
                client_id.as_str().into(),
                round.into(),
                1.into(),
                vec![b'x'; size].into(),
                Value::NULL,
                (&id[..]).into(),
            ];
            rows.extend(row);
            tops.extend([conversation.as_str().into(), round.into(), 0.into(), round.into()]);
            let end: [Value; 10] = [
                from.as_str().into(),
                conversation.as_str().into(),
                1.into(),
                1.into(),
                0.into(),
                round.into(),
                round.into(),
                1.into(),
                round.into(),
                0.into(),
            ];
            ends.extend(end);
        }
        conn.query_drop("BEGIN").await?;
        conn.exec_drop(&messages, Params::Positional(rows)).await?;
        if all {
            conn.exec_drop(&heads, Params::Positional(tops)).await?;
            conn.exec_drop(&cursors, Params::Positional(ends)).await?;
        }
        conn.query_drop("COMMIT").await?;
        count += batch;
        if Instant::now() >= until {
            break;
        }
    }
    Ok(count)
}

impl BenchReport for DatabaseReport {
    fn is_clean(&self) -> bool {
        true // whatever was not stored ended the run
    }

    fn plotted_phases(&self) -> Vec<PlottedPhase<'_>> {
        Vec::new()
    }
}

impl fmt::Display for DatabaseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "messages into a database: {} pairs, {} transactions at once, {:.0} messages in each\n",
            self.senders, self.committers, self.batch
        )?;
        heads(f)?;
        step(f, "saved", Some(self.engine_per_second), &self.saved)?;
        writeln!(
            f,
            "\nthe same rows, inserted plainly      {:>9.0} messages/s",
            self.same_rows_per_second
        )?;
        writeln!(
            f,
            "the rows of messages alone           {:>9.0} messages/s",
            self.messages_per_second
        )?;
        let alone = self.engine_per_second / self.messages_per_second;
        writeln!(
            f,
            "\nP8 {:.2} of the same rows (goal: at least 0.7), {alone:.2} of messages alone",
            self.p8_ratio
        )
    }
}
