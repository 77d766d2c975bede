//! The committer thread: takes all waiting writes, decides them in order, syncs once.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use nexo_chat::event::Event;

use super::announcer;
use super::core::Core;
use super::fail_points::{FailPoint, reach};
use super::log::Log;
use super::maintenance::SealedMemtables;
use super::members::MemberChange;
use super::open::SEALED_MAX;
use super::pending::{BatchEffects, Pending};
use super::poison::EngineFault;
use super::sweep::CursorSweep;
use crate::member_key::MemberKey;

/// Sends the result of a write to the caller that waits for it. Dropped instead if the write did
/// not become durable.
pub(crate) type Completion = Box<dyn FnOnce() + Send>;

/// Decides one write, in its turn.
pub(crate) type Decide =
    Box<dyn FnOnce(&mut Pending<'_>) -> Result<Completion, EngineFault> + Send>;

pub(crate) enum CommitRequest {
    /// A write, and about how many bytes it takes.
    Write(Decide, usize),
    /// Ends the committer: everything before it is done, nothing after.
    Close(Completion),
}

/// A durable batch, to be announced and completed.
pub(crate) struct DurableBatch {
    pub(crate) events: Vec<Event>,
    pub(crate) completions: Vec<Completion>,
}

const BATCH_WRITES_MAX: usize = 4096;
const BATCH_BYTES_MAX: usize = 8 << 20;
/// Cursors written in a row while other writes wait.
const SWEEP_STEP: usize = 64;
/// Every start leaves a segment of the log, however little is in it; beyond so many, the memtables
/// are sealed at start, so that the old segments can go.
const SEGMENTS_MAX: usize = 4;

/// How often the committer checks whether the flusher has caught up.
const FLUSH_POLL: Duration = Duration::from_millis(2);
/// How long sealing is not retried after the disk was full.
const NO_ROOM_PAUSE: Duration = Duration::from_secs(1);

/// The state of the committer; it lives on its thread.
pub(crate) struct Committer {
    pub(crate) core: Arc<Core>,
    pub(crate) queue: Receiver<CommitRequest>,
    pub(crate) durable: SyncSender<DurableBatch>,
    pub(crate) log: Log,
    /// To the flusher.
    pub(crate) sealed: SyncSender<SealedMemtables>,
    /// The memtables are sealed when they reach this size.
    pub(crate) memtable_bytes: u64,
    /// Segments of the log left by earlier runs.
    pub(crate) segments: usize,
    pub(crate) cursors_every: Duration,
    /// The cursor sweep that is under way.
    pub(crate) sweep: Option<CursorSweep>,
    /// Sealing is not retried before this time, since the disk was full.
    pub(crate) seal_after: Instant,
}

impl Committer {
    /// Runs until it is closed or the store is dropped.
    pub(crate) fn run(mut self) {
        let mut cursors_due = Instant::now() + self.cursors_every;
        if self.segments > SEGMENTS_MAX {
            self.poison_on_failure(Self::seal);
        }
        loop {
            let wait = match self.sweep {
                Some(_) => Duration::ZERO,
                None => cursors_due.saturating_duration_since(Instant::now()),
            };
            let closing = match self.queue.recv_timeout(wait) {
                Ok(first) => self.batch_from(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Box::new(|| {}) as Completion),
            };
            if let Some(completion) = closing {
                return self.close(completion);
            }
            if self.sweep.is_some() {
                self.poison_on_failure(|it| it.write_cursors(SWEEP_STEP));
            } else if Instant::now() >= cursors_due {
                self.core.disk.refresh();
                if self.core.disk.is_log_full() {
                    self.poison_on_failure(Self::retry_log_room);
                }
                self.begin_sweep();
                self.core.engine.apply_empty_batch();
                self.seal_if_full();
                cursors_due = Instant::now() + self.cursors_every;
            }
        }
    }

    /// Commits everything that waits as one batch, up to a limit or the close.
    fn batch_from(&mut self, first: CommitRequest) -> Option<Completion> {
        let mut writes = Vec::new();
        let mut bytes = 0;
        let mut next = Some(first);
        let mut closing = None;
        while let Some(work) = next {
            match work {
                CommitRequest::Write(write, size) => {
                    writes.push(write);
                    bytes += size;
                }
                CommitRequest::Close(completion) => {
                    closing = Some(completion);
                    break;
                }
            }
            if writes.len() == BATCH_WRITES_MAX || bytes >= BATCH_BYTES_MAX {
                break;
            }
            next = self.queue.try_recv().ok();
        }
        if !writes.is_empty() {
            self.core.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            let waited = self.core.waiting.fetch_sub(writes.len(), Ordering::Relaxed);
            let left = waited.saturating_sub(writes.len());
            #[allow(clippy::cast_precision_loss, reason = "a queue is shorter than 2⁵²")]
            self.core.meters.queue.set(left as f64);
            self.poison_on_failure(|it| it.commit(writes));
            self.seal_if_full();
        }
        closing
    }

    fn seal_if_full(&mut self) {
        let bytes = self.core.engine.memtable_bytes();
        // Sealing needs the trees' locks; a moment later it does not have to wait for them.
        let may_wait = bytes < 2 * self.memtable_bytes && self.core.engine.is_installing();
        let is_full = bytes >= self.memtable_bytes && !may_wait;
        if is_full && Instant::now() >= self.seal_after {
            self.poison_on_failure(Self::seal);
        }
    }

    /// Runs a step unless the store is poisoned; a fault or a panic poisons it. Completions that
    /// were not run are dropped, which tells their callers.
    fn poison_on_failure(&mut self, step: impl FnOnce(&mut Self) -> Result<(), EngineFault>) {
        if self.core.poison.check().is_err() {
            self.sweep = None; // otherwise the loop would retry it at once, forever
            return;
        }
        let fault = match catch_unwind(AssertUnwindSafe(|| step(self))) {
            Ok(Ok(())) => return,
            Ok(Err(fault)) => fault,
            Err(_) => EngineFault::new("the committer panicked"),
        };
        // The caller learns of it by its dropped completion.
        drop(self.core.poison.set(&fault));
        if fault.is_temporary() {
            self.core.disk.set_log_full(true);
        }
    }

    /// Makes a batch durable and passes it to the announcer.
    fn commit(&mut self, writes: Vec<Decide>) -> Result<(), EngineFault> {
        let began = Instant::now();
        let mut writes = writes.into_iter();
        let mut completions = Vec::with_capacity(writes.len());
        let events = self.make_durable(&mut writes, &mut completions).inspect_err(|fault| {
            // Set before the completions are dropped, so that the callers can read why.
            drop(self.core.poison.set(fault));
            if fault.is_temporary() {
                self.core.disk.set_log_full(true);
            }
        })?;
        let meters = &self.core.meters;
        meters.commit_seconds.record(began.elapsed());
        #[allow(clippy::cast_precision_loss, reason = "a batch is bounded")]
        meters.batch_messages.record(events.len() as f64);
        let saved = events.iter().filter(|events| matches!(events, Event::Message { .. })).count();
        meters.saved.increment(saved as u64);
        self.announce(DurableBatch { events, completions })
    }

    /// Announces a durable batch. The announcer does it if more writes wait for the next sync; if
    /// none does, waking another thread would cost more than it saves.
    fn announce(&self, batch: DurableBatch) -> Result<(), EngineFault> {
        let core = &self.core;
        // Zero means that all earlier batches are announced: only this thread adds to it.
        if core.waiting.load(Ordering::Relaxed) == 0 && core.announcing.load(Ordering::Acquire) == 0
        {
            announcer::announce(core, batch);
            return Ok(());
        }
        core.announcing.fetch_add(1, Ordering::Relaxed);
        self.durable.send(batch).map_err(|_| EngineFault::new("the announcer is gone"))
    }

    /// Decides, writes, syncs, publishes.
    fn make_durable(
        &mut self,
        writes: &mut dyn Iterator<Item = Decide>,
        completions: &mut Vec<Completion>,
    ) -> Result<Vec<Event>, EngineFault> {
        let core = Arc::clone(&self.core);
        let mut pending = Pending::new(&core);
        for write in writes {
            completions.push(write(&mut pending)?);
        }
        let mut effects = pending.finish();
        let events = std::mem::take(&mut effects.events);
        if !effects.batch.is_empty() {
            self.log.append(&effects.own_sends, &effects.batch)?;
            self.core.disk.set_log_full(false);
            self.sync()?;
            self.close_windows(&effects)?;
            self.core.engine.apply(std::mem::take(&mut effects.batch));
            self.publish(effects)?;
            reach(FailPoint::BatchPublished);
        }
        Ok(events)
    }

    fn sync(&mut self) -> Result<(), EngineFault> {
        self.log.sync().inspect_err(|fault| self.core.mark_dirty(fault))?;
        let recorded = self.core.witness.set_acknowledged(self.log.newest());
        reach(FailPoint::EntryWitnessed);
        recorded.map_err(|error| EngineFault::new(format!("cannot write the witness: {error}")))
    }

    /// Closes the windows of leaving members before readers can see what came after: a reader that
    /// finds the new head finds the closed window too.
    fn close_windows(&self, effects: &BatchEffects) -> Result<(), EngineFault> {
        for (member_key, change) in &effects.members {
            if let MemberChange::Left(window) = change {
                let closed = self.core.members.close_window(&self.core.engine, member_key, *window);
                // A member that cannot be read is not cached, so nobody sees the open window.
                closed.or_else(|fault| self.core.pass_damage(fault))?;
            }
        }
        Ok(())
    }

    /// Publishes a durable batch to the readers.
    fn publish(&self, effects: BatchEffects) -> Result<(), EngineFault> {
        let core = &self.core;
        core.recent_messages.publish(effects.messages.into_values());
        for (conversation, head) in effects.heads {
            core.heads.publish(conversation, head);
        }
        for (id, user) in effects.users {
            core.users.publish(id, Some(user));
        }
        for (id, group) in effects.groups {
            core.groups.publish(id, Some(group));
        }
        for (member_key, member) in effects.group_members {
            core.group_members.publish(member_key, member);
        }
        // After the heads, so that no cursor is ever seen beyond its head. All changes of a member
        // at once: a user who joined and left in one batch is never seen as a member.
        let mut members: HashMap<MemberKey, Vec<MemberChange>> = HashMap::new();
        for (member_key, change) in effects.members {
            members.entry(member_key).or_default().push(change);
        }
        for (member_key, changes) in members {
            core.members.publish(&member_key, changes);
        }
        for sent in effects.own_sends {
            let applied = core.members.apply_own_send(&core.engine, &sent);
            // Cursors that cannot be read have no place to move from.
            applied.or_else(|fault| core.pass_damage(fault))?;
        }
        Ok(())
    }

    /// Seals the memtables for the flusher. All moved cursors go with them, so that once they are
    /// flushed recovery needs nothing of the log before this point.
    fn seal(&mut self) -> Result<(), EngineFault> {
        self.seal_after = Instant::now() + NO_ROOM_PAUSE;
        self.wait_for_flush()?;
        self.write_all_cursors()?;
        let segment = self.log.roll()?;
        let bytes = self.core.engine.memtable_bytes();
        self.core.sealed_up_to.store(self.log.newest(), Ordering::SeqCst);
        self.core.engine.seal();
        reach(FailPoint::MemtablesSealed);
        let waiting = self.core.sealed.fetch_add(1, Ordering::SeqCst);
        self.core.engine.hurry_flush(waiting > 0);
        self.seal_after = Instant::now();
        let sealed = self.sealed.send(SealedMemtables { up_to: self.log.newest(), segment, bytes });
        sealed.map_err(|_| EngineFault::new("nobody writes out what is sealed"))
    }

    /// Tries to allocate the next segment of a full log although no write comes in: a client that
    /// looks at the store's health before it sends would never find out otherwise.
    fn retry_log_room(&mut self) -> Result<(), EngineFault> {
        self.log.make_room()?;
        self.core.disk.set_log_full(false);
        Ok(())
    }

    /// Waits until the flusher may take more memtables. Does not wait for a full disk, since no
    /// write would be answered meanwhile.
    fn wait_for_flush(&self) -> Result<(), EngineFault> {
        let core = &self.core;
        while core.sealed.load(Ordering::SeqCst) > SEALED_MAX && core.poison.check().is_ok() {
            if core.disk.is_flush_blocked() {
                return Err(EngineFault::no_room("nothing can be written out"));
            }
            std::thread::sleep(FLUSH_POLL);
        }
        Ok(())
    }

    /// Makes everything durable; the announcer runs the completion after all others.
    fn close(mut self, completion: Completion) {
        self.core.closed.store(true, Ordering::SeqCst);
        self.poison_on_failure(|it| {
            it.write_all_cursors()?;
            it.sync()
        });
        let completions = vec![completion];
        if let Err(fault) = self.announce(DurableBatch { events: Vec::new(), completions }) {
            tracing::error!(target: "nexo::store", %fault, "the end is not announced");
        }
    }
}
