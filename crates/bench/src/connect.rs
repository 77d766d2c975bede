//! Connections that say nothing: how fast they come, what each costs in memory, and whether all of
//! them stay.

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
use crate::dialect::{Dialect, Incoming};
use crate::http::authority;
use crate::measure::Load;
use crate::options::ConnectOptions;
use crate::plot::Drawn;
use crate::private;
use crate::process::Place;
use crate::progress::{Progress, all};
use crate::report::Outcome;
use crate::socket::{CONNECTING_AT_ONCE, Socket, connect as open};
use crate::speech::{Speech, To, Typed};
use crate::table::write_load;

/// What a server needs to come to rest, so that its memory can be read.
const SETTLE: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);

/// Figures of many idle connections.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Connected {
    /// Where they were.
    pub target: String,
    /// How many.
    pub connections: usize,
    /// Seconds until all were connected and signed in.
    pub seconds: f64,
    /// Connections per second meanwhile.
    pub per_second: f64,
    /// The server's memory before and after; unknown for a server elsewhere.
    pub memory_bytes: Option<(u64, u64)>,
    /// What one connection costs of it.
    pub bytes_per_connection: Option<f64>,
    /// Seconds they were kept.
    pub held_seconds: f64,
    /// Connections that did not answer at the end, by what happened to them.
    pub gone: BTreeMap<String, u64>,
    /// Messages under way the while, with `--active`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<Load>,
    /// As many connections to the bare relay, with `--baseline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Box<Connected>>,
    /// Memory of a connection ÷ that of a bare one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p4_memory: Option<f64>,
    #[serde(skip)]
    window: u64,
}

/// Connects idle users to a server, and active ones if asked for.
pub async fn connect(options: &ConnectOptions, place: &Place) -> Result<Connected> {
    options.check()?;
    let authority = authority(&place.address)?;
    let progress = Progress::new(!options.target.shown.json);
    let users = sign_up(&authority, options.connections, progress).await?;
    let authority = authority.as_str();
    let connecting = users.iter().map(|user| Speech::Typed.connect(authority, user));
    let (mut connected, idle) = crowd(connecting, place, progress).await?;
    let since = Instant::now();
    if options.active > 0 {
        let (span, flow) = (&options.span, &options.flow);
        let pairs =
            private::connected([authority; 2], Speech::Typed, options.active, flow.size, progress)
                .await?;
        let phase = private::phase(pairs, "active pairs", span, flow, place, progress);
        connected.active = Some(phase.await?.1.close());
        connected.window = flow.window;
    }
    sleep(options.hold.saturating_sub(since.elapsed())).await;
    connected.held_seconds = since.elapsed().as_secs_f64();
    connected.gone = idle.end().await;
    Ok(connected)
}

/// As many connections to a bare relay.
pub async fn bare_connect(options: &ConnectOptions, relay: &Place) -> Result<Connected> {
    let authority = authority(&relay.address)?;
    let progress = Progress::new(!options.target.shown.json);
    let paths: Vec<String> = (0..options.connections).map(|number| format!("/{number}")).collect();
    let connecting = paths.iter().map(|path| open(&authority, path));
    let (mut connected, idle) = crowd(connecting, relay, progress).await?;
    connected.gone = idle.end().await;
    Ok(connected)
}

/// Connects all of them, and reads what they cost.
async fn crowd<F>(
    connecting: impl ExactSizeIterator<Item = F>,
    place: &Place,
    progress: Progress,
) -> Result<(Connected, Idle)>
where
    F: Future<Output = Result<Socket>>,
{
    let count = connecting.len();
    let mut idle = Idle::default();
    sleep(SETTLE).await;
    let before = place.resident_bytes();
    let since = Instant::now();
    let sockets = all(connecting, CONNECTING_AT_ONCE, "connections", progress).await?;
    let seconds = since.elapsed().as_secs_f64();
    idle.extend(sockets);
    sleep(SETTLE).await;
    let memory_bytes = before.zip(place.resident_bytes());
    #[expect(clippy::cast_precision_loss, reason = "bytes and counts of one process")]
    let each = |(before, after): (u64, u64)| after.saturating_sub(before) as f64 / count as f64;
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
    let per_second = count as f64 / seconds;
    let connected = Connected {
        target: place.address.clone(),
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

/// Connections that only answer when asked whether they are there.
pub(crate) struct Idle {
    stop: watch::Sender<bool>,
    keepers: JoinSet<Result<()>>,
}

impl Default for Idle {
    fn default() -> Self {
        Self { stop: watch::Sender::new(false), keepers: JoinSet::new() }
    }
}

impl Idle {
    /// More of them.
    pub(crate) fn extend(&mut self, sockets: Vec<Socket>) {
        for socket in sockets {
            self.keepers.spawn(keep(socket, self.stop.subscribe()));
        }
    }

    /// Asks every one whether it is still there; what happened to those who are not.
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

/// Reads until told to stop, then makes sure that the other side still answers.
async fn keep(mut socket: Socket, mut stopped: watch::Receiver<bool>) -> Result<()> {
    let dialect = Typed::new(To::Group(""), 0);
    loop {
        tokio::select! {
            frame = socket.next() => {
                let frame = frame.context("closed by the server")??;
                let mut asked = false;
                dialect.read(&frame, &mut |incoming| asked |= incoming == Incoming::Ping);
                if asked {
                    socket.send(dialect.pong()).await?;
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

impl Connected {
    /// Compares with a bare relay.
    #[must_use]
    pub fn with_baseline(mut self, bare: Self) -> Self {
        let both = self.bytes_per_connection.zip(bare.bytes_per_connection);
        self.p4_memory = both.map(|(own, bare)| own / bare).filter(|ratio| ratio.is_finite());
        self.baseline = Some(Box::new(bare));
        self
    }
}

impl Outcome for Connected {
    fn is_clean(&self) -> bool {
        let active_clean = self.active.as_ref().is_none_or(|load| load.counters.is_clean());
        let bare_clean = self.baseline.as_ref().is_none_or(|bare| bare.is_clean());
        self.gone.is_empty() && active_clean && bare_clean
    }

    fn drawn(&self) -> Vec<Drawn<'_>> {
        self.active.iter().map(|load| Drawn { name: "active pairs", load }).collect()
    }
}

impl fmt::Display for Connected {
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
                "\nP4 memory of a connection ÷ a bare one: {ratio:.2} (goal: at most 1.30)"
            ),
            None => Ok(()),
        }
    }
}
