//! A log in memory, for one node. What it accepts is lost with the process: accepted then promises
//! no more than that.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nexo_chat::Boxed;
use nexo_chat::ids::{ConversationId, MessageId};
use nexo_chat::model::Fingerprint;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::accepted::{Accepted, shard};
use crate::log::{Away, Depth, Entry, Fate, Log, Lost, Put, Role, Tenure, Told};

/// How many saved messages a shard remembers.
const SAVED_MAX: usize = 50_000;
/// How long the end waits for what is not saved yet.
const PATIENCE: Duration = Duration::from_secs(10);
const DEPTH_EVERY: Duration = Duration::from_secs(5);

/// Shards in memory.
pub struct Local {
    shards: Vec<Arc<Shard>>,
    is_leaving: AtomicBool,
}

struct Shard {
    state: Mutex<State>,
    more: [Notify; 2],
    backlog_max: usize,
}

#[derive(Default)]
struct State {
    /// What the first of the entries is called.
    first: u64,
    entries: VecDeque<Option<Arc<Accepted>>>,
    /// What each role reads next.
    next: [u64; 2],
    open: HashMap<MessageId, Option<Fingerprint>>,
    saved: VecDeque<MessageId>,
    waiting: usize,
}

impl Local {
    /// So many shards, each for so many messages at most.
    pub fn new(shards: usize, backlog_max: usize) -> Arc<Self> {
        let more = || [Notify::new(), Notify::new()];
        let shard = || Arc::new(Shard { state: Mutex::default(), more: more(), backlog_max });
        let shards = (0..shards.max(1)).map(|_| shard()).collect();
        Arc::new(Self { shards, is_leaving: AtomicBool::new(false) })
    }

    fn shard(&self, conversation: &ConversationId) -> &Arc<Shard> {
        &self.shards[shard(conversation, self.shards.len())]
    }
}

impl Shard {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, message: Arc<Accepted>) -> Put {
        let mut state = self.state();
        match state.open.get(&message.id) {
            Some(None) => return Put::Saved,
            Some(Some(known)) if *known == message.fingerprint => return Put::Again,
            Some(Some(_)) => return Put::Conflict,
            None if state.waiting >= self.backlog_max => return Put::Full,
            None => {}
        }
        state.open.insert(message.id, Some(message.fingerprint));
        state.entries.push_back(Some(message));
        state.waiting += 1;
        let length = state.waiting as u64;
        drop(state);
        self.more.iter().for_each(Notify::notify_one);
        Put::New { length }
    }

    fn read(&self, role: Role, max: usize) -> Vec<Entry> {
        let mut state = self.state();
        let from = state.next[role as usize].max(state.first);
        let skip = usize::try_from(from - state.first).unwrap_or(usize::MAX);
        let mut at = from;
        let mut entries = Vec::new();
        for message in state.entries.iter().skip(skip) {
            if entries.len() == max {
                break;
            }
            if let Some(message) = message {
                entries.push(Entry { place: at.to_string(), message: Arc::clone(message) });
            }
            at += 1;
        }
        state.next[role as usize] = at;
        entries
    }

    fn done(&self, entries: &[(Entry, Fate)]) {
        let mut state = self.state();
        for (entry, fate) in entries {
            let first = state.first;
            let place = entry.place.parse().ok().and_then(|at: u64| at.checked_sub(first));
            let place = place.and_then(|at| usize::try_from(at).ok());
            let slot = place.and_then(|at| state.entries.get_mut(at));
            if slot.and_then(Option::take).is_some() {
                state.waiting -= 1;
            }
            let id = entry.message.id;
            match fate {
                Fate::Dropped => drop(state.open.remove(&id)),
                Fate::Saved => {
                    state.open.insert(id, None);
                    state.saved.push_back(id);
                }
            }
        }
        while state.saved.len() > SAVED_MAX {
            let oldest = state.saved.pop_front();
            oldest.and_then(|id| state.open.remove(&id));
        }
        while let Some(None) = state.entries.front() {
            state.entries.pop_front();
            state.first += 1;
        }
    }
}

impl Log for Local {
    fn shards(&self) -> usize {
        self.shards.len()
    }

    fn put(&self, message: Arc<Accepted>, _after: Option<MessageId>, told: Told) {
        if self.is_leaving.load(Ordering::SeqCst) {
            return told(Err(Away("the server is going down".into())));
        }
        let put = self.shard(&message.draft.conversation).put(message);
        told(Ok(put));
    }

    fn tend(&self, shard: usize) -> Boxed<'_, Box<dyn Tenure>> {
        let shard = Arc::clone(&self.shards[shard]);
        {
            // What was read before and is not done comes again.
            let mut state = shard.state();
            state.next = [state.first; 2];
        }
        Box::pin(std::future::ready(Box::new(Held(shard)) as Box<dyn Tenure>))
    }

    fn is_open<'a>(
        &'a self,
        conversation: &'a ConversationId,
        id: MessageId,
    ) -> Boxed<'a, Result<bool, Away>> {
        let is_open = matches!(self.shard(conversation).state().open.get(&id), Some(Some(_)));
        Box::pin(std::future::ready(Ok(is_open)))
    }

    fn health(&self) -> Result<(), String> {
        Ok(())
    }

    fn leave(&self) -> Boxed<'_, ()> {
        self.is_leaving.store(true, Ordering::SeqCst);
        Box::pin(async move {
            let emptied = async {
                while self.shards.iter().any(|shard| shard.state().waiting > 0) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            if timeout(PATIENCE, emptied).await.is_err() {
                tracing::error!(target: "nexo::intake", "accepted messages could not be saved, and are lost");
            }
        })
    }
}

/// A shard in memory is always looked after here.
struct Held(Arc<Shard>);

impl Tenure for Held {
    fn keep<'a>(&'a self, tell: &'a (dyn Fn(Depth) + Send + Sync)) -> Boxed<'a, Lost> {
        Box::pin(async move {
            loop {
                let depth = {
                    let state = self.0.state();
                    let read = state.next[Role::Save as usize].saturating_sub(state.first);
                    let length = state.waiting as u64;
                    Depth { length, pending: read.min(length), pending_deliver: 0 }
                };
                tell(depth);
                tokio::time::sleep(DEPTH_EVERY).await;
            }
        })
    }

    fn next(&self, role: Role, max: usize, wait: Duration) -> Boxed<'_, Result<Vec<Entry>, Lost>> {
        Box::pin(async move {
            let entries = self.0.read(role, max);
            if !entries.is_empty() {
                return Ok(entries);
            }
            // Nothing in that time is an answer too.
            drop(timeout(wait, self.0.more[role as usize].notified()).await);
            Ok(self.0.read(role, max))
        })
    }

    fn shown(&self, _entries: Vec<Entry>) -> Boxed<'_, Result<(), Lost>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn done(&self, entries: Vec<(Entry, Fate)>) -> Boxed<'_, Result<(), Lost>> {
        self.0.done(&entries);
        Box::pin(std::future::ready(Ok(())))
    }

    fn bury(&self, entry: Entry, _why: String) -> Boxed<'_, Result<(), Lost>> {
        self.done(vec![(entry, Fate::Dropped)])
    }
}
