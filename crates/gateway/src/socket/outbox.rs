//! The queue of frames that one socket has yet to write. Bounded by bytes: a slow reader fills only
//! its own queue.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use axum::extract::ws::{Message, Utf8Bytes};
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use nexo_chat::ids::Millis;
use nexo_wire::dialect;

/// A frame in an outbox. The bytes are reference-counted: all recipients of a push share them.
#[derive(Clone, Debug)]
pub(crate) enum OutFrame {
    Text(Utf8Bytes),
    Binary(Bytes),
    /// A WebSocket ping.
    Ping,
}

impl OutFrame {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
            // The size of its header: `Outbox::pop` takes zero bytes for an empty queue.
            Self::Ping => 2,
        }
    }
}

impl From<OutFrame> for Message {
    fn from(frame: OutFrame) -> Self {
        match frame {
            OutFrame::Text(text) => Self::Text(text),
            OutFrame::Binary(bytes) => Self::Binary(bytes),
            OutFrame::Ping => Self::Ping(Bytes::new()),
        }
    }
}

impl From<dialect::Frame> for OutFrame {
    fn from(frame: dialect::Frame) -> Self {
        match frame {
            dialect::Frame::Text(text) => Self::Text(text.into()),
            dialect::Frame::Binary(bytes) => Self::Binary(bytes.into()),
        }
    }
}

/// The result of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The queue was empty before: its session has to be woken.
    First,
    /// Queued behind other frames.
    Queued,
    /// The outbox was full.
    Dropped,
}

/// A queue with a low and a high water mark. Above the high mark it is full and drops pushes until
/// it has drained below the low mark.
pub(crate) struct Outbox {
    low_bytes: usize,
    high_bytes: usize,
    queue: Mutex<VecDeque<OutFrame>>,
    /// Bytes in the queue. Written only with the queue locked, read without the lock.
    bytes: AtomicUsize,
    /// The tick at which it became full, plus one; zero if it is not full.
    full_since: AtomicU64,
    waker: AtomicWaker,
}

impl Outbox {
    pub(crate) fn new(low_bytes: usize, high_bytes: usize) -> Self {
        Self {
            low_bytes,
            high_bytes,
            queue: Mutex::default(),
            bytes: AtomicUsize::new(0),
            full_since: AtomicU64::new(0),
            waker: AtomicWaker::new(),
        }
    }

    /// Queues a push and wakes the session. A full outbox drops it.
    pub(crate) fn push(&self, frame: OutFrame, now: Millis) -> Pushed {
        let pushed = self.push_without_wake(frame, now);
        if pushed == Pushed::First {
            self.wake();
        }
        pushed
    }

    /// Queues a push. On `Pushed::First` the caller has to wake the session.
    pub(crate) fn push_without_wake(&self, frame: OutFrame, now: Millis) -> Pushed {
        let mut queue = self.queue();
        if self.is_full() {
            return Pushed::Dropped;
        }
        let is_first = queue.is_empty();
        self.add(&mut queue, frame, now);
        if is_first { Pushed::First } else { Pushed::Queued }
    }

    /// Queues a reply or a part of a resend page. It is never dropped, since nothing would send it
    /// again; the session bounds the number of replies by reading nothing while the outbox is full.
    pub(crate) fn push_reply(&self, frame: OutFrame, now: Millis) {
        self.add(&mut self.queue(), frame, now);
    }

    fn add(&self, queue: &mut VecDeque<OutFrame>, frame: OutFrame, now: Millis) {
        let bytes = self.bytes.load(Ordering::Relaxed) + frame.bytes();
        queue.push_back(frame);
        self.bytes.store(bytes, Ordering::Release);
        if bytes > self.high_bytes && !self.is_full() {
            self.full_since.store(now.0.saturating_add(1), Ordering::Release);
        }
    }

    /// Queues a frame before all others.
    pub(crate) fn push_front(&self, frame: OutFrame) {
        let mut queue = self.queue();
        self.bytes.fetch_add(frame.bytes(), Ordering::Release);
        queue.push_front(frame);
    }

    pub(crate) fn pop(&self) -> Option<OutFrame> {
        if self.bytes() == 0 {
            return None;
        }
        let mut queue = self.queue();
        let frame = queue.pop_front()?;
        let left = self.bytes.load(Ordering::Relaxed) - frame.bytes();
        self.bytes.store(left, Ordering::Release);
        if left < self.low_bytes && self.is_full() {
            self.full_since.store(0, Ordering::Release);
        }
        if queue.is_empty() && queue.capacity() > 32 {
            *queue = VecDeque::new(); // an idle socket keeps no buffer
        }
        Some(frame)
    }

    /// Bytes in the queue.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// The tick at which it became full, if it is full.
    pub(crate) fn full_since(&self) -> Option<Millis> {
        self.full_since.load(Ordering::Acquire).checked_sub(1).map(Millis)
    }

    /// Whether it is below the low water mark, so that a resend may continue.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes() < self.low_bytes
    }

    pub(crate) fn is_full(&self) -> bool {
        self.full_since.load(Ordering::Acquire) != 0
    }

    /// Sets the task that the next [`Self::wake`] wakes.
    pub(crate) fn register_waker(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<OutFrame>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: usize) -> OutFrame {
        OutFrame::Text("x".repeat(bytes).into())
    }

    #[test]
    fn above_the_high_mark_it_drops_until_it_is_below_the_low_one() {
        let outbox = Outbox::new(20, 40);
        for _ in 0..5 {
            assert_ne!(outbox.push(frame(10), Millis(7)), Pushed::Dropped);
        }
        assert_eq!(outbox.full_since(), Some(Millis(7)));
        assert_eq!(outbox.push(frame(1), Millis(8)), Pushed::Dropped);
        for _ in 0..3 {
            outbox.pop();
            let pushed = outbox.push(frame(1), Millis(9));
            assert_eq!(pushed, Pushed::Dropped, "still at {} bytes", outbox.bytes());
        }
        outbox.pop();
        assert_eq!(outbox.full_since(), None);
        assert_ne!(outbox.push(frame(1), Millis(10)), Pushed::Dropped);
    }

    #[test]
    fn replies_are_never_dropped() {
        let outbox = Outbox::new(20, 40);
        outbox.push(frame(41), Millis(7));
        assert_eq!(outbox.push(frame(1), Millis(8)), Pushed::Dropped);
        outbox.push_reply(frame(2), Millis(9));
        assert_eq!((outbox.bytes(), outbox.full_since()), (43, Some(Millis(7))));
    }

    #[test]
    fn frames_leave_in_the_order_they_came() {
        let outbox = Outbox::new(20, 40);
        outbox.push(frame(2), Millis(0));
        outbox.push(frame(3), Millis(0));
        outbox.push_front(frame(1));
        let lengths: Vec<usize> = std::iter::from_fn(|| outbox.pop()).map(|f| f.bytes()).collect();
        assert_eq!(lengths, [1, 2, 3]);
        assert_eq!(outbox.bytes(), 0);
    }
}
