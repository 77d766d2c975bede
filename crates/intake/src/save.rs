//! Saves what was accepted: in the order of the log per conversation, many conversations at once.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use nexo_chat::Reason;
use nexo_chat::ids::ConversationId;
use nexo_chat::policy::send::was_accepted;
use nexo_chat::store::{Appended, RUN_MAX, StoreError};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::log::{Entry, Fate, Lost, Role, Tenure};
use crate::two_phase::Shared;

/// Batches that are read and not saved yet.
const BATCHES_MAX: usize = 4;
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How often one looks whether the store is back.
const AWAY_PAUSE: Duration = Duration::from_millis(100);

/// Works until the shard is lost.
pub(crate) async fn save(shared: &Shared, tenure: &dyn Tenure) -> Lost {
    let (read, entries) = mpsc::channel(1);
    let (finished, done) = mpsc::channel(BATCHES_MAX * shared.options.batch_size);
    let saver = Saver::new(shared, tenure, finished);
    tokio::select! {
        lost = reading(shared, tenure, read) => lost,
        lost = saver.work(entries) => lost,
        lost = finishing(shared, tenure, done) => lost,
    }
}

/// Brings entries as they come.
async fn reading(shared: &Shared, tenure: &dyn Tenure, read: mpsc::Sender<Vec<Entry>>) -> Lost {
    let options = &shared.options;
    loop {
        // With room for them first: once they are read, somebody has to take them.
        let Ok(room) = read.reserve().await else { return Lost("the saver has ended".into()) };
        match tenure.next(Role::Save, options.batch_size, options.block).await {
            Ok(entries) => room.send(entries),
            Err(lost) => return lost,
        }
    }
}

/// Takes saved entries out of the log.
async fn finishing(
    shared: &Shared,
    tenure: &dyn Tenure,
    mut done: mpsc::Receiver<(Entry, Fate)>,
) -> Lost {
    let mut entries = Vec::new();
    while done.recv_many(&mut entries, shared.options.batch_size).await > 0 {
        if let Err(lost) = tenure.done(std::mem::take(&mut entries)).await {
            return lost;
        }
    }
    Lost("the saver has ended".into())
}

/// The messages of a conversation that wait, in order.
#[derive(Default)]
struct Queue {
    entries: VecDeque<Entry>,
    is_running: bool,
    /// How often its first one failed while others were saved.
    tries: u32,
    pause: Duration,
}

/// What became of a run.
struct Ran {
    conversation: ConversationId,
    count: usize,
    result: Result<Vec<Appended>, StoreError>,
    /// Runs saved before it began.
    before: u64,
}

struct Saver<'a> {
    shared: &'a Shared,
    tenure: &'a dyn Tenure,
    finished: mpsc::Sender<(Entry, Fate)>,
    queues: HashMap<ConversationId, Queue>,
    running: FuturesUnordered<BoxFuture<'a, Ran>>,
    waiting: usize,
    /// Runs saved.
    saved: u64,
}

impl<'a> Saver<'a> {
    fn new(
        shared: &'a Shared,
        tenure: &'a dyn Tenure,
        finished: mpsc::Sender<(Entry, Fate)>,
    ) -> Self {
        let (queues, running) = (HashMap::new(), FuturesUnordered::new());
        Self { shared, tenure, finished, queues, running, waiting: 0, saved: 0 }
    }

    async fn work(mut self, mut entries: mpsc::Receiver<Vec<Entry>>) -> Lost {
        let max = BATCHES_MAX * self.shared.options.batch_size;
        loop {
            tokio::select! {
                batch = entries.recv(), if self.waiting < max => match batch {
                    Some(batch) => self.take(batch),
                    None => return Lost("the reader has ended".into()),
                },
                Some(ran) = self.running.next() => {
                    if let Err(lost) = self.settle(ran).await {
                        return lost;
                    }
                }
            }
        }
    }

    fn take(&mut self, batch: Vec<Entry>) {
        self.waiting += batch.len();
        let mut touched = Vec::new();
        for entry in batch {
            let conversation = entry.message.draft.conversation.clone();
            let queue = self.queues.entry(conversation.clone()).or_default();
            queue.entries.push_back(entry);
            if !queue.is_running && queue.entries.len() == 1 {
                touched.push(conversation);
            }
        }
        for conversation in touched {
            self.run(conversation);
        }
    }

    /// Appends what waits of a conversation; after a failure one by one, so that a message that
    /// cannot be saved is found.
    fn run(&mut self, conversation: ConversationId) {
        let Some(queue) = self.queues.get_mut(&conversation) else { return };
        let max = if queue.pause.is_zero() { RUN_MAX } else { 1 };
        let run = queue.entries.iter().take(max);
        let drafts: Vec<_> = run.map(|entry| entry.message.draft.clone()).collect();
        let (count, pause, before, shared) = (drafts.len(), queue.pause, self.saved, self.shared);
        queue.is_running = true;
        self.running.push(Box::pin(async move {
            if !pause.is_zero() {
                sleep(pause).await;
                while shared.store.health().is_err() {
                    sleep(AWAY_PAUSE).await;
                }
            }
            let result = shared.store.append_run(was_accepted(), drafts).await;
            Ran { conversation, count, result, before }
        }));
    }

    async fn settle(&mut self, ran: Ran) -> Result<(), Lost> {
        let Ran { conversation, count, result, before } = ran;
        let Some(queue) = self.queues.get_mut(&conversation) else { return Ok(()) };
        queue.is_running = false;
        match result {
            Ok(outcomes) => {
                self.saved += 1;
                self.waiting -= count;
                (queue.tries, queue.pause) = (0, Duration::ZERO);
                let entries: Vec<Entry> = queue.entries.drain(..count).collect();
                for (entry, outcome) in entries.into_iter().zip(outcomes) {
                    let fate = settled(self.shared, &entry, &outcome);
                    if self.finished.send((entry, fate)).await.is_err() {
                        return Err(Lost("the finisher has ended".into()));
                    }
                }
            }
            Err(error) => {
                self.shared.meters.save_fail.increment(1);
                queue.pause = (queue.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
                // Nothing is wrong with it as long as nothing else can be saved either.
                if self.saved > before {
                    queue.tries += 1;
                }
                if queue.tries >= self.shared.options.tries_max
                    && let Some(entry) = queue.entries.pop_front()
                {
                    (queue.tries, queue.pause) = (0, Duration::ZERO);
                    self.waiting -= 1;
                    bury(self.shared, self.tenure, entry, &error).await?;
                }
            }
        }
        if self.queues.get(&conversation).is_some_and(|queue| queue.entries.is_empty()) {
            self.queues.remove(&conversation);
        } else {
            self.run(conversation);
        }
        Ok(())
    }
}

fn settled(shared: &Shared, entry: &Entry, outcome: &Appended) -> Fate {
    shared.tell(&entry.message, outcome);
    match outcome {
        Appended::Stored(_) => {
            let lag_ms = shared.clock.now().since(entry.message.draft.sent_at);
            shared.meters.save_lag.record(Duration::from_millis(lag_ms));
            Fate::Saved
        }
        Appended::Duplicate(_) => Fate::Saved,
        Appended::Conflict | Appended::Refused(_) => Fate::Dropped,
    }
}

/// Puts aside what cannot be saved, and tells its sender.
async fn bury(
    shared: &Shared,
    tenure: &dyn Tenure,
    entry: Entry,
    error: &StoreError,
) -> Result<(), Lost> {
    let id = entry.message.id;
    tracing::error!(target: "nexo::intake", serverMsgId = %id, %error, "cannot be saved, put aside");
    shared.meters.dead.increment(1);
    shared.drop(&entry.message, Reason::InternalError);
    tenure.bury(entry, error.to_string()).await
}
