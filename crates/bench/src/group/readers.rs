//! Members who do not read as they should. A server may throw out whoever does not read; what it may
//! not do is to lose what somebody missed who comes back and asks.

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

use crate::group::board::Board;
use crate::group::flapping::{Flapped, Flapper};
use crate::group::setup::People;
use crate::options::Readers;
use crate::socket::{Socket, connect_narrow};
use crate::speech::Speech;

/// Somebody to whom nothing comes for so long has read all there is.
const SILENCE: Duration = Duration::from_secs(1);

/// What became of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Behaved {
    /// Members who read little.
    pub slow: usize,
    /// Of these, thrown out.
    pub slow_thrown_out: usize,
    /// Members who read nothing.
    pub stuck: usize,
    /// Of these, thrown out.
    pub stuck_thrown_out: usize,
    /// Members who came and went.
    pub flapping: usize,
    /// How often they came back, in all.
    pub reconnects: u64,
    /// What those who came and went heard, each message counted once.
    pub flapping_heard: u64,
    /// Saved, but those who came and went had not got it at the end.
    pub flapping_lost: u64,
    /// What went wrong for them, by reason.
    pub errors: BTreeMap<String, u64>,
}

impl Behaved {
    /// Whether whoever came back got everything.
    pub fn is_clean(&self) -> bool {
        self.flapping_lost == 0 && self.errors.is_empty()
    }

    /// Adds somebody who came and went.
    fn add(&mut self, flapped: Flapped) {
        self.add_all(&Self {
            flapping: 1,
            reconnects: flapped.reconnects,
            flapping_heard: flapped.counters.pushed,
            flapping_lost: flapped.lost,
            errors: flapped.counters.errors,
            ..Self::default()
        });
    }

    /// Adds those of another group.
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

impl fmt::Display for Behaved {
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

/// They are connected.
#[derive(Default)]
pub(crate) struct Misbehaving {
    slow: Vec<Socket>,
    pause: Duration,
    stuck: Vec<Socket>,
    flapping: Vec<Flapper>,
}

impl Misbehaving {
    /// The last ones of the people.
    pub(crate) async fn connect(people: &People, readers: &Readers) -> Result<Self> {
        let first = people.accounts.len() - readers.count();
        let mut accounts = people.accounts[first..].iter();
        let mut sockets = async |count: usize| {
            let mut sockets = Vec::with_capacity(count);
            for account in accounts.by_ref().take(count) {
                let socket = connect_narrow(&people.authority, "/ws").await?;
                sockets.push(Speech::Typed.enter(socket, account).await?);
            }
            anyhow::Ok(sockets)
        };
        let (slow, stuck) = (sockets(readers.slow).await?, sockets(readers.stuck).await?);
        let flapper = |account| Flapper::new(&people.authority, account, &people.group);
        let flapping = people.accounts.iter().rev().take(readers.flapping).map(flapper).collect();
        let pause = Duration::from_secs(1) / readers.slow_frames.max(1);
        Ok(Self { slow, pause, stuck, flapping })
    }

    /// From now on they do as they do.
    pub(crate) fn begin(self, board: &Arc<Board>) -> Begun {
        let (stop, stopped) = watch::channel(false);
        let mut begun = Begun {
            stop,
            stuck: self.stuck,
            slow_count: self.slow.len(),
            slow: JoinSet::new(),
            flapping: JoinSet::new(),
        };
        for socket in self.slow {
            begun.slow.spawn(read_slowly(socket, self.pause, stopped.clone()));
        }
        for flapper in self.flapping {
            begun.flapping.spawn(flapper.flap(Arc::clone(board), stopped.clone()));
        }
        begun
    }
}

/// They are at it.
pub(crate) struct Begun {
    stop: watch::Sender<bool>,
    stuck: Vec<Socket>,
    slow_count: usize,
    slow: JoinSet<bool>,
    flapping: JoinSet<Flapped>,
}

impl Begun {
    /// The load is over: those who flap come back once more and catch up.
    pub(crate) async fn end(mut self) -> Behaved {
        self.stop.send_replace(true);
        let mut behaved =
            Behaved { slow: self.slow_count, stuck: self.stuck.len(), ..Behaved::default() };
        let stuck: JoinSet<bool> = self.stuck.into_iter().map(is_closed).collect();
        behaved.stuck_thrown_out = stuck.join_all().await.into_iter().filter(|it| *it).count();
        while let Some(ended) = self.slow.join_next().await {
            behaved.slow_thrown_out += usize::from(ended.unwrap_or_default());
        }
        while let Some(ended) = self.flapping.join_next().await {
            match ended {
                Ok(flapped) => behaved.add(flapped),
                Err(error) => *behaved.errors.entry(error.to_string()).or_default() += 1,
            }
        }
        behaved
    }
}

/// Reads a frame, then pauses, until told to stop; whether it was thrown out.
async fn read_slowly(mut socket: Socket, pause: Duration, stopped: watch::Receiver<bool>) -> bool {
    while !*stopped.borrow() {
        sleep(pause).await;
        // What it reads does not matter, only that it is little.
        if let Some(None | Some(Err(_))) = socket.next().now_or_never() {
            return true;
        }
    }
    is_closed(socket).await
}

/// Whether a socket was closed by the server. What it has not read comes first, and may be much.
async fn is_closed(mut socket: Socket) -> bool {
    loop {
        match timeout(SILENCE, socket.next()).await {
            Err(_) => return false,
            Ok(None | Some(Err(_))) => return true,
            Ok(Some(Ok(_))) => {}
        }
    }
}
