//! Polls a socket for its session: finds the next event to handle, and writes when there is none.

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
use nexo_chat::send::PendingSend;
use nexo_chat::{Error, Reason};
use nexo_wire::dialect::Echo;
use tokio_tungstenite::tungstenite;

use crate::meters::Meters;
use crate::socket::connection::Connection;

/// Sends of one socket that may be in flight; at the limit it reads no more frames.
const IN_FLIGHT_MAX: usize = 512;
/// Events handled in a row before the outbox is written even though more events are ready.
const HANDLED_IN_A_ROW_MAX: usize = 64;

/// What a session has to remember of a send until it is answered.
pub(crate) struct SendContext {
    pub(crate) echo: Echo,
    pub(crate) received_at: Instant,
    /// See `timings`. 32 bits, since every session holds one of these.
    pub(crate) check_us: Option<NonZeroU32>,
    /// The message, if this socket waits for its two-phase resolution.
    pub(crate) two_phase_id: Option<MessageId>,
}

/// A send that waits to be durable or accepted.
pub(crate) struct InFlightSend {
    /// Taken when the send completes.
    context: Option<SendContext>,
    pending: PendingSend,
}

impl InFlightSend {
    pub(crate) fn new(context: SendContext, pending: PendingSend) -> Self {
        Self { context: Some(context), pending }
    }
}

pub(crate) struct CompletedSend {
    pub(crate) context: SendContext,
    pub(crate) result: Result<Reply, Error>,
}

impl Future for InFlightSend {
    type Output = CompletedSend;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CompletedSend> {
        let result = std::task::ready!(Pin::new(&mut self.pending).poll(cx));
        let context = self.context.take().expect("a completed send is not polled again");
        Poll::Ready(CompletedSend { context, result })
    }
}

/// What a session has to handle next.
#[allow(clippy::large_enum_variant, reason = "there is one at a time, and it is handled at once")]
pub(crate) enum SocketEvent {
    Text(Utf8Bytes),
    Binary(Bytes),
    /// A WebSocket ping or pong.
    Control,
    SendCompleted(CompletedSend),
    /// The outbox has room for the rest of a resend page, or for dropped pushes.
    Room,
    /// Another task asked for the session to close.
    CloseRequested(Reason),
    /// The client violated the WebSocket protocol.
    Violation(ProtocolViolation),
    /// The client has closed or lost the connection.
    Gone,
}

/// A socket and everything that can wake its session.
pub(crate) struct SocketIo {
    pub(crate) socket: WebSocket,
    pub(crate) connection: Arc<Connection>,
    pub(crate) in_flight: FuturesOrdered<InFlightSend>,
    meters: Arc<Meters>,
    needs_flush: bool,
    handled_in_a_row: usize,
}

impl SocketIo {
    pub(crate) fn new(socket: WebSocket, connection: Arc<Connection>, meters: Arc<Meters>) -> Self {
        let in_flight = FuturesOrdered::new();
        Self { socket, connection, in_flight, meters, needs_flush: false, handled_in_a_row: 0 }
    }

    pub(crate) async fn next(&mut self, has_backlog: bool) -> SocketEvent {
        std::future::poll_fn(|cx| self.poll(cx, has_backlog)).await
    }

    /// Polls a future to completion and writes the outbox meanwhile, so that pushes do not wait for
    /// this session's request. The caller pins the future: passing it by value would copy its state
    /// machine into the size of every session.
    pub(crate) async fn write_until<T>(
        &mut self,
        mut done: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        std::future::poll_fn(|cx| {
            if let Poll::Ready(done) = done.as_mut().poll(cx) {
                return Poll::Ready(done);
            }
            self.connection.outbox.register_waker(cx.waker());
            // The next read reports a broken socket.
            drop(self.poll_write(cx));
            Poll::Pending
        })
        .await
    }

    fn poll(&mut self, cx: &mut Context<'_>, has_backlog: bool) -> Poll<SocketEvent> {
        if self.handled_in_a_row < HANDLED_IN_A_ROW_MAX
            && self.connection.close_reason().is_none()
            && let Poll::Ready(event) = self.poll_inbound(cx)
        {
            self.handled_in_a_row += 1;
            return Poll::Ready(event);
        }
        // Before the outbox and the close reason are read, so that no wake between is lost; not
        // earlier, since a session that has more to handle need not be woken.
        self.connection.outbox.register_waker(cx.waker());
        if let Some(reason) = self.connection.close_reason() {
            return Poll::Ready(SocketEvent::CloseRequested(reason));
        }
        let was_forced = self.handled_in_a_row >= HANDLED_IN_A_ROW_MAX;
        let was_full = self.connection.outbox.is_full();
        self.handled_in_a_row = 0;
        if let Poll::Ready(Err(_)) = self.poll_write(cx) {
            return Poll::Ready(SocketEvent::Gone);
        }
        let has_room = if has_backlog {
            self.connection.outbox.has_room()
        } else {
            self.connection.can_recover()
        };
        if has_room {
            return Poll::Ready(SocketEvent::Room);
        }
        // The read above was skipped, so no waker is registered for it.
        let may_read_now = was_full && !self.connection.outbox.is_full();
        if was_forced || may_read_now { self.poll_inbound(cx) } else { Poll::Pending }
    }

    fn poll_inbound(&mut self, cx: &mut Context<'_>) -> Poll<SocketEvent> {
        if !self.in_flight.is_empty()
            && let Poll::Ready(Some(completed)) = self.in_flight.poll_next_unpin(cx)
        {
            return Poll::Ready(SocketEvent::SendCompleted(completed));
        }
        if self.in_flight.len() >= IN_FLIGHT_MAX || self.connection.outbox.is_full() {
            return Poll::Pending;
        }
        let Poll::Ready(frame) = Pin::new(&mut self.socket).poll_next(cx) else {
            return Poll::Pending;
        };
        Poll::Ready(match frame {
            Some(Ok(Message::Text(text))) => SocketEvent::Text(text),
            Some(Ok(Message::Binary(bytes))) => SocketEvent::Binary(bytes),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                self.needs_flush = true; // the WebSocket library has queued its pong
                SocketEvent::Control
            }
            Some(Err(error)) => {
                protocol_violation(&error).map_or(SocketEvent::Gone, SocketEvent::Violation)
            }
            Some(Ok(Message::Close(_))) | None => SocketEvent::Gone,
        })
    }

    /// Writes the outbox, then flushes once.
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
            self.meters.frames_out.increment(written);
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

/// How a client violated the WebSocket protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtocolViolation {
    TooLarge,
    NotUtf8,
    Other,
}

/// The violation an error stands for, or `None` if the connection was only lost.
pub(crate) fn protocol_violation(error: &axum::Error) -> Option<ProtocolViolation> {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        match error.downcast_ref() {
            Some(tungstenite::Error::Capacity(_)) => return Some(ProtocolViolation::TooLarge),
            Some(tungstenite::Error::Utf8(_)) => return Some(ProtocolViolation::NotUtf8),
            Some(tungstenite::Error::Protocol(
                tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
            )) => return None,
            Some(tungstenite::Error::Protocol(_)) => return Some(ProtocolViolation::Other),
            Some(_) | None => source = error.source(),
        }
    }
    None
}
