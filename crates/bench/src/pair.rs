//! A sender and a receiver in one task: what the one sent and the other got is known in one place,
//! without a lock, and one wake-up serves both sockets.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::{Context as _, Result};
use futures_util::Stream;

use crate::dialect::{Dialect, Incoming};
use crate::ledger::{Counters, Ledger};
use crate::measure::Tally;
use crate::pace::Plan;
use crate::socket::{Socket, flush, say};

/// Two connected users.
pub(crate) struct Pair {
    dialect: Arc<dyn Dialect>,
    sender: Socket,
    receiver: Socket,
    /// Numbers go on from phase to phase: a server may know the old ones.
    next: u64,
}

impl Pair {
    /// Two sockets that may speak.
    pub(crate) fn new(dialect: Arc<dyn Dialect>, sender: Socket, receiver: Socket) -> Self {
        Self { dialect, sender, receiver, next: 0 }
    }

    /// Sends and receives as planned, until all is answered or the plan gives up.
    pub(crate) async fn run(&mut self, number: usize, plan: &Plan, tally: &Tally) -> Counters {
        let has_receipts = self.dialect.delivered("").is_some();
        let mut ledger = Ledger::from(self.next, has_receipts);
        let ended = poll_fn(|cx| {
            plan.wake(number, cx.waker());
            self.turn(cx, number, plan, &mut ledger, tally)
        });
        if let Err(error) = ended.await {
            ledger.error(&format!("connection: {error:#}"));
        }
        plan.finished();
        tally.record(ledger.samples());
        self.next = ledger.next();
        ledger.close()
    }

    /// Hears all there is to hear, says all there is to say, and flushes once.
    fn turn(
        &mut self,
        cx: &mut Context<'_>,
        number: usize,
        plan: &Plan,
        ledger: &mut Ledger,
        tally: &Tally,
    ) -> Poll<Result<()>> {
        let now = plan.now();
        hear(&mut self.receiver, cx, &*self.dialect, ledger, Side::Receiver, now)?;
        hear(&mut self.sender, cx, &*self.dialect, ledger, Side::Sender, now)?;
        self.speak(number, plan, ledger)?;
        flush(&mut self.receiver, cx)?;
        flush(&mut self.sender, cx)?;
        tally.record_many(ledger.samples());
        if plan.over(now, ledger.settled()) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn speak(&mut self, number: usize, plan: &Plan, ledger: &mut Ledger) -> Result<()> {
        let now = plan.now();
        loop {
            let count = ledger.next() - self.next;
            let (unanswered, unpushed) = (ledger.unanswered(), ledger.unpushed());
            let Some(due) = plan.may_send(number, count, now, unanswered, unpushed) else {
                return Ok(());
            };
            say(&mut self.sender, self.dialect.message(ledger.next()))?;
            ledger.sent(due);
        }
    }
}

/// Whose socket it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Sender,
    Receiver,
}

/// Reads until there is nothing more, so that the socket wakes the task when there is.
fn hear(
    socket: &mut Socket,
    cx: &mut Context<'_>,
    dialect: &dyn Dialect,
    ledger: &mut Ledger,
    side: Side,
    now: u64,
) -> Result<()> {
    while let Poll::Ready(frame) = Pin::new(&mut *socket).poll_next(cx) {
        let frame = frame.context("closed by the server")??;
        let mut said = Ok(());
        dialect.read(&frame, &mut |incoming| match incoming {
            Incoming::Saved { index, seq, id } if side == Side::Receiver => {
                // The place of what it was shown.
                ledger.pushed(index, seq, now);
                if let Some(frame) = dialect.delivered(id) {
                    said = say(socket, frame);
                }
            }
            Incoming::Saved { index, seq, .. } => ledger.saved(index, seq, now),
            Incoming::Accepted { index } => ledger.accepted(index, now),
            Incoming::Shown { index } => ledger.shown(index, now),
            Incoming::Pushed { index, seq, id } => {
                ledger.pushed(index, seq, now);
                if let Some(frame) = dialect.delivered(id) {
                    said = say(socket, frame);
                }
            }
            Incoming::Delivered { seq } => ledger.delivered(seq, now),
            Incoming::Refused { index, reason } => ledger.refused(index, reason),
            Incoming::Ping => said = say(socket, dialect.pong()),
            Incoming::Unreadable => ledger.error("unreadable frame"),
            Incoming::Resent { .. } | Incoming::Welcome | Incoming::Other => {}
        });
        said?;
    }
    Ok(())
}
