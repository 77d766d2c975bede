//! Saves what was accepted: in the order of the log per conversation, many conversations at once.

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use nexo_chat::Reason;
use nexo_chat::ids::ConversationId;
use nexo_chat::policy::send::was_accepted;
use nexo_chat::store::{Appended, StoreError};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use crate::accepted::run_length;
use crate::log::{Entry, Fate, Lost, Role, Tenure};
use crate::two_phase::Shared;

/// Batches that are read and not saved yet.
const BATCHES_MAX: usize = 8;
/// How long the next ones wait for the last ones.
const READ_EVERY: Duration = Duration::from_millis(20);
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How often one looks whether the store is back.
const AWAY_PAUSE: Duration = Duration::from_millis(100);

/// Works until the shard is lost.
pub(crate) async fn save(shared: &Shared, tenure: &dyn Tenure) -> Lost {
    let (finished, done) = mpsc::channel(BATCHES_MAX * shared.options.batch_size);
    let saver = Saver::new(shared, tenure, finished);
    tokio::select! {
        lost = saver.work() => lost,
        lost = finishing(shared, tenure, done) => lost,
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
    /// What was saved here before it began.
    before: u64,
    /// Whether it is the first try.
    is_fresh: bool,
}

struct Saver<'a> {
    shared: &'a Shared,
    tenure: &'a dyn Tenure,
    finished: mpsc::Sender<(Entry, Fate)>,
    queues: HashMap<ConversationId, Queue>,
    running: FuturesUnordered<BoxFuture<'a, Ran>>,
    waiting: usize,
    /// Those of them in conversations that could not be saved.
    stuck: usize,
    /// Runs under way that have not failed.
    fresh: usize,
    /// Whether the last read was as large as it may be.
    has_more: bool,
}

impl<'a> Saver<'a> {
    fn new(
        shared: &'a Shared,
        tenure: &'a dyn Tenure,
        finished: mpsc::Sender<(Entry, Fate)>,
    ) -> Self {
        let (queues, running) = (HashMap::new(), FuturesUnordered::new());
        Self {
            shared,
            tenure,
            finished,
            queues,
            running,
            waiting: 0,
            stuck: 0,
            fresh: 0,
            has_more: false,
        }
    }

    /// Reads the next entries when the last ones are saved, or cannot be, so that what comes meanwhile
    /// goes together; at once if there were as many as one may read, since then more wait; and soon
    /// in any case, because one of them may take long.
    async fn work(mut self) -> Lost {
        let (shared, tenure) = (self.shared, self.tenure);
        let (max, wait) = (shared.options.batch_size, shared.options.block);
        // Kept until it is there: what is read has to be taken.
        let mut reading = None;
        let mut read_at = Instant::now();
        loop {
            // What cannot be saved now keeps nothing else from being read.
            let may_read = self.waiting - self.stuck < BATCHES_MAX * max && reading.is_none();
            let is_late = read_at.elapsed() >= READ_EVERY;
            if may_read && (self.fresh == 0 || self.has_more || is_late) {
                reading = Some(tenure.next(Role::Save, max, wait));
                read_at = Instant::now();
            }
            let read = async {
                match &mut reading {
                    Some(reading) => reading.await,
                    None => pending().await,
                }
            };
            tokio::select! {
                read = read => {
                    reading = None;
                    match read {
                        Ok(entries) => {
                            self.has_more = entries.len() >= max;
                            self.take(entries);
                        }
                        Err(lost) => return lost,
                    }
                }
                Some(ran) = self.running.next() => {
                    if let Err(lost) = self.settle(ran).await {
                        return lost;
                    }
                }
                () = sleep_until(read_at + READ_EVERY), if may_read => {}
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
            self.stuck += usize::from(!queue.pause.is_zero());
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
        let fits = run_length(queue.entries.iter().map(|entry| &*entry.message));
        let max = if queue.pause.is_zero() { fits } else { 1 };
        let run = queue.entries.iter().take(max);
        let drafts: Vec<_> = run.map(|entry| entry.message.draft.clone()).collect();
        let (count, pause, shared) = (drafts.len(), queue.pause, self.shared);
        let before = shared.saved();
        let is_fresh = pause.is_zero();
        self.fresh += usize::from(is_fresh);
        queue.is_running = true;
        self.running.push(Box::pin(async move {
            if !pause.is_zero() {
                sleep(pause).await;
                while shared.store.health().is_err() {
                    sleep(AWAY_PAUSE).await;
                }
            }
            let result = shared.store.append_run(was_accepted(), drafts).await;
            Ran { conversation, count, result, before, is_fresh }
        }));
    }

    async fn settle(&mut self, ran: Ran) -> Result<(), Lost> {
        let Ran { conversation, count, result, before, is_fresh } = ran;
        self.fresh -= usize::from(is_fresh);
        let Some(queue) = self.queues.get_mut(&conversation) else { return Ok(()) };
        queue.is_running = false;
        if !queue.pause.is_zero() {
            self.stuck -= queue.entries.len();
        }
        match result {
            Ok(outcomes) => {
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
                // Nothing is wrong with it as long as nothing else could be saved either.
                queue.tries += u32::from(self.shared.saved() > before);
                if queue.tries >= self.shared.options.tries_max
                    && let Some(entry) = queue.entries.pop_front()
                {
                    (queue.tries, queue.pause) = (0, Duration::ZERO);
                    self.waiting -= 1;
                    bury(self.shared, self.tenure, entry, &error).await?;
                }
            }
        }
        let queue = self.queues.get(&conversation);
        if let Some(queue) = queue.filter(|queue| !queue.pause.is_zero()) {
            self.stuck += queue.entries.len();
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
    let message = Arc::clone(&entry.message);
    tracing::error!(target: "nexo::intake", serverMsgId = %message.id, %error, "put aside");
    tenure.bury(entry, error.to_string()).await?;
    shared.meters.dead.increment(1);
    shared.drop(&message, Reason::InternalError);
    Ok(())
}
