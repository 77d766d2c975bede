//! What waits to be written to one socket. Bounded by bytes: a slow reader costs only itself.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use axum::extract::ws::{Message, Utf8Bytes};
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use nexo_chat::ids::Millis;
use nexo_wire::dialect;

/// Something to write.
#[derive(Clone, Debug)]
pub enum Frame {
    /// A text frame; the bytes are shared with everybody else who gets it.
    Text(Utf8Bytes),
    /// A binary frame, shared too.
    Binary(Bytes),
    /// A WebSocket ping.
    Ping,
}

impl Frame {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
            // Its header, so that what waits always weighs something.
            Self::Ping => 2,
        }
    }
}

impl From<Frame> for Message {
    fn from(frame: Frame) -> Self {
        match frame {
            Frame::Text(text) => Self::Text(text),
            Frame::Binary(bytes) => Self::Binary(bytes),
            Frame::Ping => Self::Ping(Bytes::new()),
        }
    }
}

impl From<dialect::Frame> for Frame {
    fn from(frame: dialect::Frame) -> Self {
        match frame {
            dialect::Frame::Text(text) => Self::Text(text.into()),
            dialect::Frame::Binary(bytes) => Self::Binary(bytes.into()),
        }
    }
}

/// What became of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// Nothing waited before it.
    First,
    /// It waits behind others.
    Behind,
    /// The outbox was full.
    Dropped,
}

/// A bounded queue of frames with two water marks: above the high one it drops what comes, until
/// it has drained below the low one.
pub struct Outbox {
    low_bytes: usize,
    high_bytes: usize,
    queue: Mutex<VecDeque<Frame>>,
    /// Bytes that wait. Changed only with the queue in hand, read by everybody.
    bytes: AtomicUsize,
    /// Since when it has been full, plus one; zero if it is not.
    full_since: AtomicU64,
    waker: AtomicWaker,
}

impl Outbox {
    /// An empty one.
    pub fn new(low_bytes: usize, high_bytes: usize) -> Self {
        Self {
            low_bytes,
            high_bytes,
            queue: Mutex::default(),
            bytes: AtomicUsize::new(0),
            full_since: AtomicU64::new(0),
            waker: AtomicWaker::new(),
        }
    }

    /// Queues a push, and wakes whoever writes. Dropped if the outbox is full.
    pub fn push(&self, frame: Frame, now: Millis) -> Pushed {
        let pushed = self.push_quietly(frame, now);
        if pushed == Pushed::First {
            self.wake();
        }
        pushed
    }

    /// Queues a push. If it is the first that waits, the caller wakes whoever writes.
    pub fn push_quietly(&self, frame: Frame, now: Millis) -> Pushed {
        let mut queue = self.queue();
        if self.is_full() {
            return Pushed::Dropped;
        }
        let is_first = queue.is_empty();
        self.add(&mut queue, frame, now);
        if is_first { Pushed::First } else { Pushed::Behind }
    }

    /// Queues an answer or a part of a resend, which nobody would bring again: never dropped. Their
    /// number is bounded by reading no more frames while the outbox is full.
    pub fn push_own(&self, frame: Frame, now: Millis) {
        self.add(&mut self.queue(), frame, now);
    }

    fn add(&self, queue: &mut VecDeque<Frame>, frame: Frame, now: Millis) {
        let bytes = self.bytes.load(Ordering::Relaxed) + frame.bytes();
        queue.push_back(frame);
        self.bytes.store(bytes, Ordering::Release);
        if bytes > self.high_bytes && !self.is_full() {
            self.full_since.store(now.0.saturating_add(1), Ordering::Release);
        }
    }

    /// Puts a frame before everything that waits.
    pub fn push_first(&self, frame: Frame) {
        let mut queue = self.queue();
        self.bytes.fetch_add(frame.bytes(), Ordering::Release);
        queue.push_front(frame);
    }

    /// Takes the oldest frame.
    pub fn pop(&self) -> Option<Frame> {
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

    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Since when it has been full, if it is.
    pub fn full_since(&self) -> Option<Millis> {
        self.full_since.load(Ordering::Acquire).checked_sub(1).map(Millis)
    }

    /// Whether it has room for what can wait: a resend goes on only below the low mark.
    pub fn has_room(&self) -> bool {
        self.bytes() < self.low_bytes
    }

    /// Whether it drops what comes.
    pub fn is_full(&self) -> bool {
        self.full_since.load(Ordering::Acquire) != 0
    }

    /// Wakes this task on the next push.
    pub fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// Wakes the task now.
    pub fn wake(&self) {
        self.waker.wake();
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Frame>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: usize) -> Frame {
        Frame::Text("x".repeat(bytes).into())
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
    fn own_frames_are_never_dropped() {
        let outbox = Outbox::new(20, 40);
        outbox.push(frame(41), Millis(7));
        assert_eq!(outbox.push(frame(1), Millis(8)), Pushed::Dropped);
        outbox.push_own(frame(2), Millis(9));
        assert_eq!((outbox.bytes(), outbox.full_since()), (43, Some(Millis(7))));
    }

    #[test]
    fn frames_leave_in_the_order_they_came() {
        let outbox = Outbox::new(20, 40);
        outbox.push(frame(2), Millis(0));
        outbox.push(frame(3), Millis(0));
        outbox.push_first(frame(1));
        let lengths: Vec<usize> = std::iter::from_fn(|| outbox.pop()).map(|f| f.bytes()).collect();
        assert_eq!(lengths, [1, 2, 3]);
        assert_eq!(outbox.bytes(), 0);
    }
}
