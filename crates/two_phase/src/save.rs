//! Saves accepted messages: in the order of the log per conversation, many conversations at once.

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use nexo_chat::Reason;
use nexo_chat::ids::ConversationId;
use nexo_chat::store::{Appended, StoreError};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use crate::accepted::run_length;
use crate::context::TwoPhaseContext;
use crate::log::{ConsumerGroup, LeaseLost, LogEntry, SaveOutcome, ShardLease};

/// The most batches that are read and not saved yet.
const BATCHES_MAX: usize = 8;
/// How long the next read waits for the last batch to be saved.
const READ_EVERY: Duration = Duration::from_millis(20);
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How often a worker checks whether the store is back.
const AWAY_PAUSE: Duration = Duration::from_millis(100);

/// Runs until the lease is lost.
pub(crate) async fn save(context: &TwoPhaseContext, lease: &dyn ShardLease) -> LeaseLost {
    let (finished, done) = mpsc::channel(BATCHES_MAX * context.options.batch_size);
    let saver = ShardSaver::new(context, lease, finished);
    tokio::select! {
        lost = saver.run() => lost,
        lost = finish_saved(context, lease, done) => lost,
    }
}

/// Finishes saved entries in the log, many at a time.
async fn finish_saved(
    context: &TwoPhaseContext,
    lease: &dyn ShardLease,
    mut done: mpsc::Receiver<(LogEntry, SaveOutcome)>,
) -> LeaseLost {
    let mut entries = Vec::new();
    while done.recv_many(&mut entries, context.options.batch_size).await > 0 {
        if let Err(lost) = lease.finish(std::mem::take(&mut entries)).await {
            return lost;
        }
    }
    LeaseLost("the saver has ended".into())
}

/// The entries of a conversation that wait to be saved, in order.
#[derive(Default)]
struct ConversationQueue {
    entries: VecDeque<LogEntry>,
    is_running: bool,
    /// How often its first entry failed while other messages were saved.
    tries: u32,
    pause: Duration,
}

/// The result of appending a run of messages.
struct RunResult {
    conversation: ConversationId,
    count: usize,
    result: Result<Vec<Appended>, StoreError>,
    /// How many messages this node had saved before.
    before: u64,
    /// Whether it is the first attempt.
    is_fresh: bool,
}

struct ShardSaver<'a> {
    context: &'a TwoPhaseContext,
    lease: &'a dyn ShardLease,
    finished: mpsc::Sender<(LogEntry, SaveOutcome)>,
    queues: HashMap<ConversationId, ConversationQueue>,
    running: FuturesUnordered<BoxFuture<'a, RunResult>>,
    waiting: usize,
    /// Those of `waiting` that belong to conversations whose last append failed.
    stuck: usize,
    /// Appends under way that are a first attempt.
    fresh: usize,
    /// Whether the last read returned as many entries as it may: then more wait.
    has_more: bool,
}

impl<'a> ShardSaver<'a> {
    fn new(
        context: &'a TwoPhaseContext,
        lease: &'a dyn ShardLease,
        finished: mpsc::Sender<(LogEntry, SaveOutcome)>,
    ) -> Self {
        let (queues, running) = (HashMap::new(), FuturesUnordered::new());
        Self {
            context,
            lease,
            finished,
            queues,
            running,
            waiting: 0,
            stuck: 0,
            fresh: 0,
            has_more: false,
        }
    }

    /// Reads the next entries when the last ones are saved or have failed, so that entries that
    /// come meanwhile form one batch. It reads at once if the last read was full, and after
    /// [`READ_EVERY`] in any case, because one append may take long.
    async fn run(mut self) -> LeaseLost {
        let (context, lease) = (self.context, self.lease);
        let (max, wait) = (context.options.batch_size, context.options.block);
        // Polled to the end: a dropped read would lose its entries until the next lease.
        let mut reading = None;
        let mut read_at = Instant::now();
        loop {
            // Entries that cannot be saved now do not keep others from being read.
            let may_read = self.waiting - self.stuck < BATCHES_MAX * max && reading.is_none();
            let is_late = read_at.elapsed() >= READ_EVERY;
            if may_read && (self.fresh == 0 || self.has_more || is_late) {
                reading = Some(lease.read_next(ConsumerGroup::Save, max, wait));
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
                            self.enqueue(entries);
                        }
                        Err(lost) => return lost,
                    }
                }
                Some(run_result) = self.running.next() => {
                    if let Err(lost) = self.handle_result(run_result).await {
                        return lost;
                    }
                }
                () = sleep_until(read_at + READ_EVERY), if may_read => {}
            }
        }
    }

    fn enqueue(&mut self, batch: Vec<LogEntry>) {
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
            self.start_append(conversation);
        }
    }

    /// Appends the waiting entries of a conversation. After a failure it appends them one by one,
    /// to find the message that cannot be saved.
    fn start_append(&mut self, conversation: ConversationId) {
        let Some(queue) = self.queues.get_mut(&conversation) else { return };
        let fits = run_length(queue.entries.iter().map(|entry| &*entry.message));
        let max = if queue.pause.is_zero() { fits } else { 1 };
        let run = queue.entries.iter().take(max);
        let drafts: Vec<_> = run.map(|entry| entry.message.draft.clone()).collect();
        let (count, pause, context) = (drafts.len(), queue.pause, self.context);
        let before = context.saved_count();
        let is_fresh = pause.is_zero();
        self.fresh += usize::from(is_fresh);
        queue.is_running = true;
        self.running.push(Box::pin(async move {
            if !pause.is_zero() {
                sleep(pause).await;
                while context.store.health().is_err() {
                    sleep(AWAY_PAUSE).await;
                }
            }
            let result = context.append_run(drafts).await;
            RunResult { conversation, count, result, before, is_fresh }
        }));
    }

    async fn handle_result(&mut self, run_result: RunResult) -> Result<(), LeaseLost> {
        let RunResult { conversation, count, result, before, is_fresh } = run_result;
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
                let entries: Vec<LogEntry> = queue.entries.drain(..count).collect();
                for (entry, outcome) in entries.into_iter().zip(outcomes) {
                    let save_outcome = report_saved(self.context, &entry, &outcome);
                    if self.finished.send((entry, save_outcome)).await.is_err() {
                        return Err(LeaseLost("the finisher has ended".into()));
                    }
                }
            }
            Err(error) => {
                self.context.meters.save_fail.increment(1);
                queue.pause = (queue.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
                // A failure counts only if another message was saved meanwhile: else the store is
                // the problem.
                queue.tries += u32::from(self.context.saved_count() > before);
                if queue.tries >= self.context.options.tries_max
                    && let Some(entry) = queue.entries.pop_front()
                {
                    (queue.tries, queue.pause) = (0, Duration::ZERO);
                    self.waiting -= 1;
                    dead_letter(self.context, self.lease, entry, &error).await?;
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
            self.start_append(conversation);
        }
        Ok(())
    }
}

fn report_saved(context: &TwoPhaseContext, entry: &LogEntry, outcome: &Appended) -> SaveOutcome {
    context.report_outcome(&entry.message, outcome);
    match outcome {
        Appended::Stored(_) => {
            let lag_ms = context.clock.now().since(entry.message.draft.sent_at);
            context.meters.save_lag.record(Duration::from_millis(lag_ms));
            SaveOutcome::Saved
        }
        Appended::Duplicate(_) => SaveOutcome::Saved,
        Appended::Conflict | Appended::Refused(_) => SaveOutcome::Dropped,
    }
}

/// Moves a message that cannot be saved to the dead letters, and tells its sender.
async fn dead_letter(
    context: &TwoPhaseContext,
    lease: &dyn ShardLease,
    entry: LogEntry,
    error: &StoreError,
) -> Result<(), LeaseLost> {
    let message = Arc::clone(&entry.message);
    tracing::error!(target: "nexo::two_phase", serverMsgId = %message.id, %error, "moved to the dead letters");
    lease.dead_letter(entry, error.to_string()).await?;
    context.meters.dead.increment(1);
    context.report_dropped(&message, Reason::InternalError);
    Ok(())
}
