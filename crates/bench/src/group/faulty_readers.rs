//! Members who read slowly, never, or disconnect all the time. A server may close a connection that is
//! not read, but a member who reconnects must get everything they missed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::{FutureExt, StreamExt};
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::dialects::DialectChoice;
use crate::group::fan_out::FanOutTracker;
use crate::group::flapping::{Flapper, FlapperResult};
use crate::group::setup::BenchGroup;
use crate::options::FaultyReaderOptions;
use crate::socket::{Socket, connect_narrow};

/// A socket that receives nothing for this long has been read to its end.
const SILENCE: Duration = Duration::from_secs(1);

/// How the server treated them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FaultyReaderReport {
    pub slow: usize,
    /// Of these, closed by the server.
    pub slow_thrown_out: usize,
    pub stuck: usize,
    /// Of these, closed by the server.
    pub stuck_thrown_out: usize,
    pub flapping: usize,
    pub reconnects: u64,
    /// Messages that flapping members received, each counted once.
    pub flapping_heard: u64,
    /// Saved messages that flapping members had not received at the end.
    pub flapping_lost: u64,
    /// Their errors, by reason.
    pub errors: BTreeMap<String, u64>,
}

impl FaultyReaderReport {
    /// Whether every flapping member got everything.
    pub fn is_clean(&self) -> bool {
        self.flapping_lost == 0 && self.errors.is_empty()
    }

    /// Adds a flapping member.
    fn add(&mut self, result: FlapperResult) {
        self.add_all(&Self {
            flapping: 1,
            reconnects: result.reconnects,
            flapping_heard: result.counters.pushed,
            flapping_lost: result.lost,
            errors: result.counters.errors,
            ..Self::default()
        });
    }

    /// Adds the counts of another group.
    pub(crate) fn add_all(&mut self, other: &Self) {
        self.slow += other.slow;
        self.slow_thrown_out += other.slow_thrown_out;
        self.stuck += other.stuck;
        self.stuck_thrown_out += other.stuck_thrown_out;
        self.flapping += other.flapping;
        self.reconnects += other.reconnects;
        self.flapping_heard += other.flapping_heard;
        self.flapping_lost += other.flapping_lost;
        for (reason, count) in &other.errors {
            *self.errors.entry(reason.clone()).or_default() += count;
        }
    }
}

impl fmt::Display for FaultyReaderReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} slow ({} thrown out), {} stuck ({} thrown out), {} flapping ({} reconnects, {} heard, {} lost)",
            self.slow,
            self.slow_thrown_out,
            self.stuck,
            self.stuck_thrown_out,
            self.flapping,
            self.reconnects,
            self.flapping_heard,
            self.flapping_lost
        )?;
        self.errors
            .iter()
            .try_for_each(|(reason, count)| write!(f, "\n  error: {count} × {reason}"))
    }
}

/// The connected members, before a phase.
#[derive(Default)]
pub(crate) struct FaultyReaders {
    slow: Vec<Socket>,
    pause: Duration,
    stuck: Vec<Socket>,
    flapping: Vec<Flapper>,
}

impl FaultyReaders {
    /// Connects the last accounts of the group.
    pub(crate) async fn connect(group: &BenchGroup, readers: &FaultyReaderOptions) -> Result<Self> {
        let first = group.accounts.len() - readers.count();
        let mut accounts = group.accounts[first..].iter();
        let mut sockets = async |count: usize| {
            let mut sockets = Vec::with_capacity(count);
            for account in accounts.by_ref().take(count) {
                let socket = connect_narrow(&group.authority, "/ws").await?;
                sockets.push(DialectChoice::Typed.authenticate(socket, account).await?);
            }
            anyhow::Ok(sockets)
        };
        let (slow, stuck) = (sockets(readers.slow).await?, sockets(readers.stuck).await?);
        let flapper = |account| Flapper::new(&group.authority, account, &group.group);
        let flapping = group.accounts.iter().rev().take(readers.flapping).map(flapper).collect();
        let pause = Duration::from_secs(1) / readers.slow_frames.max(1);
        Ok(Self { slow, pause, stuck, flapping })
    }

    /// Starts their tasks.
    pub(crate) fn begin(self, tracker: &Arc<FanOutTracker>) -> RunningFaultyReaders {
        let (stop, stopped) = watch::channel(false);
        let mut running = RunningFaultyReaders {
            stop,
            stuck: self.stuck,
            slow_count: self.slow.len(),
            slow: JoinSet::new(),
            flapping: JoinSet::new(),
        };
        for socket in self.slow {
            running.slow.spawn(read_slowly(socket, self.pause, stopped.clone()));
        }
        for flapper in self.flapping {
            running.flapping.spawn(flapper.run(Arc::clone(tracker), stopped.clone()));
        }
        running
    }
}

/// The running tasks.
pub(crate) struct RunningFaultyReaders {
    stop: watch::Sender<bool>,
    stuck: Vec<Socket>,
    slow_count: usize,
    slow: JoinSet<bool>,
    flapping: JoinSet<FlapperResult>,
}

impl RunningFaultyReaders {
    /// Ends the phase: flapping members connect once more and catch up.
    pub(crate) async fn end(mut self) -> FaultyReaderReport {
        self.stop.send_replace(true);
        let mut faulty = FaultyReaderReport {
            slow: self.slow_count,
            stuck: self.stuck.len(),
            ..FaultyReaderReport::default()
        };
        let stuck: JoinSet<bool> = self.stuck.into_iter().map(is_closed).collect();
        faulty.stuck_thrown_out = stuck.join_all().await.into_iter().filter(|it| *it).count();
        while let Some(ended) = self.slow.join_next().await {
            faulty.slow_thrown_out += usize::from(ended.unwrap_or_default());
        }
        while let Some(ended) = self.flapping.join_next().await {
            match ended {
                Ok(result) => faulty.add(result),
                Err(error) => *faulty.errors.entry(error.to_string()).or_default() += 1,
            }
        }
        faulty
    }
}

/// Reads a frame, then pauses, until stopped; returns whether the server closed the socket.
async fn read_slowly(mut socket: Socket, pause: Duration, stopped: watch::Receiver<bool>) -> bool {
    while !*stopped.borrow() {
        sleep(pause).await;
        // The content does not matter, only the pace.
        if let Some(None | Some(Err(_))) = socket.next().now_or_never() {
            return true;
        }
    }
    is_closed(socket).await
}

/// Whether the server closed the socket. Reads the rest first, which may be much.
async fn is_closed(mut socket: Socket) -> bool {
    loop {
        match timeout(SILENCE, socket.next()).await {
            Err(_) => return false,
            Ok(None | Some(Err(_))) => return true,
            Ok(Some(Ok(_))) => {}
        }
    }
}
