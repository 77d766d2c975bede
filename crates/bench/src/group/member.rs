//! One member in one task: hears everybody, acknowledges now and then, and perhaps speaks.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::{Context as _, Result};
use futures_util::Stream;

use crate::dialect::{Dialect, Incoming};
use crate::group::board::{Board, UNDER_WAY_MAX};
use crate::group::check::Check;
use crate::ledger::{Counters, Sample, Way};
use crate::measure::Tally;
use crate::pace::Plan;
use crate::socket::{Socket, flush, say};

/// An acknowledgement covers all before it: a client sends no more than one in this time.
const ACK_EVERY: u64 = 1_000_000_000;

/// A member who is online.
pub(crate) struct Member {
    dialect: Arc<dyn Dialect>,
    socket: Socket,
}

/// What a member took from one phase.
pub(crate) struct Took {
    counters: Counters,
    check: Check,
    sender: Option<usize>,
}

impl Took {
    /// Sums up, once everybody is done: whoever was thrown out early misses what came after.
    pub(crate) fn close(mut self, board: &Board) -> Counters {
        self.counters.lost = self.check.missing(board, self.sender);
        self.counters
    }
}

/// What a member knows in one phase.
struct Turn<'a> {
    board: &'a Board,
    plan: &'a Plan,
    /// Which sender this member is.
    sender: Option<usize>,
    check: Check,
    /// Own messages without an answer.
    unanswered: BTreeSet<u64>,
    counters: Counters,
    samples: Vec<Sample>,
    acked_at: u64,
}

impl Member {
    /// A socket that may speak in the group.
    pub(crate) fn new(dialect: Arc<dyn Dialect>, socket: Socket) -> Self {
        Self { dialect, socket }
    }

    /// Hears and speaks as planned, until all is heard or the plan gives up. The first members are
    /// the senders.
    pub(crate) async fn run(
        &mut self,
        number: usize,
        board: &Board,
        plan: &Plan,
        tally: &Tally,
    ) -> Took {
        let mut turn = Turn {
            board,
            plan,
            sender: (number < board.senders()).then_some(number),
            check: Check::new(board.senders(), board.first()),
            unanswered: BTreeSet::new(),
            counters: Counters::default(),
            samples: Vec::new(),
            // Not all in the same moment.
            acked_at: number as u64 * 7_919_000 % ACK_EVERY,
        };
        let ended = poll_fn(|cx| {
            plan.wake(number, cx.waker());
            turn.take(self, cx, tally)
        });
        if let Err(error) = ended.await {
            turn.counters.error(&format!("connection: {error:#}"));
        }
        if let Some(sender) = turn.sender {
            board.settle(sender);
        }
        plan.finished();
        tally.record(&mut turn.samples);
        turn.counters.unanswered = turn.unanswered.len() as u64;
        Took { counters: turn.counters, check: turn.check, sender: turn.sender }
    }
}

impl Turn<'_> {
    /// Hears all there is to hear, says all there is to say, and flushes once.
    fn take(
        &mut self,
        member: &mut Member,
        cx: &mut Context<'_>,
        tally: &Tally,
    ) -> Poll<Result<()>> {
        let now = self.plan.now();
        self.hear(member, cx, now)?;
        if let Some(sender) = self.sender {
            self.speak(member, sender)?;
            if self.plan.over(now, self.unanswered.is_empty()) {
                self.board.settle(sender);
            }
        }
        flush(&mut member.socket, cx)?;
        tally.record_many(&mut self.samples);
        let settled = self.board.all_settled() && self.check.missing(self.board, self.sender) == 0;
        if self.plan.over(now, settled) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn hear(&mut self, member: &mut Member, cx: &mut Context<'_>, now: u64) -> Result<()> {
        let Member { dialect, socket } = member;
        while let Poll::Ready(frame) = Pin::new(&mut *socket).poll_next(cx) {
            let frame = frame.context("closed by the server")??;
            let mut said = Ok(());
            dialect.read(&frame, &mut |incoming| match incoming {
                Incoming::Pushed { index, seq, id } => {
                    let is_new = self.heard(index, seq, id, now);
                    if is_new && now.saturating_sub(self.acked_at) > ACK_EVERY {
                        self.acked_at = now;
                        if let Some(frame) = dialect.delivered(id) {
                            said = say(socket, frame);
                        }
                    }
                }
                Incoming::Saved { index, .. } => self.saved(index, now),
                Incoming::Refused { index, reason } => {
                    self.counters.error(reason);
                    if index.is_some_and(|index| self.unanswered.remove(&index)) {
                        self.counters.refused += 1;
                    }
                }
                Incoming::Ping => said = say(socket, dialect.pong()),
                Incoming::Unreadable => self.counters.error("unreadable frame"),
                // The receipts of a small group's members, and whatever else is told.
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

    fn heard(&mut self, index: u64, seq: u64, id: &str, now: u64) -> bool {
        let (sender, number) = self.board.place(index);
        if number < self.board.first() {
            // Brought after an earlier phase, which has counted it.
            return false;
        }
        if number >= self.board.first() + self.board.sent(sender) || Some(sender) == self.sender {
            self.counters.unexpected += 1;
            return false;
        }
        if !self.check.heard(sender, number, seq, &mut self.counters) {
            return false;
        }
        let known = self.board.heard(index, id);
        self.counters.wrong_ids += u64::from(!known.is_id_right);
        if let Some(due) = known.due {
            self.samples.push(Sample { way: Way::Pushed, due, at: now });
            if known.is_last {
                self.samples.push(Sample { way: Way::All, due, at: now });
                self.plan.nudge(sender);
            }
        }
        true
    }

    fn saved(&mut self, index: u64, now: u64) {
        let (sender, _) = self.board.place(index);
        if !self.unanswered.remove(&index) {
            self.counters.unexpected += 1;
            return;
        }
        self.counters.saved += 1;
        self.board.saved(sender);
        if let Some(due) = self.board.due(index) {
            self.samples.push(Sample { way: Way::Saved, due, at: now });
        }
    }

    fn speak(&mut self, member: &mut Member, sender: usize) -> Result<()> {
        let now = self.plan.now();
        loop {
            let (unanswered, unheard) = (self.unanswered.len() as u64, self.board.unheard(sender));
            let count = self.board.sent(sender);
            let due = self.plan.may_send(sender, count, now, unanswered, unheard);
            let Some(due) = due.filter(|_| unheard < UNDER_WAY_MAX) else { return Ok(()) };
            let index = self.board.send(sender, due);
            self.unanswered.insert(index);
            self.counters.sent += 1;
            say(&mut member.socket, member.dialect.message(index))?;
        }
    }
}
