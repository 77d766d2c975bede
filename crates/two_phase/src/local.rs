//! A log in memory, for one node. A crash of the process loses what it has: with this log,
//! "accepted" promises no more than that.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nexo_chat::Boxed;
use nexo_chat::ids::{ConversationId, MessageId};
use nexo_chat::model::Fingerprint;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::accepted::{AcceptedMessage, shard_of};
use crate::log::{
    AcceptedLog, ConsumerGroup, LeaseLost, LogEntry, LogUnavailable, PutCallback, PutOutcome,
    SaveOutcome, ShardDepth, ShardLease,
};

/// How many ids of saved messages a shard remembers.
const SAVED_MAX: usize = 50_000;
/// How long a clean shutdown waits for unsaved messages.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(10);
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

pub struct LocalLog {
    shards: Vec<Arc<LocalShard>>,
    is_leaving: AtomicBool,
}

struct LocalShard {
    state: Mutex<LocalShardState>,
    wakeups: [Notify; 2],
    backlog_max: usize,
}

#[derive(Default)]
struct LocalShardState {
    /// The id of the first entry.
    first: u64,
    entries: VecDeque<Option<Arc<AcceptedMessage>>>,
    /// The id of the entry that each consumer group reads next.
    next: [u64; 2],
    /// The fingerprint of a waiting message, or `None` once it is saved.
    known: HashMap<MessageId, Option<Fingerprint>>,
    saved: VecDeque<MessageId>,
    waiting: usize,
}

impl LocalLog {
    /// `backlog_max` is the most messages that wait in one shard.
    pub fn new(shards: usize, backlog_max: usize) -> Arc<Self> {
        let wakeups = || [Notify::new(), Notify::new()];
        let shard =
            || Arc::new(LocalShard { state: Mutex::default(), wakeups: wakeups(), backlog_max });
        let shards = (0..shards.max(1)).map(|_| shard()).collect();
        Arc::new(Self { shards, is_leaving: AtomicBool::new(false) })
    }

    fn shard(&self, conversation: &ConversationId) -> &Arc<LocalShard> {
        &self.shards[shard_of(conversation, self.shards.len())]
    }
}

impl LocalShard {
    fn lock(&self) -> MutexGuard<'_, LocalShardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, message: Arc<AcceptedMessage>) -> PutOutcome {
        let mut state = self.lock();
        match state.known.get(&message.id) {
            Some(None) => return PutOutcome::Saved,
            Some(Some(known)) if *known == message.fingerprint => return PutOutcome::Again,
            Some(Some(_)) => return PutOutcome::Conflict,
            None if state.waiting >= self.backlog_max => return PutOutcome::Full,
            None => {}
        }
        state.known.insert(message.id, Some(message.fingerprint));
        state.entries.push_back(Some(message));
        state.waiting += 1;
        let length = state.waiting as u64;
        drop(state);
        self.wakeups.iter().for_each(Notify::notify_one);
        PutOutcome::New { length }
    }

    fn read(&self, group: ConsumerGroup, max: usize) -> Vec<LogEntry> {
        let mut state = self.lock();
        let from = state.next[group as usize].max(state.first);
        let skip = usize::try_from(from - state.first).unwrap_or(usize::MAX);
        let mut at = from;
        let mut entries = Vec::new();
        for message in state.entries.iter().skip(skip) {
            if entries.len() == max {
                break;
            }
            if let Some(message) = message {
                entries.push(LogEntry { entry_id: at.to_string(), message: Arc::clone(message) });
            }
            at += 1;
        }
        state.next[group as usize] = at;
        entries
    }

    fn finish(&self, entries: &[(LogEntry, SaveOutcome)]) {
        let mut state = self.lock();
        for (entry, outcome) in entries {
            let first = state.first;
            let index = entry.entry_id.parse().ok().and_then(|at: u64| at.checked_sub(first));
            let index = index.and_then(|at| usize::try_from(at).ok());
            let slot = index.and_then(|at| state.entries.get_mut(at));
            if slot.and_then(Option::take).is_some() {
                state.waiting -= 1;
            }
            let id = entry.message.id;
            match outcome {
                SaveOutcome::Dropped => drop(state.known.remove(&id)),
                SaveOutcome::Saved => {
                    state.known.insert(id, None);
                    state.saved.push_back(id);
                }
            }
        }
        while state.saved.len() > SAVED_MAX {
            let oldest = state.saved.pop_front();
            oldest.and_then(|id| state.known.remove(&id));
        }
        while let Some(None) = state.entries.front() {
            state.entries.pop_front();
            state.first += 1;
        }
    }
}

impl AcceptedLog for LocalLog {
    fn shards(&self) -> usize {
        self.shards.len()
    }

    fn put(&self, message: Arc<AcceptedMessage>, _after: Option<MessageId>, callback: PutCallback) {
        if self.is_leaving.load(Ordering::SeqCst) {
            return callback(Err(LogUnavailable("the server is going down".into())));
        }
        let put = self.shard(&message.draft.conversation).put(message);
        callback(Ok(put));
    }

    fn acquire_lease(&self, shard: usize) -> Boxed<'_, Box<dyn ShardLease>> {
        let shard = Arc::clone(&self.shards[shard]);
        {
            // Entries that were read and not finished are read again.
            let mut state = shard.lock();
            state.next = [state.first; 2];
        }
        Box::pin(std::future::ready(Box::new(LocalShardLease(shard)) as Box<dyn ShardLease>))
    }

    fn is_waiting<'a>(
        &'a self,
        conversation: &'a ConversationId,
        id: MessageId,
    ) -> Boxed<'a, Result<bool, LogUnavailable>> {
        let is_waiting = matches!(self.shard(conversation).lock().known.get(&id), Some(Some(_)));
        Box::pin(std::future::ready(Ok(is_waiting)))
    }

    fn health(&self) -> Result<(), String> {
        Ok(())
    }

    fn leave(&self) -> Boxed<'_, ()> {
        self.is_leaving.store(true, Ordering::SeqCst);
        Box::pin(async move {
            let drained = async {
                while self.shards.iter().any(|shard| shard.lock().waiting > 0) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            if timeout(LEAVE_TIMEOUT, drained).await.is_err() {
                tracing::error!(target: "nexo::two_phase", "accepted messages could not be saved, and are lost");
            }
        })
    }
}

/// The lease of a shard in memory: never lost.
struct LocalShardLease(Arc<LocalShard>);

impl ShardLease for LocalShardLease {
    fn renew_until_lost<'a>(
        &'a self,
        report: &'a (dyn Fn(ShardDepth) + Send + Sync),
    ) -> Boxed<'a, LeaseLost> {
        Box::pin(async move {
            loop {
                let depth = {
                    let state = self.0.lock();
                    let read = state.next[ConsumerGroup::Save as usize].saturating_sub(state.first);
                    let length = state.waiting as u64;
                    ShardDepth { length, pending: read.min(length), pending_deliver: 0 }
                };
                report(depth);
                tokio::time::sleep(REPORT_INTERVAL).await;
            }
        })
    }

    fn read_next(
        &self,
        group: ConsumerGroup,
        max: usize,
        wait: Duration,
    ) -> Boxed<'_, Result<Vec<LogEntry>, LeaseLost>> {
        Box::pin(async move {
            let entries = self.0.read(group, max);
            if !entries.is_empty() {
                return Ok(entries);
            }
            // A timeout is no error: the read below may return nothing.
            drop(timeout(wait, self.0.wakeups[group as usize].notified()).await);
            Ok(self.0.read(group, max))
        })
    }

    fn acknowledge_delivered(&self, _entries: Vec<LogEntry>) -> Boxed<'_, Result<(), LeaseLost>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish(&self, entries: Vec<(LogEntry, SaveOutcome)>) -> Boxed<'_, Result<(), LeaseLost>> {
        self.0.finish(&entries);
        Box::pin(std::future::ready(Ok(())))
    }

    fn dead_letter(&self, entry: LogEntry, _why: String) -> Boxed<'_, Result<(), LeaseLost>> {
        self.finish(vec![(entry, SaveOutcome::Dropped)])
    }
}
