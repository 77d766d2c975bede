//! A sender and a receiver in one task: what the one sent and the other got is known in one place,
//! without a lock, and one wake-up serves both sockets.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use anyhow::{Context as _, Result};
use futures_util::{Sink, Stream};
use tokio_tungstenite::tungstenite::Message;

use crate::connect::Socket;
use crate::dialect::{Dialect, Incoming};
use crate::ledger::{Counters, Ledger};
use crate::measure::Tally;
use crate::pace::Plan;

/// Two connected users.
pub(crate) struct Pair<D> {
    dialect: D,
    sender: Socket,
    receiver: Socket,
    /// Numbers go on from phase to phase: a server may know the old ones.
    next: u64,
}

impl<D: Dialect> Pair<D> {
    /// Two sockets that may speak.
    pub(crate) fn new(dialect: D, sender: Socket, receiver: Socket) -> Self {
        Self { dialect, sender, receiver, next: 0 }
    }

    /// Sends and receives as planned, until all is answered or the plan gives up.
    pub(crate) async fn run(&mut self, number: usize, plan: &Plan, tally: &Tally) -> Counters {
        let mut ledger = Ledger::from(self.next);
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
        hear(&mut self.receiver, cx, &self.dialect, ledger, now)?;
        hear(&mut self.sender, cx, &self.dialect, ledger, now)?;
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

/// Reads until there is nothing more, so that the socket wakes the task when there is.
fn hear<D: Dialect>(
    socket: &mut Socket,
    cx: &mut Context<'_>,
    dialect: &D,
    ledger: &mut Ledger,
    now: u64,
) -> Result<()> {
    while let Poll::Ready(frame) = Pin::new(&mut *socket).poll_next(cx) {
        let Message::Text(text) = frame.context("closed by the server")?? else { continue };
        match dialect.read(text.as_str()) {
            Incoming::Saved { index, seq } => ledger.saved(index, seq, now),
            Incoming::Pushed { index, seq, id } => {
                ledger.pushed(index, seq, now);
                say(socket, dialect.delivered(id))?;
            }
            Incoming::Delivered { seq } => ledger.delivered(seq, now),
            Incoming::Refused { index, reason } => ledger.refused(index, reason),
            Incoming::Ping => say(socket, dialect.pong())?,
            Incoming::Unreadable => ledger.error("unreadable frame"),
            Incoming::Other => {}
        }
    }
    Ok(())
}

/// Writes to the socket's buffer. It takes everything: the window bounds what can be in it.
fn say(socket: &mut Socket, text: String) -> Result<()> {
    Ok(Pin::new(socket).start_send(Message::text(text))?)
}

/// Begins to flush; if the kernel's buffer is full, the socket wakes the task to go on.
fn flush(socket: &mut Socket, cx: &mut Context<'_>) -> Result<()> {
    match Pin::new(socket).poll_flush(cx) {
        Poll::Ready(flushed) => Ok(flushed?),
        Poll::Pending => Ok(()),
    }
}
