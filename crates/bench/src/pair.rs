//! A sender and a receiver in one task: one ledger tracks both sides without a lock, and one wake-up
//! serves both sockets.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::{Context as _, Result};
use futures_util::Stream;

use crate::codec::{Codec, Incoming};
use crate::ledger::{Counters, Ledger};
use crate::measure::Recorder;
use crate::schedule::Schedule;
use crate::socket::{Socket, flush, queue_frame};

/// Two connected users.
pub(crate) struct Pair {
    codec: Arc<dyn Codec>,
    sender: Socket,
    receiver: Socket,
    /// Numbers continue from phase to phase: the server deduplicates by them.
    next: u64,
}

impl Pair {
    pub(crate) fn new(codec: Arc<dyn Codec>, sender: Socket, receiver: Socket) -> Self {
        Self { codec, sender, receiver, next: 0 }
    }

    /// Sends and receives until all messages are done or the schedule gives up.
    pub(crate) async fn run(
        &mut self,
        number: usize,
        schedule: &Schedule,
        recorder: &Recorder,
    ) -> Counters {
        let has_receipts = self.codec.delivered("").is_some();
        let mut ledger = Ledger::from(self.next, has_receipts);
        let ended = poll_fn(|cx| {
            schedule.register_waker(number, cx.waker());
            self.poll_once(cx, number, schedule, &mut ledger, recorder)
        });
        if let Err(error) = ended.await {
            ledger.error(&format!("connection: {error:#}"));
        }
        schedule.task_finished();
        recorder.record(ledger.samples());
        self.next = ledger.next();
        ledger.close()
    }

    /// Reads all frames, sends all messages that are due, and flushes once.
    fn poll_once(
        &mut self,
        cx: &mut Context<'_>,
        number: usize,
        schedule: &Schedule,
        ledger: &mut Ledger,
        recorder: &Recorder,
    ) -> Poll<Result<()>> {
        let now = schedule.now();
        read_frames(&mut self.receiver, cx, &*self.codec, ledger, Role::Receiver, now)?;
        read_frames(&mut self.sender, cx, &*self.codec, ledger, Role::Sender, now)?;
        self.send_due(number, schedule, ledger)?;
        flush(&mut self.receiver, cx)?;
        flush(&mut self.sender, cx)?;
        recorder.record_if_full(ledger.samples());
        if schedule.is_over(now, ledger.is_settled()) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn send_due(&mut self, number: usize, schedule: &Schedule, ledger: &mut Ledger) -> Result<()> {
        let now = schedule.now();
        loop {
            let count = ledger.next() - self.next;
            let (unanswered, unpushed) = (ledger.unanswered(), ledger.unpushed());
            let Some(due) = schedule.may_send(number, count, now, unanswered, unpushed) else {
                return Ok(());
            };
            queue_frame(&mut self.sender, self.codec.message(ledger.next()))?;
            ledger.sent(due);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Sender,
    Receiver,
}

/// Reads until the socket has no more frames, so that it wakes the task for the next one.
fn read_frames(
    socket: &mut Socket,
    cx: &mut Context<'_>,
    codec: &dyn Codec,
    ledger: &mut Ledger,
    side: Role,
    now: u64,
) -> Result<()> {
    while let Poll::Ready(frame) = Pin::new(&mut *socket).poll_next(cx) {
        let frame = frame.context("closed by the server")??;
        let mut said = Ok(());
        codec.read(&frame, &mut |incoming| match incoming {
            Incoming::Saved { index, seq, id } if side == Role::Receiver => {
                // The seq of a previewed message.
                ledger.pushed(index, seq, now);
                if let Some(frame) = codec.delivered(id) {
                    said = queue_frame(socket, frame);
                }
            }
            Incoming::Saved { index, seq, .. } => ledger.saved(index, seq, now),
            Incoming::Accepted { index } => ledger.accepted(index, now),
            Incoming::Shown { index } => ledger.shown(index, now),
            Incoming::Pushed { index, seq, id } => {
                ledger.pushed(index, seq, now);
                if let Some(frame) = codec.delivered(id) {
                    said = queue_frame(socket, frame);
                }
            }
            Incoming::Delivered { seq } => ledger.delivered(seq, now),
            Incoming::Refused { index, reason } => ledger.refused(index, reason),
            Incoming::Ping => said = queue_frame(socket, codec.pong()),
            Incoming::Unreadable => ledger.error("unreadable frame"),
            Incoming::Resent { .. } | Incoming::Welcome | Incoming::Other => {}
        });
        said?;
    }
    Ok(())
}
