//! Idle connections: how fast they are opened, what each costs in memory, and whether all of them
//! stay open.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::{SinkExt, StreamExt};
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

use crate::accounts::sign_up;
use crate::codec::{Codec, Incoming};
use crate::dialects::{DialectChoice, Recipient, Typed};
use crate::endpoint::Endpoint;
use crate::http::authority;
use crate::measure::Load;
use crate::options::ConnectOptions;
use crate::plot::PlottedPhase;
use crate::private;
use crate::progress::{ProgressDisplay, run_all};
use crate::report::BenchReport;
use crate::socket::{CONNECTING_AT_ONCE, Socket, connect as open};
use crate::table::write_load;

/// How long a server takes to become idle, so that its memory can be read.
const SETTLE: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);

/// Figures of many idle connections.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConnectReport {
    /// The server's URL.
    pub target: String,
    pub connections: usize,
    /// Seconds until all were connected and authenticated.
    pub seconds: f64,
    pub per_second: f64,
    /// The server's memory before and after; unknown for a remote server.
    pub memory_bytes: Option<(u64, u64)>,
    pub bytes_per_connection: Option<f64>,
    /// Seconds they stayed open.
    pub held_seconds: f64,
    /// Connections that did not answer a ping at the end, by error.
    pub gone: BTreeMap<String, u64>,
    /// The load on further connections meanwhile, with `--active`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<Load>,
    /// As many connections to the bare relay, with `--baseline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Box<ConnectReport>>,
    /// Memory of a connection ÷ that of a bare one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p4_memory: Option<f64>,
    #[serde(skip)]
    window: u64,
}

/// Opens idle connections to a server, and active ones with `--active`.
pub async fn connect(options: &ConnectOptions, endpoint: &Endpoint) -> Result<ConnectReport> {
    options.check()?;
    let authority = authority(&endpoint.address)?;
    let progress = ProgressDisplay::new(!options.target.output.json);
    let users = sign_up(&authority, options.connections, progress).await?;
    let authority = authority.as_str();
    let connecting = users.iter().map(|user| DialectChoice::Typed.connect(authority, user));
    let (mut connected, idle) = connect_all(connecting, endpoint, progress).await?;
    let since = Instant::now();
    if options.active > 0 {
        let (span, flow) = (&options.span, &options.flow);
        let pairs = private::connected(
            [authority; 2],
            DialectChoice::Typed,
            options.active,
            flow.size,
            progress,
        )
        .await?;
        let phase = private::phase(pairs, "active pairs", span, flow, endpoint, progress);
        connected.active = Some(phase.await?.1.close());
        connected.window = flow.window;
    }
    sleep(options.hold.saturating_sub(since.elapsed())).await;
    connected.held_seconds = since.elapsed().as_secs_f64();
    connected.gone = idle.end().await;
    Ok(connected)
}

/// Opens as many connections to a bare relay.
pub async fn bare_connect(options: &ConnectOptions, relay: &Endpoint) -> Result<ConnectReport> {
    let authority = authority(&relay.address)?;
    let progress = ProgressDisplay::new(!options.target.output.json);
    let paths: Vec<String> = (0..options.connections).map(|number| format!("/{number}")).collect();
    let connecting = paths.iter().map(|path| open(&authority, path));
    let (mut connected, idle) = connect_all(connecting, relay, progress).await?;
    connected.gone = idle.end().await;
    Ok(connected)
}

/// Opens all connections, and measures their time and memory.
async fn connect_all<F>(
    connecting: impl ExactSizeIterator<Item = F>,
    endpoint: &Endpoint,
    progress: ProgressDisplay,
) -> Result<(ConnectReport, IdleConnections)>
where
    F: Future<Output = Result<Socket>>,
{
    let count = connecting.len();
    let mut idle = IdleConnections::default();
    sleep(SETTLE).await;
    let before = endpoint.resident_bytes();
    let since = Instant::now();
    let sockets = run_all(connecting, CONNECTING_AT_ONCE, "connections", progress).await?;
    let seconds = since.elapsed().as_secs_f64();
    idle.extend(sockets);
    sleep(SETTLE).await;
    let memory_bytes = before.zip(endpoint.resident_bytes());
    #[expect(clippy::cast_precision_loss, reason = "bytes and counts of one process")]
    let each = |(before, after): (u64, u64)| after.saturating_sub(before) as f64 / count as f64;
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
    let per_second = count as f64 / seconds;
    let connected = ConnectReport {
        target: endpoint.address.clone(),
        connections: count,
        seconds,
        per_second,
        memory_bytes,
        bytes_per_connection: memory_bytes.map(each),
        held_seconds: 0.0,
        gone: BTreeMap::new(),
        active: None,
        baseline: None,
        p4_memory: None,
        window: 0,
    };
    Ok((connected, idle))
}

/// Connections that only answer pings.
pub(crate) struct IdleConnections {
    stop: watch::Sender<bool>,
    keepers: JoinSet<Result<()>>,
}

impl Default for IdleConnections {
    fn default() -> Self {
        Self { stop: watch::Sender::new(false), keepers: JoinSet::new() }
    }
}

impl IdleConnections {
    pub(crate) fn extend(&mut self, sockets: Vec<Socket>) {
        for socket in sockets {
            self.keepers.spawn(keep(socket, self.stop.subscribe()));
        }
    }

    /// Pings every connection; returns the errors of those that do not answer.
    pub(crate) async fn end(mut self) -> BTreeMap<String, u64> {
        self.stop.send_replace(true);
        let mut gone = BTreeMap::new();
        while let Some(ended) = self.keepers.join_next().await {
            let ended = ended.map_err(anyhow::Error::from).flatten();
            if let Err(error) = ended {
                *gone.entry(format!("{error:#}")).or_default() += 1;
            }
        }
        gone
    }
}

/// Reads until stopped, then checks that the server still answers a ping.
async fn keep(mut socket: Socket, mut stopped: watch::Receiver<bool>) -> Result<()> {
    let codec = Typed::new(Recipient::Group(""), 0);
    loop {
        tokio::select! {
            frame = socket.next() => {
                let frame = frame.context("closed by the server")??;
                let mut asked = false;
                codec.read(&frame, &mut |incoming| asked |= incoming == Incoming::Ping);
                if asked {
                    socket.send(codec.pong()).await?;
                }
            }
            changed = stopped.changed() => {
                changed?;
                break;
            }
        }
    }
    socket.send(Message::Ping(Vec::new().into())).await?;
    let answer = async {
        while let Some(frame) = socket.next().await {
            if matches!(frame?, Message::Pong(_)) {
                return Ok(true);
            }
        }
        anyhow::Ok(false)
    };
    let is_there = timeout(PATIENCE, answer).await.context("no answer to a ping")??;
    ensure!(is_there, "closed by the server");
    Ok(())
}

impl ConnectReport {
    /// Compares with a bare relay.
    #[must_use]
    pub fn with_baseline(mut self, bare: Self) -> Self {
        let both = self.bytes_per_connection.zip(bare.bytes_per_connection);
        self.p4_memory = both.map(|(own, bare)| own / bare).filter(|ratio| ratio.is_finite());
        self.baseline = Some(Box::new(bare));
        self
    }
}

impl BenchReport for ConnectReport {
    fn is_clean(&self) -> bool {
        let active_clean = self.active.as_ref().is_none_or(|load| load.counters.is_clean());
        let bare_clean = self.baseline.as_ref().is_none_or(|bare| bare.is_clean());
        self.gone.is_empty() && active_clean && bare_clean
    }

    fn plotted_phases(&self) -> Vec<PlottedPhase<'_>> {
        self.active.iter().map(|load| PlottedPhase { name: "active pairs", load }).collect()
    }
}

impl fmt::Display for ConnectReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} connections at {} in {:.2} s: {:.0} per second",
            self.connections, self.target, self.seconds, self.per_second
        )?;
        match self.memory_bytes.zip(self.bytes_per_connection) {
            Some(((before, after), each)) => writeln!(
                f,
                "  memory {} MiB before, {} MiB after: {each:.0} bytes per connection",
                before >> 20,
                after >> 20
            )?,
            None => writeln!(f, "  memory n/a: its process is not known here")?,
        }
        let gone: u64 = self.gone.values().sum();
        let held = self.held_seconds;
        writeln!(f, "  after {held:.1} s {gone} of them did not answer")?;
        for (what, count) in &self.gone {
            writeln!(f, "  error: {count} × {what}")?;
        }
        if let Some(active) = &self.active {
            write_load(f, "active pairs", self.window, active)?;
        }
        if let Some(bare) = &self.baseline {
            write!(f, "\nbare relay: {bare}")?;
        }
        match self.p4_memory {
            Some(ratio) => writeln!(
                f,
                "\nP4 memory of a connection ÷ a bare one: {ratio:.2} (goal: at most 1.00)"
            ),
            None => Ok(()),
        }
    }
}
