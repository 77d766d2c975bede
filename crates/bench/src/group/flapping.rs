//! Somebody who comes, hears for a second, goes, and comes back: in the end nothing may be missing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_tungstenite::tungstenite::Message;

use crate::accounts::Account;
use crate::dialect::{Dialect, Incoming};
use crate::group::board::Board;
use crate::group::check::Check;
use crate::ledger::Counters;
use crate::socket::Socket;
use crate::speech::{Speech, To, Typed};

const STAY: Duration = Duration::from_secs(1);
const AWAY: Duration = Duration::from_millis(100);
/// How long the last visit may take to bring everything.
const PATIENCE: Duration = Duration::from_secs(30);

/// A member who flaps.
pub(crate) struct Flapper {
    authority: String,
    account: Account,
    dialect: Typed,
    /// All up to this place arrived, without a hole.
    arrived: u64,
    /// What arrived beyond a hole, and what an acknowledgement would name.
    beyond: BTreeMap<u64, String>,
    last_id: String,
}

/// What became of one.
#[derive(Debug, Default)]
pub(crate) struct Flapped {
    pub(crate) reconnects: u64,
    pub(crate) lost: u64,
    /// What was heard, and what went wrong. Repeats are no fault here: nobody knows what arrived
    /// before the line broke.
    pub(crate) counters: Counters,
}

impl Flapper {
    /// A member of a group, from its first message on.
    pub(crate) fn new(authority: &str, account: &Account, group: &str) -> Self {
        Self {
            authority: authority.to_owned(),
            account: account.clone(),
            dialect: Typed::new(To::Group(group), 0),
            arrived: 0,
            beyond: BTreeMap::new(),
            last_id: String::new(),
        }
    }

    /// Comes and goes until told to stop, then stays until nothing is missing.
    pub(crate) async fn flap(
        mut self,
        board: Arc<Board>,
        stopped: watch::Receiver<bool>,
    ) -> Flapped {
        let mut flapped = Flapped::default();
        let mut check = Check::new(board.senders(), board.first());
        loop {
            let is_last = *stopped.borrow();
            let visit = self.visit(&board, is_last, &mut check, &mut flapped.counters).await;
            if let Err(error) = visit {
                flapped.counters.error(&format!("connection: {error:#}"));
            }
            if is_last {
                flapped.lost = check.missing(&board, None);
                return flapped;
            }
            flapped.reconnects += 1;
            sleep(AWAY).await;
        }
    }

    async fn visit(
        &mut self,
        board: &Board,
        is_last: bool,
        check: &mut Check,
        counters: &mut Counters,
    ) -> Result<()> {
        let mut socket = Speech::Typed.connect(&self.authority, &self.account).await?;
        let end = Instant::now() + if is_last { PATIENCE } else { STAY };
        while !(is_last && check.missing(board, None) == 0) {
            let Ok(frame) = timeout_at(end, socket.next()).await else { break };
            let frame = frame.context("closed by the server")??;
            let mut answer = None;
            self.dialect.read(&frame, &mut |incoming| match incoming {
                Incoming::Pushed { index, seq, id } => {
                    let (sender, number) = board.place(index);
                    if number >= board.first() {
                        check.heard(sender, number, seq, counters);
                    }
                    arrive(&mut self.arrived, &mut self.beyond, &mut self.last_id, seq, id);
                }
                Incoming::Resent { has_more: true } => answer = Some(r#"{"type":"RESEND"}"#),
                Incoming::Refused { reason, .. } => counters.error(reason),
                Incoming::Unreadable => counters.error("unreadable frame"),
                _ => {}
            });
            if let Some(answer) = answer {
                self.acknowledge(&mut socket).await?;
                socket.send(Message::text(answer)).await?;
            }
        }
        self.acknowledge(&mut socket).await
    }

    /// Says what arrived without a hole before it.
    async fn acknowledge(&self, socket: &mut Socket) -> Result<()> {
        match self.dialect.delivered(&self.last_id).filter(|_| self.arrived > 0) {
            Some(frame) => Ok(socket.send(frame).await?),
            None => Ok(()),
        }
    }
}

fn arrive(
    arrived: &mut u64,
    beyond: &mut BTreeMap<u64, String>,
    last_id: &mut String,
    seq: u64,
    id: &str,
) {
    if seq > *arrived {
        beyond.insert(seq, id.to_owned());
    }
    while let Some(id) = beyond.remove(&(*arrived + 1)) {
        *arrived += 1;
        *last_id = id;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_no_hole_before_it_is_acknowledged() {
        let (mut arrived, mut beyond, mut last_id) = (0, BTreeMap::new(), String::new());
        let mut check = |seq: u64, wanted: u64| {
            arrive(&mut arrived, &mut beyond, &mut last_id, seq, &format!("id{seq}"));
            assert_eq!((arrived, last_id.as_str()), (wanted, format!("id{wanted}").as_str()));
        };
        check(1, 1);
        check(3, 1);
        check(4, 1);
        check(1, 1);
        check(2, 4);
    }
}
