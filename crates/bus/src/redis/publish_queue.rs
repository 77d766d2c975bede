//! Events that wait to be published. The queue is bounded: an event that does not fit is dropped
//! and counted, and the other nodes get a gap notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nexo_chat::change::ChangeKind;
use nexo_chat::event::Event;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use super::meters::Meters;

/// The most events that are published together.
pub(crate) const BATCH_EVENTS: usize = 4096;

/// The sending side of the queue; the publisher has the receiver.
pub(crate) struct PublishQueue {
    sender: mpsc::Sender<Event>,
    bytes: AtomicUsize,
    bytes_max: usize,
    /// Events that are neither published nor dropped yet.
    waiting: AtomicUsize,
    has_unreported_drops: AtomicBool,
    wakeup: Notify,
    meters: Arc<Meters>,
}

impl PublishQueue {
    pub(crate) fn new(
        events: usize,
        bytes_max: usize,
        meters: Arc<Meters>,
    ) -> (Self, mpsc::Receiver<Event>) {
        let (sender, receiver) = mpsc::channel(events.max(1));
        let queue = Self {
            sender,
            bytes: AtomicUsize::new(0),
            bytes_max,
            waiting: AtomicUsize::new(0),
            has_unreported_drops: AtomicBool::new(false),
            wakeup: Notify::new(),
            meters,
        };
        (queue, receiver)
    }

    /// Queues an event if there is room, else drops it.
    pub(crate) fn push(&self, event: Event) {
        let weight = weight(&event);
        let has_room = self.bytes.load(Ordering::Relaxed) + weight <= self.bytes_max;
        if !has_room {
            return self.drop_events(1);
        }
        // Counted before it is sent: the publisher may release it before this function goes on.
        self.bytes.fetch_add(weight, Ordering::Relaxed);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if let Err(refused) = self.sender.try_send(event) {
            self.release(&[refused.into_inner()]);
            self.drop_events(1);
        }
    }

    /// Waits for events, for [`Self::wake`], or until a time.
    pub(crate) async fn take(
        &self,
        queue: &mut mpsc::Receiver<Event>,
        batch: &mut Vec<Event>,
        until: Option<Instant>,
    ) {
        tokio::select! {
            _ = queue.recv_many(batch, BATCH_EVENTS) => {}
            () = self.wakeup.notified() => {}
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {}
        }
    }

    /// These events are published or dropped: frees their room.
    pub(crate) fn release(&self, events: &[Event]) {
        let weight = events.iter().map(weight).sum();
        self.bytes.fetch_sub(weight, Ordering::Relaxed);
        self.waiting.fetch_sub(events.len(), Ordering::Relaxed);
    }

    /// Counts events that other nodes will not receive.
    pub(crate) fn drop_events(&self, count: usize) {
        self.meters.dropped.increment(count as u64);
        self.has_unreported_drops.store(true, Ordering::Relaxed);
    }

    /// Whether events were dropped and the other nodes do not know it yet.
    pub(crate) fn has_unreported_drops(&self) -> bool {
        self.has_unreported_drops.load(Ordering::Relaxed)
    }

    /// The next gap notice covers everything dropped before now.
    pub(crate) fn clear_unreported_drops(&self) {
        self.has_unreported_drops.store(false, Ordering::Relaxed);
    }

    /// Wakes the publisher: other nodes can be reached again.
    pub(crate) fn wake(&self) {
        self.wakeup.notify_one();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0
    }
}

/// About how many bytes an event takes in the queue.
pub(crate) fn weight(event: &Event) -> usize {
    const SMALL: usize = 256;
    const PERSON: usize = 80;
    match event {
        Event::Message { message, .. }
        | Event::Preview { message, .. }
        | Event::AcceptedSaved { message } => message.weight(),
        Event::Change { change, .. } => match &change.kind {
            ChangeKind::Joined { users, .. } => SMALL + users.len() * PERSON,
            ChangeKind::Updated(_) => 4 * SMALL,
            _ => SMALL,
        },
        Event::Online { people, .. } => SMALL + people.len(),
        Event::Profile { nickname, avatar, within, .. } => {
            SMALL + nickname.len() + avatar.len() + within.len() * 2 * PERSON
        }
        Event::JoinRequested { request, to } => SMALL + request.message.len() + to.len() * PERSON,
        _ => SMALL,
    }
}
