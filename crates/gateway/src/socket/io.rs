//! Polls a socket for its session: finds the next event to handle, and writes when there is none.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use nexo_chat::command::Reply;
use nexo_chat::ids::MessageId;
use nexo_chat::send::PendingSend;
use nexo_chat::{Error, Reason};
use nexo_wire::dialect::Echo;

use crate::meters::Meters;
use crate::socket::connection::Connection;
use crate::websocket::{Incoming, Violation, WebSocket};

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

impl InFlightSend {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<CompletedSend> {
        let result = ready!(Pin::new(&mut self.pending).poll(cx));
        let context = self.context.take().expect("a completed send is not polled again");
        Poll::Ready(CompletedSend { context, result })
    }
}

/// What a session has to handle next.
#[allow(clippy::large_enum_variant, reason = "there is one at a time, and it is handled at once")]
pub(crate) enum SocketEvent {
    /// A message came; the socket has it.
    Frame,
    /// A WebSocket ping or pong.
    Control,
    SendCompleted(CompletedSend),
    /// The outbox has room for the rest of a resend page, or for dropped pushes.
    Room,
    /// Another task asked for the session to close.
    CloseRequested(Reason),
    /// The client violated the WebSocket protocol.
    Violation(Violation),
    /// The client has closed or lost the connection.
    Gone,
}

/// A socket and everything that can wake its session.
pub(crate) struct SocketIo {
    pub(crate) socket: WebSocket,
    pub(crate) connection: Arc<Connection>,
    /// Sends that are not answered. They are answered in order, so only the first is polled.
    in_flight: VecDeque<InFlightSend>,
    meters: Arc<Meters>,
    handled_in_a_row: usize,
}

impl SocketIo {
    pub(crate) fn new(socket: WebSocket, connection: Arc<Connection>, meters: Arc<Meters>) -> Self {
        let in_flight = VecDeque::new();
        Self { socket, connection, in_flight, meters, handled_in_a_row: 0 }
    }

    /// Adds a send that is answered when it completes.
    pub(crate) fn add_in_flight(&mut self, send: InFlightSend) {
        self.in_flight.push_back(send);
    }

    /// The next completed send; `None` if none is in flight.
    pub(crate) async fn next_completed(&mut self) -> Option<CompletedSend> {
        poll_fn(|cx| {
            if self.in_flight.is_empty() {
                Poll::Ready(None)
            } else {
                self.poll_completed(cx).map(Some)
            }
        })
        .await
    }

    fn poll_completed(&mut self, cx: &mut Context<'_>) -> Poll<CompletedSend> {
        let Some(first) = self.in_flight.front_mut() else { return Poll::Pending };
        let completed = ready!(first.poll(cx));
        self.in_flight.pop_front();
        if self.in_flight.is_empty() {
            self.in_flight = VecDeque::new(); // an idle socket keeps no buffer
        }
        Poll::Ready(completed)
    }

    pub(crate) async fn next(&mut self, has_backlog: bool) -> SocketEvent {
        poll_fn(|cx| self.poll(cx, has_backlog)).await
    }

    /// Polls a future to completion and writes the outbox meanwhile, so that pushes do not wait for
    /// this session's request. The caller pins the future: passing it by value would copy its state
    /// machine into the size of every session.
    pub(crate) async fn write_until<T>(
        &mut self,
        mut done: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        poll_fn(|cx| {
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
        if let Poll::Ready(completed) = self.poll_completed(cx) {
            return Poll::Ready(SocketEvent::SendCompleted(completed));
        }
        if self.in_flight.len() >= IN_FLIGHT_MAX || self.connection.outbox.is_full() {
            return Poll::Pending;
        }
        Poll::Ready(match ready!(self.socket.poll_next(cx)) {
            Incoming::Message => SocketEvent::Frame,
            Incoming::Control => SocketEvent::Control,
            Incoming::Violation(violation) => SocketEvent::Violation(violation),
            Incoming::Closed => SocketEvent::Gone,
        })
    }

    /// Writes the outbox, many frames at a time, unless all of them may wait for others.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if !self.socket.has_room() {
                ready!(self.socket.poll_flush(cx))?;
            }
            let mut queued = 0;
            while self.socket.has_room()
                && !self.connection.outbox.is_deferred()
                && let Some(frame) = self.connection.outbox.pop()
            {
                frame.write(&mut self.socket);
                queued += 1;
            }
            if queued > 0 {
                self.meters.frames_out.increment(queued);
            }
            if self.socket.has_room() {
                return self.socket.poll_flush(cx); // the outbox has nothing more
            }
        }
    }
}
