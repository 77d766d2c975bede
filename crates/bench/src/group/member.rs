//! One member in one task: receives, acknowledges now and then, and perhaps sends.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::{Context as _, Result};
use futures_util::Stream;

use crate::codec::{Codec, Incoming};
use crate::group::fan_out::{FanOutTracker, IN_FLIGHT_MAX};
use crate::group::sequence_check::SequenceCheck;
use crate::ledger::{Counters, Sample, Step};
use crate::measure::Recorder;
use crate::schedule::Schedule;
use crate::socket::{Socket, flush, queue_frame};

/// An acknowledgement covers all messages before it: a client sends at most one in this time.
const ACK_EVERY: u64 = 1_000_000_000;

/// A member who is online.
pub(crate) struct GroupMember {
    codec: Arc<dyn Codec>,
    socket: Socket,
}

/// What one member measured in one phase.
pub(crate) struct MemberResult {
    counters: Counters,
    check: SequenceCheck,
    sender: Option<usize>,
}

impl MemberResult {
    /// Counts lost messages, once all members are done: a member whose connection was closed early
    /// missed the rest.
    pub(crate) fn close(mut self, tracker: &FanOutTracker) -> Counters {
        self.counters.lost = self.check.missing(tracker, self.sender);
        self.counters
    }
}

/// One member's state during a phase.
struct MemberPhase<'a> {
    tracker: &'a FanOutTracker,
    schedule: &'a Schedule,
    /// This member's number as a sender, if it is one.
    sender: Option<usize>,
    check: SequenceCheck,
    /// Own messages that are not acknowledged yet.
    unanswered: BTreeSet<u64>,
    counters: Counters,
    samples: Vec<Sample>,
    acked_at: u64,
}

impl GroupMember {
    pub(crate) fn new(codec: Arc<dyn Codec>, socket: Socket) -> Self {
        Self { codec, socket }
    }

    /// Receives and sends until everything is received or the schedule gives up. The first members are
    /// the senders.
    pub(crate) async fn run(
        &mut self,
        number: usize,
        tracker: &FanOutTracker,
        schedule: &Schedule,
        recorder: &Recorder,
    ) -> MemberResult {
        let mut phase = MemberPhase {
            tracker,
            schedule,
            sender: (number < tracker.senders()).then_some(number),
            check: SequenceCheck::new(tracker.senders(), tracker.first()),
            unanswered: BTreeSet::new(),
            counters: Counters::default(),
            samples: Vec::new(),
            // Spread the members' acknowledgements over time.
            acked_at: number as u64 * 7_919_000 % ACK_EVERY,
        };
        let ended = poll_fn(|cx| {
            schedule.register_waker(number, cx.waker());
            phase.poll_once(self, cx, recorder)
        });
        if let Err(error) = ended.await {
            phase.counters.error(&format!("connection: {error:#}"));
        }
        if let Some(sender) = phase.sender {
            tracker.settle(sender);
        }
        schedule.task_finished();
        recorder.record(&mut phase.samples);
        phase.counters.unanswered = phase.unanswered.len() as u64;
        MemberResult { counters: phase.counters, check: phase.check, sender: phase.sender }
    }
}

impl MemberPhase<'_> {
    /// Reads all frames, sends all messages that are due, and flushes once.
    fn poll_once(
        &mut self,
        member: &mut GroupMember,
        cx: &mut Context<'_>,
        recorder: &Recorder,
    ) -> Poll<Result<()>> {
        let now = self.schedule.now();
        self.read_frames(member, cx, now)?;
        if let Some(sender) = self.sender {
            self.send_due(member, sender)?;
            if self.schedule.is_over(now, self.unanswered.is_empty()) {
                self.tracker.settle(sender);
            }
        }
        flush(&mut member.socket, cx)?;
        recorder.record_if_full(&mut self.samples);
        let settled =
            self.tracker.all_settled() && self.check.missing(self.tracker, self.sender) == 0;
        if self.schedule.is_over(now, settled) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn read_frames(
        &mut self,
        member: &mut GroupMember,
        cx: &mut Context<'_>,
        now: u64,
    ) -> Result<()> {
        let GroupMember { codec, socket } = member;
        while let Poll::Ready(frame) = Pin::new(&mut *socket).poll_next(cx) {
            let frame = frame.context("closed by the server")??;
            let mut said = Ok(());
            codec.read(&frame, &mut |incoming| match incoming {
                Incoming::Pushed { index, seq, id } => {
                    let is_new = self.record_push(index, seq, id, now);
                    if is_new && now.saturating_sub(self.acked_at) > ACK_EVERY {
                        self.acked_at = now;
                        if let Some(frame) = codec.delivered(id) {
                            said = queue_frame(socket, frame);
                        }
                    }
                }
                Incoming::Saved { index, .. } => self.record_saved(index, now),
                Incoming::Refused { index, reason } => {
                    self.counters.error(reason);
                    if index.is_some_and(|index| self.unanswered.remove(&index)) {
                        self.counters.refused += 1;
                    }
                }
                Incoming::Ping => said = queue_frame(socket, codec.pong()),
                Incoming::Unreadable => self.counters.error("unreadable frame"),
                // Receipts of a small group's members, and frames of no interest.
                Incoming::Delivered { .. }
                | Incoming::Accepted { .. }
                | Incoming::Shown { .. }
                | Incoming::Resent { .. }
                | Incoming::Welcome
                | Incoming::Other => {}
            });
            said?;
        }
        Ok(())
    }

    fn record_push(&mut self, index: u64, seq: u64, id: &str, now: u64) -> bool {
        let (sender, number) = self.tracker.sender_and_number(index);
        if number < self.tracker.first() {
            // Pushed late: an earlier phase has counted it.
            return false;
        }
        if number >= self.tracker.first() + self.tracker.sent(sender) || Some(sender) == self.sender
        {
            self.counters.unexpected += 1;
            return false;
        }
        if !self.check.record_push(sender, number, seq, &mut self.counters) {
            return false;
        }
        let push = self.tracker.record_push(index, id);
        self.counters.wrong_ids += u64::from(!push.is_id_right);
        if let Some(due) = push.due {
            self.samples.push(Sample { step: Step::Pushed, due, at: now });
            if push.is_last {
                self.samples.push(Sample { step: Step::All, due, at: now });
                self.schedule.wake_task(sender);
            }
        }
        true
    }

    fn record_saved(&mut self, index: u64, now: u64) {
        let (sender, _) = self.tracker.sender_and_number(index);
        if !self.unanswered.remove(&index) {
            self.counters.unexpected += 1;
            return;
        }
        self.counters.saved += 1;
        self.tracker.record_saved(sender);
        if let Some(due) = self.tracker.due(index) {
            self.samples.push(Sample { step: Step::Saved, due, at: now });
        }
    }

    fn send_due(&mut self, member: &mut GroupMember, sender: usize) -> Result<()> {
        let now = self.schedule.now();
        loop {
            let (unanswered, incomplete) =
                (self.unanswered.len() as u64, self.tracker.incomplete(sender));
            let count = self.tracker.sent(sender);
            let due = self.schedule.may_send(sender, count, now, unanswered, incomplete);
            let Some(due) = due.filter(|_| incomplete < IN_FLIGHT_MAX) else { return Ok(()) };
            let index = self.tracker.send(sender, due);
            self.unanswered.insert(index);
            self.counters.sent += 1;
            queue_frame(&mut member.socket, member.codec.message(index))?;
        }
    }
}
