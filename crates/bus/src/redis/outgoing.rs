//! Events that wait to be published. Bounded: what finds no room is dropped, counted, and the other
//! nodes are told that they missed something.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nexo_chat::command::Event;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use super::audience::weight;
use super::meters::Meters;

/// How many events are published together at most.
pub(crate) const BATCH_EVENTS: usize = 4096;

/// The way to the publisher.
pub(crate) struct Outgoing {
    sender: mpsc::Sender<Event>,
    bytes: AtomicUsize,
    bytes_max: usize,
    /// Events that are not yet published or dropped.
    waiting: AtomicUsize,
    has_missed: AtomicBool,
    word: Notify,
    meters: Arc<Meters>,
}

impl Outgoing {
    pub(crate) fn new(
        events: usize,
        bytes_max: usize,
        meters: Arc<Meters>,
    ) -> (Self, mpsc::Receiver<Event>) {
        let (sender, receiver) = mpsc::channel(events.max(1));
        let outgoing = Self {
            sender,
            bytes: AtomicUsize::new(0),
            bytes_max,
            waiting: AtomicUsize::new(0),
            has_missed: AtomicBool::new(false),
            word: Notify::new(),
            meters,
        };
        (outgoing, receiver)
    }

    /// Puts an event into the queue, if there is room.
    pub(crate) fn push(&self, event: Event) {
        let weight = weight(&event);
        let has_room = self.bytes.load(Ordering::Relaxed) + weight <= self.bytes_max;
        if !has_room {
            return self.drop_events(1);
        }
        // Counted first: the publisher may be done with it before this goes on.
        self.bytes.fetch_add(weight, Ordering::Relaxed);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if let Err(refused) = self.sender.try_send(event) {
            self.done(&[refused.into_inner()]);
            self.drop_events(1);
        }
    }

    /// Waits for events, for a word, or for a time.
    pub(crate) async fn take(
        &self,
        queue: &mut mpsc::Receiver<Event>,
        batch: &mut Vec<Event>,
        until: Option<Instant>,
    ) {
        tokio::select! {
            _ = queue.recv_many(batch, BATCH_EVENTS) => {}
            () = self.word.notified() => {}
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {}
        }
    }

    /// These are published, or never will be.
    pub(crate) fn done(&self, events: &[Event]) {
        let weight = events.iter().map(weight).sum();
        self.bytes.fetch_sub(weight, Ordering::Relaxed);
        self.waiting.fetch_sub(events.len(), Ordering::Relaxed);
    }

    /// Other nodes were not told.
    pub(crate) fn drop_events(&self, count: usize) {
        self.meters.dropped.increment(count as u64);
        self.has_missed.store(true, Ordering::Relaxed);
    }

    /// Whether other nodes were not told something, and do not know that.
    pub(crate) fn has_missed(&self) -> bool {
        self.has_missed.load(Ordering::Relaxed)
    }

    /// They will know of what was dropped before now.
    pub(crate) fn forget_missed(&self) {
        self.has_missed.store(false, Ordering::Relaxed);
    }

    /// Says that others can be told again.
    pub(crate) fn wake(&self) {
        self.word.notify_one();
    }

    /// Whether nothing waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0
    }
}
