//! The queue of frames that one socket has yet to write. Bounded by bytes: a slow reader fills only
//! its own queue.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use nexo_chat::ids::Millis;
use nexo_wire::dialect;

use crate::websocket::{Opcode, WebSocket};

/// A frame in an outbox. The bytes are reference-counted: all recipients of a push share them.
#[derive(Clone, Debug)]
pub(crate) enum OutFrame {
    Text(Bytes),
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

    /// Queues it on its socket.
    pub(crate) fn write(&self, socket: &mut WebSocket) {
        match self {
            Self::Text(text) => socket.queue(Opcode::Text, text),
            Self::Binary(bytes) => socket.queue(Opcode::Binary, bytes),
            Self::Ping => socket.queue(Opcode::Ping, &[]),
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
    /// The queue was empty before, and the frame may wait: its session has to be woken later.
    Deferred,
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
    /// Whether all frames may wait, so that the session has not been woken for them and does not
    /// write them. Written only with the queue locked.
    is_deferred: AtomicBool,
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
            is_deferred: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }
    }

    /// Queues a push and wakes the session. A full outbox drops it.
    pub(crate) fn push(&self, frame: OutFrame, now: impl FnOnce() -> Millis) -> Pushed {
        let pushed = self.push_without_wake(frame, now, false);
        if pushed == Pushed::First {
            self.wake();
        }
        pushed
    }

    /// Queues a push. On `Pushed::First` the caller has to wake the session, on `Pushed::Deferred`,
    /// which only a frame that may wait gets, [`Self::end_deferral`] has to be called later.
    pub(crate) fn push_without_wake(
        &self,
        frame: OutFrame,
        now: impl FnOnce() -> Millis,
        may_wait: bool,
    ) -> Pushed {
        let mut queue = self.queue();
        if self.is_full() {
            return Pushed::Dropped;
        }
        let pushed = match (queue.is_empty(), may_wait) {
            (true, true) => Pushed::Deferred,
            (true, false) => Pushed::First,
            (false, false) if self.is_deferred() => Pushed::First,
            (false, _) => Pushed::Queued,
        };
        match pushed {
            Pushed::Deferred => self.is_deferred.store(true, Ordering::Release),
            Pushed::First => self.is_deferred.store(false, Ordering::Release),
            Pushed::Queued | Pushed::Dropped => {}
        }
        self.add(&mut queue, frame, now);
        pushed
    }

    /// Queues a reply or a part of a resend page. It is never dropped, since nothing would send it
    /// again; the session bounds the number of replies by reading nothing while the outbox is full.
    pub(crate) fn push_reply(&self, frame: OutFrame, now: impl FnOnce() -> Millis) {
        let mut queue = self.queue();
        self.is_deferred.store(false, Ordering::Release); // the session is at work and writes it all
        self.add(&mut queue, frame, now);
    }

    /// `now` is called only if this makes the outbox full: reading the clock for every frame shows in
    /// a profile.
    fn add(&self, queue: &mut VecDeque<OutFrame>, frame: OutFrame, now: impl FnOnce() -> Millis) {
        let bytes = self.bytes.load(Ordering::Relaxed) + frame.bytes();
        queue.push_back(frame);
        self.bytes.store(bytes, Ordering::Release);
        if bytes > self.high_bytes && !self.is_full() {
            self.full_since.store(now().0.saturating_add(1), Ordering::Release);
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

    /// Whether it has only frames that may wait.
    pub(crate) fn is_deferred(&self) -> bool {
        self.is_deferred.load(Ordering::Acquire)
    }

    /// Lets the session write frames that were allowed to wait, and wakes it if there are any.
    pub(crate) fn end_deferral(&self) {
        let queue = self.queue();
        let was_deferred = self.is_deferred.swap(false, Ordering::AcqRel);
        drop(queue);
        if was_deferred {
            self.wake();
        }
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
            assert_ne!(outbox.push(frame(10), || Millis(7)), Pushed::Dropped);
        }
        assert_eq!(outbox.full_since(), Some(Millis(7)));
        assert_eq!(outbox.push(frame(1), || Millis(8)), Pushed::Dropped);
        for _ in 0..3 {
            outbox.pop();
            let pushed = outbox.push(frame(1), || Millis(9));
            assert_eq!(pushed, Pushed::Dropped, "still at {} bytes", outbox.bytes());
        }
        outbox.pop();
        assert_eq!(outbox.full_since(), None);
        assert_ne!(outbox.push(frame(1), || Millis(10)), Pushed::Dropped);
    }

    #[test]
    fn replies_are_never_dropped() {
        let outbox = Outbox::new(20, 40);
        outbox.push(frame(41), || Millis(7));
        assert_eq!(outbox.push(frame(1), || Millis(8)), Pushed::Dropped);
        outbox.push_reply(frame(2), || Millis(9));
        assert_eq!((outbox.bytes(), outbox.full_since()), (43, Some(Millis(7))));
    }

    #[test]
    fn a_frame_that_may_wait_leaves_with_the_next_one() {
        let outbox = Outbox::new(20, 40);
        let push = |may_wait| outbox.push_without_wake(frame(1), || Millis(0), may_wait);
        assert_eq!(
            [push(true), push(true), push(false), push(false)],
            [Pushed::Deferred, Pushed::Queued, Pushed::First, Pushed::Queued,]
        );
        // Behind a frame for which the session was woken, nothing has to be deferred.
        assert_eq!(push(true), Pushed::Queued);
        while outbox.pop().is_some() {}
        assert_eq!(push(true), Pushed::Deferred);
        assert!(outbox.is_deferred());
        outbox.push_reply(frame(1), || Millis(0));
        assert_eq!(push(false), Pushed::Queued, "the session is at work");
        assert!(!outbox.is_deferred());
    }

    #[test]
    fn frames_leave_in_the_order_they_came() {
        let outbox = Outbox::new(20, 40);
        outbox.push(frame(2), || Millis(0));
        outbox.push(frame(3), || Millis(0));
        outbox.push_front(frame(1));
        let lengths: Vec<usize> = std::iter::from_fn(|| outbox.pop()).map(|f| f.bytes()).collect();
        assert_eq!(lengths, [1, 2, 3]);
        assert_eq!(outbox.bytes(), 0);
    }
}
