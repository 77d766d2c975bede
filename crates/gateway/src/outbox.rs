//! What waits to be written to one socket. Bounded by bytes: a slow reader costs only itself.

use std::collections::VecDeque;
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
            Self::Ping => 0,
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

/// A bounded queue of frames with two water marks: above the high one it drops what comes, until
/// it has drained below the low one.
pub struct Outbox {
    low_bytes: usize,
    high_bytes: usize,
    state: Mutex<State>,
    waker: AtomicWaker,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Frame>,
    bytes: usize,
    full_since: Option<Millis>,
}

impl Outbox {
    /// An empty one.
    pub fn new(low_bytes: usize, high_bytes: usize) -> Self {
        let (state, waker) = (Mutex::default(), AtomicWaker::new());
        Self { low_bytes, high_bytes, state, waker }
    }

    /// Queues a push; `false` if the outbox is full and the push was dropped.
    pub fn push(&self, frame: Frame, now: Millis) -> bool {
        let mut state = self.state();
        if state.full_since.is_some() {
            return false;
        }
        state.bytes += frame.bytes();
        state.queue.push_back(frame);
        if state.bytes > self.high_bytes {
            state.full_since = Some(now);
        }
        drop(state);
        self.waker.wake();
        true
    }

    /// Queues an answer or a part of a resend, which nobody would bring again: never dropped. Their
    /// number is bounded by reading no more frames while the outbox is full.
    pub fn push_own(&self, frame: Frame, now: Millis) {
        let mut state = self.state();
        state.bytes += frame.bytes();
        state.queue.push_back(frame);
        if state.bytes > self.high_bytes {
            state.full_since.get_or_insert(now);
        }
    }

    /// Puts a frame before everything that waits.
    pub fn push_first(&self, frame: Frame) {
        let mut state = self.state();
        state.bytes += frame.bytes();
        state.queue.push_front(frame);
    }

    /// Takes the oldest frame.
    pub fn pop(&self) -> Option<Frame> {
        let mut state = self.state();
        let frame = state.queue.pop_front()?;
        state.bytes -= frame.bytes();
        if state.bytes < self.low_bytes {
            state.full_since = None;
        }
        if state.queue.is_empty() && state.queue.capacity() > 32 {
            state.queue = VecDeque::new(); // an idle socket keeps no buffer
        }
        Some(frame)
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Since when it has been full, if it is.
    pub fn full_since(&self) -> Option<Millis> {
        self.state().full_since
    }

    /// Whether it has room for what can wait: a resend goes on only below the low mark.
    pub fn has_room(&self) -> bool {
        self.state().bytes < self.low_bytes
    }

    /// Whether it drops what comes.
    pub fn is_full(&self) -> bool {
        self.full_since().is_some()
    }

    /// Wakes this task on the next push.
    pub fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// Wakes the task now.
    pub fn wake(&self) {
        self.waker.wake();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
            assert!(outbox.push(frame(10), Millis(7)));
        }
        assert_eq!(outbox.full_since(), Some(Millis(7)));
        assert!(!outbox.push(frame(1), Millis(8)));
        for _ in 0..3 {
            outbox.pop();
            assert!(!outbox.push(frame(1), Millis(9)), "still at {} bytes", outbox.bytes());
        }
        outbox.pop();
        assert_eq!(outbox.full_since(), None);
        assert!(outbox.push(frame(1), Millis(10)));
    }

    #[test]
    fn own_frames_are_never_dropped() {
        let outbox = Outbox::new(20, 40);
        outbox.push(frame(41), Millis(7));
        assert!(!outbox.push(frame(1), Millis(8)));
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
