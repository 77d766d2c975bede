//! The poll side of a session: what to handle next, and writing when nothing else is ready.

use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use bytes::Bytes;
use futures_util::stream::FuturesOrdered;
use futures_util::{Sink, Stream, StreamExt};
use nexo_chat::command::Reply;
use nexo_chat::ids::MessageId;
use nexo_chat::send::Sending;
use nexo_chat::{Error, Reason};
use nexo_wire::dialect::Echo;
use tokio_tungstenite::tungstenite;

use crate::connection::Connection;
use crate::measure::Measures;

/// Saves of one socket that may be under way; more are not read until some are answered.
const IN_FLIGHT_MAX: usize = 512;
/// Things handled in a row before what waits is written all the same.
const TURNS_MAX: usize = 64;

/// An answer that came later, and what it answers.
pub(crate) struct Answered {
    /// What the frame was called.
    pub(crate) echo: Echo,
    /// When it was read.
    pub(crate) since: Instant,
    /// How long it took to get its place in the order, if somebody wants to know. Small, since
    /// every socket has room for one.
    pub(crate) placed_after_us: Option<NonZeroU32>,
    /// The message whose fate this socket waits for, if it may be told before it is saved.
    pub(crate) awaits: Option<MessageId>,
    /// How it went.
    pub(crate) result: Result<Reply, Error>,
}

/// A save under way.
pub(crate) struct Saved {
    /// What the frame was called; taken when the answer is there.
    pub(crate) echo: Option<Echo>,
    /// When it was read.
    pub(crate) since: Instant,
    /// How long it took to get its place in the order, if somebody wants to know. Small, since
    /// every socket has room for one.
    pub(crate) placed_after_us: Option<NonZeroU32>,
    /// The message whose fate this socket waits for, if it may be told before it is saved.
    pub(crate) awaits: Option<MessageId>,
    /// What is awaited.
    pub(crate) sending: Sending,
}

impl Future for Saved {
    type Output = Answered;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answered> {
        let result = std::task::ready!(Pin::new(&mut self.sending).poll(cx));
        let echo = self.echo.take().unwrap_or_default();
        let Self { since, placed_after_us, awaits, .. } = *self;
        Poll::Ready(Answered { echo, since, placed_after_us, awaits, result })
    }
}

/// What a session has to handle next.
#[allow(clippy::large_enum_variant, reason = "there is one at a time, and it is handled at once")]
pub(crate) enum Next {
    /// A text frame.
    Text(Utf8Bytes),
    /// A binary frame.
    Binary(Bytes),
    /// A ping or pong of the transport.
    Control,
    /// A save became durable, or failed.
    Answered(Answered),
    /// The outbox has room: for more of the backlog, or for what it had to drop.
    Room,
    /// Somebody wants this session to end.
    Ending(Reason),
    /// The other side broke the WebSocket protocol.
    Broken(Broken),
    /// The other side is gone.
    Gone,
}

/// A socket and everything that can wake its session.
pub(crate) struct Pump {
    pub(crate) socket: WebSocket,
    pub(crate) connection: Arc<Connection>,
    pub(crate) answers: FuturesOrdered<Saved>,
    measures: Arc<Measures>,
    needs_flush: bool,
    turns: usize,
}

impl Pump {
    pub(crate) fn new(
        socket: WebSocket,
        connection: Arc<Connection>,
        measures: Arc<Measures>,
    ) -> Self {
        let answers = FuturesOrdered::new();
        Self { socket, connection, answers, measures, needs_flush: false, turns: 0 }
    }

    /// Waits for the next thing.
    pub(crate) async fn next(&mut self, has_backlog: bool) -> Next {
        std::future::poll_fn(|cx| self.poll(cx, has_backlog)).await
    }

    /// Waits for something, and writes meanwhile: what others say need not wait for what this one
    /// asked. It is pinned by whoever asks: handed over, it would be there once more for every hand,
    /// in the memory of every socket.
    pub(crate) async fn writing_until<T>(
        &mut self,
        mut done: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        std::future::poll_fn(|cx| {
            if let Poll::Ready(done) = done.as_mut().poll(cx) {
                return Poll::Ready(done);
            }
            self.connection.outbox.register(cx.waker());
            // A socket that broke is noticed when it is read next.
            drop(self.poll_write(cx));
            Poll::Pending
        })
        .await
    }

    fn poll(&mut self, cx: &mut Context<'_>, has_backlog: bool) -> Poll<Next> {
        if self.turns < TURNS_MAX
            && self.connection.ending().is_none()
            && let Poll::Ready(next) = self.poll_inbound(cx)
        {
            self.turns += 1;
            return Poll::Ready(next);
        }
        // Before looking at what others leave here, and only when it may be time to wait.
        self.connection.outbox.register(cx.waker());
        if let Some(reason) = self.connection.ending() {
            return Poll::Ready(Next::Ending(reason));
        }
        let was_forced = self.turns >= TURNS_MAX;
        let was_full = self.connection.outbox.is_full();
        self.turns = 0;
        if let Poll::Ready(Err(_)) = self.poll_write(cx) {
            return Poll::Ready(Next::Gone);
        }
        let is_ready = if has_backlog {
            self.connection.outbox.has_room()
        } else {
            self.connection.has_recovered()
        };
        if is_ready {
            return Poll::Ready(Next::Room);
        }
        // Reading was passed over above, and nothing would wake for it.
        let may_read_now = was_full && !self.connection.outbox.is_full();
        if was_forced || may_read_now { self.poll_inbound(cx) } else { Poll::Pending }
    }

    fn poll_inbound(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        if !self.answers.is_empty()
            && let Poll::Ready(Some(answered)) = self.answers.poll_next_unpin(cx)
        {
            return Poll::Ready(Next::Answered(answered));
        }
        if self.answers.len() >= IN_FLIGHT_MAX || self.connection.outbox.is_full() {
            return Poll::Pending;
        }
        let Poll::Ready(frame) = Pin::new(&mut self.socket).poll_next(cx) else {
            return Poll::Pending;
        };
        Poll::Ready(match frame {
            Some(Ok(Message::Text(text))) => Next::Text(text),
            Some(Ok(Message::Binary(bytes))) => Next::Binary(bytes),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                self.needs_flush = true; // the transport has queued its pong
                Next::Control
            }
            Some(Err(error)) => match what_broke(&error) {
                Some(broken) => Next::Broken(broken),
                None => Next::Gone,
            },
            Some(Ok(Message::Close(_))) | None => Next::Gone,
        })
    }

    /// Writes what waits, then flushes once.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
        let mut written = 0;
        let fed = loop {
            match Pin::new(&mut self.socket).poll_ready(cx) {
                Poll::Ready(Ok(())) => {}
                other => break other,
            }
            let Some(frame) = self.connection.outbox.pop() else { break Poll::Ready(Ok(())) };
            Pin::new(&mut self.socket).start_send(frame.into())?;
            written += 1;
        };
        if written > 0 {
            self.measures.frames_out.increment(written);
            self.needs_flush = true;
        }
        std::task::ready!(fed)?;
        if self.needs_flush {
            std::task::ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
            self.needs_flush = false;
        }
        Poll::Ready(Ok(()))
    }
}

/// How the other side broke the WebSocket protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A frame larger than allowed.
    TooLarge,
    /// Text that is not UTF-8.
    NotText,
    /// Anything else.
    Protocol,
}

/// What the transport found wrong, or `None` if the other side is simply gone.
pub(crate) fn what_broke(error: &axum::Error) -> Option<Broken> {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        match error.downcast_ref() {
            Some(tungstenite::Error::Capacity(_)) => return Some(Broken::TooLarge),
            Some(tungstenite::Error::Utf8(_)) => return Some(Broken::NotText),
            Some(tungstenite::Error::Protocol(
                tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
            )) => return None,
            Some(tungstenite::Error::Protocol(_)) => return Some(Broken::Protocol),
            Some(_) | None => source = error.source(),
        }
    }
    None
}
