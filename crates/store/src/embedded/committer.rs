//! The single committer: takes everything that waits, decides it in order, syncs once.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use nexo_chat::model::Kept;

use super::batch::Batch;
use super::core::Core;
use super::cursors::{MemberChange, Place};
use super::log::Log;
use super::open::SEALED_MAX;
use super::pending::{Decided, Pending};
use super::poison::Fault;
use super::upkeep::Sealed;

/// Gives a decision to whoever waits for it. Dropped instead if it did not become durable.
pub(crate) type Answer = Box<dyn FnOnce() + Send>;

/// Decides one write, in its turn.
pub(crate) type Act = Box<dyn FnOnce(&mut Pending<'_>) -> Result<Answer, Fault> + Send>;

/// What the committer is asked.
pub(crate) enum Work {
    /// A write, and about how many bytes it takes.
    Act(Act, usize),
    /// The end: everything before it is done, nothing after.
    Close(Answer),
}

/// A durable batch, to be announced and answered.
pub(crate) struct Finished {
    pub(crate) kept: Vec<Kept>,
    pub(crate) answers: Vec<Answer>,
}

const BATCH_ACTS_MAX: usize = 4096;
const BATCH_BYTES_MAX: usize = 8 << 20;
/// Cursors written in a row while others wait.
const LOT: usize = 64;
/// Every start leaves a segment of the log, however little is in it; at most so many.
const SEGMENTS_MAX: usize = 4;

/// How often the committer looks whether the writer has caught up.
const WRITER_PAUSE: Duration = Duration::from_millis(2);
/// How long nothing is sealed after there was no room.
const NO_ROOM_PAUSE: Duration = Duration::from_secs(1);

/// The committer's own state; it lives on its thread.
pub(crate) struct Committer {
    pub(crate) core: Arc<Core>,
    pub(crate) queue: Receiver<Work>,
    pub(crate) finished: SyncSender<Finished>,
    pub(crate) log: Log,
    /// What is to be written out.
    pub(crate) sealed: SyncSender<Sealed>,
    /// How much is collected before it is written out.
    pub(crate) memtable_bytes: u64,
    /// Segments of the log left by earlier runs.
    pub(crate) segments: usize,
    pub(crate) cursors_every: Duration,
    /// Cursors that are being written, if any are.
    pub(crate) sweep: Option<Sweep>,
    /// Nothing is sealed before, since there was no room a moment ago.
    pub(crate) seal_after: Instant,
}

/// The places whose cursors had moved when the log was that long. They are written a few at a time,
/// between the batches: nobody's answer waits for all of them.
pub(crate) struct Sweep {
    places: Vec<Place>,
    up_to: u64,
}

impl Committer {
    /// Works until it is closed or nobody is left to ask.
    pub(crate) fn run(mut self) {
        let mut cursors_due = Instant::now() + self.cursors_every;
        if self.segments > SEGMENTS_MAX {
            self.guarded(Self::seal);
        }
        loop {
            let wait = match self.sweep {
                Some(_) => Duration::ZERO,
                None => cursors_due.saturating_duration_since(Instant::now()),
            };
            let closing = match self.queue.recv_timeout(wait) {
                Ok(first) => self.batch_from(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Box::new(|| {}) as Answer),
            };
            if let Some(answer) = closing {
                return self.close(answer);
            }
            if self.sweep.is_some() {
                self.guarded(|it| it.write_cursors(LOT));
            } else if Instant::now() >= cursors_due {
                self.core.disk.look();
                if self.core.disk.is_log_full() {
                    self.guarded(Self::look_for_room);
                }
                self.begin_sweep();
                self.core.engine.advance();
                self.seal_if_full();
                cursors_due = Instant::now() + self.cursors_every;
            }
        }
    }

    /// Makes one batch of everything that waits, up to a bound or the end.
    fn batch_from(&mut self, first: Work) -> Option<Answer> {
        let mut acts = Vec::new();
        let mut bytes = 0;
        let mut next = Some(first);
        let mut closing = None;
        while let Some(work) = next {
            match work {
                Work::Act(act, size) => {
                    acts.push(act);
                    bytes += size;
                }
                Work::Close(answer) => {
                    closing = Some(answer);
                    break;
                }
            }
            if acts.len() == BATCH_ACTS_MAX || bytes >= BATCH_BYTES_MAX {
                break;
            }
            next = self.queue.try_recv().ok();
        }
        if !acts.is_empty() {
            self.core.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            let waited = self.core.waiting.fetch_sub(acts.len(), Ordering::Relaxed);
            let left = waited.saturating_sub(acts.len());
            #[allow(clippy::cast_precision_loss, reason = "a queue is shorter than 2⁵²")]
            self.core.meters.queue.set(left as f64);
            self.guarded(|it| it.settle(acts));
            self.seal_if_full();
        }
        closing
    }

    fn seal_if_full(&mut self) {
        let is_full = self.core.engine.collected() >= self.memtable_bytes;
        if is_full && Instant::now() >= self.seal_after {
            self.guarded(Self::seal);
        }
    }

    /// Does something unless the store has stopped; a fault or a panic stops it. What was not
    /// answered then is dropped, which tells its caller.
    fn guarded(&mut self, act: impl FnOnce(&mut Self) -> Result<(), Fault>) {
        if self.core.poison.check().is_err() {
            self.sweep = None; // or it would be tried again at once, for ever
            return;
        }
        let fault = match catch_unwind(AssertUnwindSafe(|| act(self))) {
            Ok(Ok(())) => return,
            Ok(Err(fault)) => fault,
            Err(_) => Fault::new("the committer panicked"),
        };
        // Whoever waits is told by the dropped answer.
        drop(self.core.poison.set(&fault));
        if fault.is_passing() {
            self.core.disk.log_is_full(true);
        }
    }

    /// Makes a batch durable and hands it over to the announcer.
    fn settle(&mut self, acts: Vec<Act>) -> Result<(), Fault> {
        let began = Instant::now();
        let mut acts = acts.into_iter();
        let mut answers = Vec::with_capacity(acts.len());
        let kept = self.make_durable(&mut acts, &mut answers).inspect_err(|fault| {
            // Before the answers are dropped: whoever notices that can ask why.
            drop(self.core.poison.set(fault));
            if fault.is_passing() {
                self.core.disk.log_is_full(true);
            }
        })?;
        let meters = &self.core.meters;
        meters.commit_seconds.record(began.elapsed());
        #[allow(clippy::cast_precision_loss, reason = "a batch is bounded")]
        meters.batch_messages.record(kept.len() as f64);
        let saved = kept.iter().filter(|kept| matches!(kept, Kept::Message { .. })).count();
        meters.saved.increment(saved as u64);
        let finished = self.finished.send(Finished { kept, answers });
        finished.map_err(|_| Fault::new("the announcer is gone"))
    }

    /// Decides, writes, syncs, publishes.
    fn make_durable(
        &mut self,
        acts: &mut dyn Iterator<Item = Act>,
        answers: &mut Vec<Answer>,
    ) -> Result<Vec<Kept>, Fault> {
        let core = Arc::clone(&self.core);
        let mut pending = Pending::new(&core);
        for act in acts {
            answers.push(act(&mut pending)?);
        }
        let mut decided = pending.finish();
        let kept = std::mem::take(&mut decided.kept);
        if !decided.batch.is_empty() {
            self.log.append(&decided.sent, &decided.batch)?;
            self.core.disk.log_is_full(false);
            self.sync()?;
            self.close_windows(&decided)?;
            self.core.engine.apply(std::mem::take(&mut decided.batch));
            self.publish(decided)?;
        }
        Ok(kept)
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.log.sync()?;
        let recorded = self.core.witness.acknowledged(self.log.newest());
        recorded.map_err(|error| Fault::new(format!("cannot write the witness: {error}")))
    }

    /// Ends the windows of those who go, before anybody can see what came after: a reader who finds
    /// the new head finds the end too.
    fn close_windows(&self, decided: &Decided) -> Result<(), Fault> {
        for (place, change) in &decided.members {
            if let MemberChange::Left(window) = change {
                self.core.members.close(&self.core.engine, place, *window)?;
            }
        }
        Ok(())
    }

    /// Shows a durable batch to the readers.
    fn publish(&self, decided: Decided) -> Result<(), Fault> {
        let core = &self.core;
        core.recent.publish(decided.messages.into_values());
        for (conversation, head) in decided.heads {
            core.heads.publish(conversation, head);
        }
        for (id, user) in decided.users {
            core.users.publish(id, Some(user));
        }
        for (id, group) in decided.groups {
            core.groups.publish(id, Some(group));
        }
        for (place, member) in decided.group_members {
            core.group_members.publish(place, member);
        }
        // After the heads, so that no cursor is ever seen beyond its head.
        // All of a member's changes at once: who came and went in one batch was never seen inside.
        let mut members: HashMap<Place, Vec<MemberChange>> = HashMap::new();
        for (place, change) in decided.members {
            members.entry(place).or_default().push(change);
        }
        for (place, changes) in members {
            core.members.publish(&place, changes);
        }
        for sent in decided.sent {
            core.members.sent(&core.engine, &sent)?;
        }
        Ok(())
    }

    fn begin_sweep(&mut self) {
        let (places, up_to) = (self.core.members.take_dirty(), self.log.newest());
        self.sweep = Some(Sweep { places, up_to });
    }

    /// Writes the next cursors that moved. The next batch makes them durable.
    fn write_cursors(&mut self, count: usize) -> Result<(), Fault> {
        let Some(sweep) = &mut self.sweep else { return Ok(()) };
        let first = sweep.places.len().saturating_sub(count);
        let mut batch = Batch::default();
        let places = sweep.places.split_off(first);
        let written = self.core.members.write(places.iter().cloned(), &mut batch)?;
        if !batch.is_empty() {
            if let Err(fault) = self.log.append(&[], &batch) {
                // The next sweep writes them, and until then the log tells the own sends.
                let rest = std::mem::take(&mut sweep.places);
                self.core.members.put_back(rest.into_iter().chain(places));
                self.sweep = None;
                return Err(fault);
            }
            self.core.engine.apply(batch);
            self.core.members.written(written);
        }
        if first == 0 {
            self.log.cover(sweep.up_to);
            self.sweep = None;
        }
        Ok(())
    }

    /// Writes all cursors that moved.
    fn write_all_cursors(&mut self) -> Result<(), Fault> {
        self.write_cursors(usize::MAX)?;
        self.begin_sweep();
        self.write_cursors(usize::MAX)
    }

    /// Lets the trees write out what they have collected. The cursors go with it, so that nothing
    /// in the log before this place must be done again once that is done.
    fn seal(&mut self) -> Result<(), Fault> {
        self.seal_after = Instant::now() + NO_ROOM_PAUSE;
        self.wait_for_writer()?;
        self.write_all_cursors()?;
        let segment = self.log.roll()?;
        let bytes = self.core.engine.collected();
        self.core.engine.seal();
        self.core.sealed.fetch_add(1, Ordering::SeqCst);
        self.seal_after = Instant::now();
        let sealed = self.sealed.send(Sealed { up_to: self.log.newest(), segment, bytes });
        sealed.map_err(|_| Fault::new("nobody writes out what is sealed"))
    }

    /// Sees whether the log can be made longer again, although nobody sends: whoever decides by the
    /// store's health whether to send would never find out.
    fn look_for_room(&mut self) -> Result<(), Fault> {
        self.log.make_room()?;
        self.core.disk.log_is_full(false);
        Ok(())
    }

    /// Waits until another lot may be sealed; not for a disk without room, since nobody would be
    /// answered meanwhile.
    fn wait_for_writer(&self) -> Result<(), Fault> {
        let core = &self.core;
        while core.sealed.load(Ordering::SeqCst) > SEALED_MAX && core.poison.check().is_ok() {
            if core.disk.is_stuck() {
                return Err(Fault::no_room("nothing can be written out"));
            }
            std::thread::sleep(WRITER_PAUSE);
        }
        Ok(())
    }

    /// Makes everything durable; the announcer passes the answer on after all others.
    fn close(mut self, answer: Answer) {
        self.core.closed.store(true, Ordering::SeqCst);
        self.guarded(|it| {
            it.write_all_cursors()?;
            it.sync()
        });
        let answers = vec![answer];
        if self.finished.send(Finished { kept: Vec::new(), answers }).is_err() {
            tracing::error!(target: "nexo::store", "the announcer is gone");
        }
    }
}
