//! Two-phase acknowledgement: accepts messages, and starts and stops the workers that save them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nexo_chat::Boxed;
use nexo_chat::bus::Bus;
use nexo_chat::clock::Clock;
use nexo_chat::ids::{ConversationId, MessageId, Millis};
use nexo_chat::model::Draft;
use nexo_chat::policy::send::Permit;
use nexo_chat::store::{Store, StoreError, StoreFuture};
use nexo_chat::two_phase::{AcceptOutcome, MessageStatus, TwoPhase};
use tokio::runtime::Builder;
use tokio::sync::watch;

use crate::context::TwoPhaseContext;
use crate::log::AcceptedLog;
use crate::options::Options;
use crate::{accept, rescue, shard_worker};

/// How long a clean shutdown looks up unsaved messages.
const FINAL_CHECK_TIMEOUT: Duration = Duration::from_secs(5);

pub struct Coordinator {
    context: Arc<TwoPhaseContext>,
    workers: Mutex<Option<Workers>>,
}

struct Workers {
    thread: JoinHandle<()>,
    rescue: tokio::task::JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl Coordinator {
    /// Nothing is saved before [`Coordinator::start`]. `instance` is the name of this process in the log.
    pub fn new(
        log: Arc<dyn AcceptedLog>,
        store: Arc<dyn Store>,
        bus: Arc<dyn Bus>,
        clock: Arc<dyn Clock>,
        options: Options,
        instance: Arc<str>,
    ) -> Arc<Self> {
        let context = TwoPhaseContext::new(log, store, bus, clock, options, instance);
        Arc::new(Self { context: Arc::new(context), workers: Mutex::default() })
    }

    /// Starts the workers. The store's commits must be announced by now.
    ///
    /// The shard workers have a thread of their own: on the threads of thousands of sockets that send
    /// messages they would run too rarely for the store to keep up.
    pub fn start(&self) -> std::io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (stop, mut is_stopped) = watch::channel(false);
        let context = Arc::clone(&self.context);
        let work = async move {
            // The tasks end with the runtime.
            for shard in 0..context.log.shards() {
                tokio::spawn(shard_worker::run(Arc::clone(&context), shard));
            }
            // An error means that the coordinator was dropped, which ends the workers too.
            let _dropped = is_stopped.wait_for(|is_stopped| *is_stopped).await.is_err();
        };
        let thread = std::thread::Builder::new().name("nexo-two-phase".into());
        let thread = thread.spawn(move || runtime.block_on(work))?;
        let rescue = tokio::spawn(rescue::run(Arc::clone(&self.context)));
        *self.workers() = Some(Workers { thread, rescue, stop });
        Ok(())
    }

    fn workers(&self) -> MutexGuard<'_, Option<Workers>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A clean shutdown. Messages that wait in Redis are saved by the next owner of their shard.
    pub async fn stop(&self) {
        // This node has the only copy of messages that the log lost a moment ago.
        let all = self.context.unsaved.take_due(Millis(u64::MAX), 0, usize::MAX);
        let check = rescue::final_check(&self.context, all);
        let checked = tokio::time::timeout(FINAL_CHECK_TIMEOUT, check).await;
        if !matches!(checked, Ok(true)) {
            tracing::warn!(target: "nexo::two_phase", "not all accepted messages could be looked up");
        }
        self.context.log.leave().await;
        let workers = self.workers().take();
        let Some(Workers { thread, rescue, stop }) = workers else { return };
        rescue.abort();
        stop.send_replace(true);
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        if !matches!(joined, Ok(Ok(()))) {
            tracing::error!(target: "nexo::two_phase", "the thread of the workers panicked");
        }
    }
}

impl TwoPhase for Coordinator {
    fn accepts(&self, conversation: &ConversationId) -> bool {
        self.context.options.groups || conversation.group().is_none()
    }

    fn accept(&self, _permit: Permit, draft: Draft) -> StoreFuture<'static, AcceptOutcome> {
        accept::accept(Arc::clone(&self.context), draft)
    }

    fn status<'a>(
        &'a self,
        conversation: &'a ConversationId,
        id: MessageId,
    ) -> Boxed<'a, Result<MessageStatus, StoreError>> {
        Box::pin(async move {
            if self.context.unsaved.contains(id) {
                return Ok(MessageStatus::Pending); // rescued if the log lost it
            }
            self.context.find_status(conversation, id).await
        })
    }

    fn on_resolved(&self, id: MessageId) {
        self.context.unsaved.remove(id);
    }
}
