//! Messages that came before the news of who may hear them.
//!
//! Nodes hear of each other's doings in no certain order: a message may come before the word that
//! somebody was put out of its group. It says how much had changed when it was stored, so a node
//! that knows less keeps it back, reads the changes it lacks, and goes on from there.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nexo_chat::command::Event;
use nexo_chat::ids::ConversationId;
use nexo_chat::store::{Store, StoreError};

use crate::delivery::Delivery;
use crate::wakes::Wakes;

/// Changes read at a time.
const PAGE: usize = 200;
/// Messages of a group that are kept back; further ones are brought from the store instead.
const KEPT_MAX: usize = 1000;
const PAUSE: Duration = Duration::from_millis(50);
/// If what is lacking is not found in this time, the store has to bring everything.
const WITHIN: Duration = Duration::from_secs(5);

/// What is kept back, by conversation.
#[derive(Default)]
pub struct Behind {
    kept: Mutex<HashMap<ConversationId, Vec<Event>>>,
    /// How many conversations there are, so that nobody needs the lock when there are none.
    count: AtomicUsize,
}

/// What became of something that was to be kept back.
pub(crate) enum Kept {
    /// It is the first: somebody has to look what is lacking.
    First,
    /// It waits with others.
    Waits,
    /// There are too many.
    TooMany,
}

impl Behind {
    fn kept(&self) -> MutexGuard<'_, HashMap<ConversationId, Vec<Event>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something of this conversation waits, so that what comes next has to wait too.
    pub(crate) fn is_waiting(&self, conversation: &ConversationId) -> bool {
        self.count.load(Ordering::SeqCst) > 0 && self.kept().contains_key(conversation)
    }

    /// Keeps something back.
    pub(crate) fn keep(&self, conversation: &ConversationId, event: &Event) -> Kept {
        let mut kept = self.kept();
        match kept.get_mut(conversation) {
            Some(waiting) if waiting.len() >= KEPT_MAX => return Kept::TooMany,
            Some(waiting) => {
                waiting.push(event.clone());
                return Kept::Waits;
            }
            None => {}
        }
        kept.insert(conversation.clone(), vec![event.clone()]);
        self.count.store(kept.len(), Ordering::SeqCst);
        Kept::First
    }

    /// What waits, oldest first; the conversation still counts as waiting.
    fn take(&self, conversation: &ConversationId) -> Vec<Event> {
        self.kept().get_mut(conversation).map(std::mem::take).unwrap_or_default()
    }

    /// Puts back what has to wait longer, before what came meanwhile.
    fn put_back(&self, conversation: &ConversationId, mut events: Vec<Event>) {
        let mut kept = self.kept();
        let waiting = kept.entry(conversation.clone()).or_default();
        events.append(waiting);
        *waiting = events;
    }

    /// Nothing waits any more, if nothing does.
    fn is_done(&self, conversation: &ConversationId) -> bool {
        let mut kept = self.kept();
        let is_done = kept.get(conversation).is_none_or(Vec::is_empty);
        if is_done {
            kept.remove(conversation);
            self.count.store(kept.len(), Ordering::SeqCst);
        }
        is_done
    }
}

/// Reads what is lacking, then lets go what was kept back.
pub(crate) async fn catch_up(delivery: Arc<Delivery>, conversation: ConversationId) {
    let until = Instant::now() + WITHIN;
    loop {
        let Some(store) = delivery.store() else { return };
        if let Err(error) = learn(&delivery, &*store, &conversation).await {
            tracing::debug!(target: "nexo::push", %error, "what changed cannot be read yet");
        }
        let mut left = delivery.behind.take(&conversation);
        {
            let mut wakes = Wakes::default();
            let still = left.iter().position(|event| !delivery.let_go(event, &mut wakes));
            left.drain(..still.unwrap_or(left.len()));
            if Instant::now() >= until {
                left.drain(..).for_each(|event| delivery.miss(&event));
            }
        }
        delivery.behind.put_back(&conversation, left);
        if delivery.behind.is_done(&conversation) {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Hears the changes that are not known yet.
pub(crate) async fn learn(
    delivery: &Delivery,
    store: &dyn Store,
    conversation: &ConversationId,
) -> Result<(), StoreError> {
    while let Some(known) = delivery.groups.known(conversation) {
        let changes = store.changes(conversation, known, PAGE).await?;
        let is_last = changes.len() < PAGE;
        let mut members = 0;
        if let (Some(id), false) = (conversation.group(), changes.is_empty()) {
            members = store.group(&id).await?.map_or(0, |group| group.members);
        }
        let events = changes.into_iter();
        let events = events.map(|change| Event::Change { change, origin: None, members });
        delivery.hear_changes(&events.collect::<Vec<_>>());
        if is_last {
            break;
        }
    }
    Ok(())
}
