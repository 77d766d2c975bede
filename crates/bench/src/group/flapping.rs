//! A member who connects, reads for a second, disconnects, and reconnects: in the end nothing may be missing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_tungstenite::tungstenite::Message;

use crate::accounts::Account;
use crate::codec::{Codec, Incoming};
use crate::dialects::{DialectChoice, Recipient, Typed};
use crate::group::fan_out::FanOutTracker;
use crate::group::sequence_check::SequenceCheck;
use crate::ledger::Counters;
use crate::socket::Socket;

const STAY: Duration = Duration::from_secs(1);
const AWAY: Duration = Duration::from_millis(100);
/// How long the last connection may take to receive everything.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Flapper {
    authority: String,
    account: Account,
    codec: Typed,
    /// All messages up to this seq were received, without a gap.
    arrived: u64,
    /// Messages received beyond a gap, by seq, with the id that an acknowledgement names.
    beyond: BTreeMap<u64, String>,
    last_id: String,
}

#[derive(Debug, Default)]
pub(crate) struct FlapperResult {
    pub(crate) reconnects: u64,
    pub(crate) lost: u64,
    /// Messages received, and errors. Duplicates are no fault here: the server cannot know what arrived
    /// before the connection broke.
    pub(crate) counters: Counters,
}

impl Flapper {
    /// A member of `group` who has received nothing yet.
    pub(crate) fn new(authority: &str, account: &Account, group: &str) -> Self {
        Self {
            authority: authority.to_owned(),
            account: account.clone(),
            codec: Typed::new(Recipient::Group(group), 0),
            arrived: 0,
            beyond: BTreeMap::new(),
            last_id: String::new(),
        }
    }

    /// Connects and disconnects until stopped, then stays until nothing is missing.
    pub(crate) async fn run(
        mut self,
        tracker: Arc<FanOutTracker>,
        stopped: watch::Receiver<bool>,
    ) -> FlapperResult {
        let mut result = FlapperResult::default();
        let mut check = SequenceCheck::new(tracker.senders(), tracker.first());
        loop {
            let is_last = *stopped.borrow();
            let visit = self.visit(&tracker, is_last, &mut check, &mut result.counters).await;
            if let Err(error) = visit {
                result.counters.error(&format!("connection: {error:#}"));
            }
            if is_last {
                result.lost = check.missing(&tracker, None);
                return result;
            }
            result.reconnects += 1;
            sleep(AWAY).await;
        }
    }

    async fn visit(
        &mut self,
        tracker: &FanOutTracker,
        is_last: bool,
        check: &mut SequenceCheck,
        counters: &mut Counters,
    ) -> Result<()> {
        let mut socket = DialectChoice::Typed.connect(&self.authority, &self.account).await?;
        let end = Instant::now() + if is_last { PATIENCE } else { STAY };
        while !(is_last && check.missing(tracker, None) == 0) {
            let Ok(frame) = timeout_at(end, socket.next()).await else { break };
            let frame = frame.context("closed by the server")??;
            let mut answer = None;
            self.codec.read(&frame, &mut |incoming| match incoming {
                Incoming::Pushed { index, seq, id } => {
                    let (sender, number) = tracker.sender_and_number(index);
                    if number >= tracker.first() {
                        check.record_push(sender, number, seq, counters);
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

    /// Acknowledges the messages received without a gap.
    async fn acknowledge(&self, socket: &mut Socket) -> Result<()> {
        match self.codec.delivered(&self.last_id).filter(|_| self.arrived > 0) {
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
