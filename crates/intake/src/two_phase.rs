//! Takes messages in: into the log, or the ordinary way while that is away.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nexo_chat::Boxed;
use nexo_chat::Reason;
use nexo_chat::bus::Bus;
use nexo_chat::clock::Clock;
use nexo_chat::command::{Dropped, Event};
use nexo_chat::ids::{ConversationId, MessageId, Millis};
use nexo_chat::intake::{Intake, Taken, Whereabouts};
use nexo_chat::model::Draft;
use nexo_chat::policy::send::{Permit, was_accepted};
use nexo_chat::store::{Appended, Store, StoreError, Stored};
use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};

use crate::accepted::{Accepted, run_length, shard};
use crate::held::{Held, Holds};
use crate::log::{Away, Log, Put};
use crate::meters::Meters;
use crate::options::Options;
use crate::{rescue, tend};

/// How long the end looks for what was accepted.
const PATIENCE: Duration = Duration::from_secs(5);
/// Conversations that share no lock.
const TURNS: usize = 64;

/// What the workers share.
pub(crate) struct Shared {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Options,
    pub(crate) held: Held,
    pub(crate) meters: Meters,
    /// Entries that were read to be saved, in the shards looked after here.
    pub(crate) pending: AtomicU64,
    /// Messages saved: as long as there are more and more, the store works.
    saved: AtomicU64,
    /// Held while a message gets its place here and in the log, by conversation: both are the same.
    turns: [Mutex<()>; TURNS],
}

/// Two-phase acknowledgement.
pub struct TwoPhase {
    shared: Arc<Shared>,
    workers: Mutex<Option<Workers>>,
}

/// What works as long as this lives.
struct Workers {
    thread: JoinHandle<()>,
    rescue: tokio::task::JoinHandle<()>,
    stops: watch::Sender<bool>,
}

/// How a message goes on once the log has answered.
enum Next {
    /// So many wait in its shard.
    Accepted {
        length: u64,
    },
    Refused(StoreError),
    Conflict,
    /// It is the last of a run; whether nobody else waits for it if that fails.
    Run(Stored<'static, Vec<Appended>>, bool),
}

impl TwoPhase {
    /// Over these parts. Nothing happens before [`TwoPhase::start`].
    pub fn new(
        log: Arc<dyn Log>,
        store: Arc<dyn Store>,
        bus: Arc<dyn Bus>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Arc<Self> {
        let (held, meters) = (Held::default(), Meters::default());
        let shared = Shared {
            log,
            store,
            bus,
            clock,
            options,
            held,
            meters,
            pending: AtomicU64::new(0),
            saved: AtomicU64::new(0),
            turns: std::array::from_fn(|_| Mutex::default()),
        };
        Arc::new(Self { shared: Arc::new(shared), workers: Mutex::default() })
    }

    /// Starts the workers. The store's commits must be announced by now.
    ///
    /// Whoever saves has a thread of their own: behind thousands of sockets that want something
    /// accepted, its turn would come too rarely for the store to keep up.
    pub fn start(&self) -> std::io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (stops, mut is_over) = watch::channel(false);
        let shared = Arc::clone(&self.shared);
        let work = async move {
            // They end with the runtime.
            for shard in 0..shared.log.shards() {
                tokio::spawn(tend::for_good(Arc::clone(&shared), shard));
            }
            // An error means that nobody can say so any more, which is as good.
            let _gone = is_over.wait_for(|is_over| *is_over).await.is_err();
        };
        let thread = std::thread::Builder::new().name("nexo-intake".into());
        let thread = thread.spawn(move || runtime.block_on(work))?;
        let rescue = tokio::spawn(rescue::rescue(Arc::clone(&self.shared)));
        *self.workers() = Some(Workers { thread, rescue, stops });
        Ok(())
    }

    fn workers(&self) -> MutexGuard<'_, Option<Workers>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A clean end. What waits in the log is saved after the next start, by whoever looks after it.
    pub async fn stop(&self) {
        // What the log lost a moment ago is only here.
        let all = self.shared.held.due(Millis(u64::MAX), 0, usize::MAX);
        let rescued = tokio::time::timeout(PATIENCE, rescue::last_look(&self.shared, all)).await;
        if !matches!(rescued, Ok(true)) {
            tracing::warn!(target: "nexo::intake", "not all that was accepted could be looked for");
        }
        self.shared.log.leave().await;
        let workers = self.workers().take();
        let Some(Workers { thread, rescue, stops }) = workers else { return };
        rescue.abort();
        stops.send_replace(true);
        let ended = tokio::task::spawn_blocking(move || thread.join()).await;
        if !matches!(ended, Ok(Ok(()))) {
            tracing::error!(target: "nexo::intake", "the workers did not end well");
        }
    }
}

impl Shared {
    /// Appends a message behind those of its conversation that this node still holds, so that they
    /// keep their order. Repeating those that were saved meanwhile does nothing.
    pub(crate) fn append_held(&self, message: &Accepted) -> Stored<'static, Vec<Appended>> {
        let run = self.held.up_to(message);
        if run_length(run.iter().map(|it| &**it)) < run.len() {
            let busy = StoreError::Unavailable("too much of this conversation waits".into());
            return Box::pin(std::future::ready(Err(busy)));
        }
        let mut drafts: Vec<Draft> = run.iter().map(|it| it.draft.clone()).collect();
        // The last one may have been saved meanwhile, or what is held has the same name and other
        // words: the store knows what to say then.
        if run.last().is_none_or(|held| held.fingerprint != message.fingerprint) {
            drafts.push(message.draft.clone());
        }
        self.store.append_run(was_accepted(), drafts)
    }

    /// Goes on in the order in which the log answers.
    fn next(&self, message: &Accepted, is_new: bool, put: Result<Put, Away>) -> Next {
        let let_go = || {
            if is_new {
                self.held.remove(message.id);
            }
        };
        match put {
            Ok(Put::New { length }) => {
                self.meters.accepted.increment(1);
                self.held.accept(message.id, false);
                Next::Accepted { length }
            }
            Ok(Put::Again) => {
                if is_new {
                    // Somebody else accepted it, and it may have been saved a moment ago.
                    self.held.accept(message.id, true);
                }
                Next::Accepted { length: 0 }
            }
            Ok(Put::Conflict) => {
                let_go();
                Next::Conflict
            }
            Ok(Put::Saved) => {
                let_go();
                let draft = message.draft.clone();
                Next::Run(self.store.append_run(was_accepted(), vec![draft]), false)
            }
            // What came before it is not in the log any more, but here.
            Ok(Put::Overtakes) => Next::Run(self.append_held(message), is_new),
            Ok(Put::Full) => {
                self.meters.publish_fail.increment(1);
                let_go();
                Next::Refused(StoreError::Unavailable("too many messages wait to be saved".into()))
            }
            Err(away) => {
                self.meters.publish_fail.increment(1);
                if !self.options.fail_open {
                    let_go();
                    return Next::Refused(StoreError::Unavailable(Box::new(away)));
                }
                self.meters.fallen_back.increment(1);
                Next::Run(self.append_held(message), is_new)
            }
        }
    }

    /// Tells everybody who knows a message what became of it, unless the store did.
    pub(crate) fn tell(&self, message: &Accepted, outcome: &Appended) {
        let reason = match outcome {
            Appended::Stored(_) => {
                self.saved.fetch_add(1, Ordering::Relaxed);
                return self.settled(message.id);
            }
            Appended::Duplicate(stored) => {
                self.meters.dup_db.increment(1);
                self.bus.publish(Event::Settled { message: Arc::clone(stored) });
                return self.settled(message.id);
            }
            Appended::Conflict => Reason::ClientMsgIdConflict,
            Appended::Refused(reason) => *reason,
        };
        self.meters.refused.increment(1);
        self.drop(message, reason);
    }

    /// Tells everybody who knows a message that it will never be saved.
    pub(crate) fn drop(&self, message: &Accepted, reason: Reason) {
        let Draft { conversation, sender, client_id, .. } = message.draft.clone();
        let (id, at) = (message.id, self.clock.now());
        self.bus.publish(Event::Dropped(Dropped {
            id,
            conversation,
            sender,
            client_id,
            reason,
            at,
        }));
        self.settled(id);
    }

    /// A line for load tests: how long writing to the log took, and answering.
    fn trace(&self, message: &Accepted, length: u64, written: Duration, answered: Duration) {
        tracing::debug!(
            target: "nexo::perf",
            serverMsgId = %message.id,
            acceptedWriteMs = written.as_secs_f64() * 1000.0,
            acceptedAckMs = answered.as_secs_f64() * 1000.0,
            streamLen = length,
            pending = self.pending.load(Ordering::Relaxed),
            "ws_perf single_chat_accept",
        );
    }

    pub(crate) fn settled(&self, id: MessageId) {
        self.held.remove(id);
    }

    /// How many messages were saved here so far.
    pub(crate) fn saved(&self) -> u64 {
        self.saved.load(Ordering::Relaxed)
    }

    /// The log is asked first: what leaves it is saved by then.
    pub(crate) async fn whereabouts(
        &self,
        conversation: &ConversationId,
        id: MessageId,
    ) -> Result<Whereabouts, StoreError> {
        let is_open = self.log.is_open(conversation, id).await;
        if is_open.map_err(|away| StoreError::Unavailable(Box::new(away)))? {
            return Ok(Whereabouts::Open);
        }
        Ok(self.store.message(id).await?.map_or(Whereabouts::Nowhere, Whereabouts::Saved))
    }
}

impl Intake for TwoPhase {
    fn takes(&self, conversation: &ConversationId) -> bool {
        self.shared.options.groups || conversation.group().is_none()
    }

    fn take(&self, _permit: Permit, draft: Draft) -> Stored<'static, Taken> {
        let shared = Arc::clone(&self.shared);
        let message = Arc::new(Accepted::new(draft));
        let turn = shard(&message.draft.conversation, TURNS);
        let turn = self.shared.turns[turn].lock().unwrap_or_else(PoisonError::into_inner);
        // Before it is in the log: it may be saved before the log has answered.
        let (is_new, after) = match shared.held.add(&message, shared.clock.ticks()) {
            Holds::Now(after) => (true, after),
            Holds::Already => (false, None),
            Holds::NoRoom => {
                let busy = StoreError::Unavailable("too many messages wait to be saved".into());
                return Box::pin(std::future::ready(Err(busy)));
            }
        };
        let (sender, receiver) = oneshot::channel();
        let (keeper, it) = (Arc::clone(&shared), Arc::clone(&message));
        let began = Instant::now();
        let told = Box::new(move |put| {
            let next = (keeper.next(&it, is_new, put), began.elapsed());
            drop(sender.send(next)); // whoever asked may be gone, which undoes nothing
        });
        shared.log.put(Arc::clone(&message), after, told);
        drop(turn);
        Box::pin(async move {
            let gone = || StoreError::Unavailable("the server is going down".into());
            let (next, written) = receiver.await.map_err(|_| gone())?;
            match next {
                Next::Accepted { length } => {
                    shared.trace(&message, length, written, began.elapsed());
                    Ok(Taken::Accepted)
                }
                Next::Refused(error) => Err(error),
                Next::Conflict => Ok(Taken::Appended(Appended::Conflict)),
                Next::Run(run, is_new) => {
                    let outcome = run.await.and_then(|mut run| run.pop().ok_or_else(gone));
                    // Refused, it is not saved later behind its sender's back.
                    if is_new || outcome.is_ok() {
                        shared.settled(message.id);
                    }
                    Ok(Taken::Appended(outcome?))
                }
            }
        })
    }

    fn whereabouts<'a>(
        &'a self,
        conversation: &'a ConversationId,
        id: MessageId,
    ) -> Boxed<'a, Result<Whereabouts, StoreError>> {
        Box::pin(async move {
            if self.shared.held.contains(id) {
                return Ok(Whereabouts::Open); // rescued if the log lost it
            }
            self.shared.whereabouts(conversation, id).await
        })
    }

    fn settled(&self, id: MessageId) {
        self.shared.settled(id);
    }
}
