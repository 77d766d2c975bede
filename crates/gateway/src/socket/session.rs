//! An authenticated socket: reads frames, calls the domain, writes replies and pushes. One task.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Instant;

use nexo_chat::chat::SessionState;
use nexo_chat::command::{Command, HandleOutcome};
use nexo_chat::ids::{MessageId, Millis};
use nexo_chat::throttle::Bucket;
use nexo_chat::{Reason, auth};
use nexo_wire::dialect::{ClaimedSender, DecodeError, Decoded, Dialect, Echo, Frame, Inbound};

use crate::delivery::two_phase_waiters::MessageRef;
use crate::gateway::Gateway;
use crate::meters::Meters;
use crate::socket::catch_up::ResendQueue;
use crate::socket::close::{CLOSE_TIMEOUT, SocketClose};
use crate::socket::connection::Connection;
use crate::socket::guard::ConnectionGuard;
use crate::socket::io::{InFlightSend, SendContext, SocketEvent, SocketIo};
use crate::socket::strikes::Strikes;
use crate::socket::timings;
use crate::websocket::WebSocket;

pub(super) struct Session {
    pub(super) gateway: Arc<Gateway>,
    pub(super) connection: Arc<Connection>,
    pub(super) state: SessionState,
    pub(super) resend_queue: ResendQueue,
    pub(super) strikes: Strikes,
    io: SocketIo,
    /// Limits the frames this connection may send.
    frame_limit: Bucket,
}

impl Session {
    pub(super) fn new(gateway: Arc<Gateway>, guard: &ConnectionGuard, socket: WebSocket) -> Self {
        let connection = Arc::clone(&guard.connection);
        let meters = Arc::clone(&gateway.meters);
        let burst = f64::from(gateway.options.frames_burst);
        Self {
            frame_limit: Bucket::full(burst, gateway.chat.clock.ticks()),
            io: SocketIo::new(socket, Arc::clone(&connection), meters),
            state: SessionState::new(guard.caller.clone(), connection.dialect.supports_two_phase()),
            gateway,
            connection,
            resend_queue: ResendQueue::default(),
            strikes: Strikes::default(),
        }
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.connection.dialect
    }

    pub(super) fn close(&self, reason: Reason) -> SocketClose {
        SocketClose::error(self.dialect(), reason, &Echo::default(), self.now())
    }

    pub(super) fn close_after_panic(&self) -> SocketClose {
        SocketClose::panicked(self.dialect(), self.now())
    }

    pub(super) fn now(&self) -> Millis {
        self.gateway.chat.clock.now()
    }

    fn ticks(&self) -> Millis {
        self.gateway.chat.clock.ticks()
    }

    /// Queues a reply or a resent message, if the dialect has a frame for it.
    pub(super) fn push_reply(&self, frame: impl Into<Option<Frame>>) {
        if let Some(frame) = frame.into() {
            self.connection.outbox.push_reply(frame.into(), || self.ticks());
        }
    }

    pub(super) async fn run(&mut self) -> SocketClose {
        if self.dialect().pushes_missed()
            && let Err(close) = Box::pin(self.resend(BTreeMap::new())).await
        {
            return close;
        }
        loop {
            // Before waiting: no event would wake the session for a page that it still has to read.
            self.feed_outbox();
            while self.needs_page() {
                if let Err(close) = Box::pin(self.read_next_page()).await {
                    return close;
                }
                self.feed_outbox();
            }
            let handled = match self.io.next(!self.resend_queue.is_empty()).await {
                // Boxed: it is most of this future, and an idle session would carry it.
                SocketEvent::Frame => Box::pin(self.handle_frame()).await,
                SocketEvent::SendCompleted(completed) => self.reply_to_send(completed),
                SocketEvent::Control => self.count_frame(),
                SocketEvent::Room => Ok(()),
                SocketEvent::CloseRequested(reason) => Err(self.close(reason)),
                SocketEvent::Violation(violation) => {
                    Err(SocketClose::violation(violation, self.dialect(), self.now()))
                }
                SocketEvent::Gone => Err(SocketClose::GONE),
            };
            if let Err(close) = handled {
                return close;
            }
        }
    }

    /// Answers the sends in flight, writes the outbox, then sends the close frame.
    pub(super) async fn finish(mut self: Box<Self>, close: SocketClose) {
        let is_slow = self.connection.close_reason() == Some(Reason::SlowConsumer);
        if !is_slow && !close.is_gone() {
            let flushing = async {
                while let Some(completed) = self.io.next_completed().await {
                    if self.reply_to_send(completed).is_err() {
                        break;
                    }
                }
                self.connection.outbox.end_deferral();
                poll_fn(|cx| self.io.poll_write(cx)).await
            };
            if !matches!(tokio::time::timeout(CLOSE_TIMEOUT, flushing).await, Ok(Ok(()))) {
                return;
            }
        }
        tracing::debug!(
            target: "nexo::session",
            userId = %self.connection.user,
            deviceId = %self.connection.login,
            connId = self.connection.id.0,
            result = close.label,
            "session ended",
        );
        close.send(&mut self.io.socket).await;
    }

    async fn handle_frame(&mut self) -> Result<(), SocketClose> {
        let now = self.now();
        let received_at = Instant::now();
        self.gateway.meters.frames_in.increment(1);
        self.count_frame()?;
        let Some((command, echo)) = self.decode_command(now)? else { return Ok(()) };
        let two_phase_id = match self.wait_for_resolution(&command) {
            Ok(id) => id,
            Err(reason) => return self.refuse(reason, &echo, now),
        };
        let handled = {
            let handling = std::pin::pin!(self.gateway.chat.handle(&mut self.state, command));
            self.io.write_until(handling).await
        };
        match handled {
            Ok(HandleOutcome::Ready(reply)) => {
                self.reply(&reply, &echo, now);
                Ok(())
            }
            Ok(HandleOutcome::Pending(pending)) => {
                let check_us = timings::check_time(received_at);
                let context = SendContext { echo, received_at, check_us, two_phase_id };
                self.io.add_in_flight(InFlightSend::new(context, pending));
                Ok(())
            }
            Err(error) => {
                self.end_two_phase_send(two_phase_id);
                self.refuse_error(&error, &echo, now)
            }
        }
    }

    /// The command in a frame; `None` if the frame was answered or put off here.
    fn decode_command(&mut self, now: Millis) -> Result<Option<(Command, Echo)>, SocketClose> {
        let packet = match self.io.socket.packet() {
            Ok(packet) => packet,
            Err(violation) => return Err(SocketClose::violation(violation, self.dialect(), now)),
        };
        #[cfg(debug_assertions)]
        crate::test_panic::on_frame(&packet);
        let Decoded { inbound, echo, claimed } = match self.dialect().decode(packet) {
            Ok(decoded) => decoded,
            Err(DecodeError { reason, echo }) => {
                return self.refuse(reason, &echo, now).map(|()| None);
            }
        };
        if let Some(claimed) = claimed {
            let ClaimedSender { user, token } = *claimed;
            let (user, token) = (user.as_deref(), token.as_deref());
            let fits = auth::check_claims(&self.gateway.chat, &self.state.caller, user, token);
            if let Err(reason) = fits {
                return self.refuse(reason, &echo, now).map(|()| None);
            }
        }
        let command = match inbound {
            Inbound::Auth { token, renews: true } => Command::Reauth { token },
            // The connection is authenticated already: it is only welcomed again.
            Inbound::Auth { .. } => {
                let limits = &self.gateway.limits;
                self.push_reply(self.dialect().welcome(&self.state.caller, limits, &echo, now));
                return Ok(None);
            }
            // A connection belongs to one login.
            Inbound::Register(_) | Inbound::Login { .. } => {
                return self.refuse(Reason::Forbidden, &echo, now).map(|()| None);
            }
            Inbound::Command(Command::Resend { cursors }) if !self.resend_queue.is_empty() => {
                self.resend_queue.request(cursors);
                return Ok(None);
            }
            Inbound::Command(command) => command,
        };
        Ok(Some((command, echo)))
    }

    /// Registers this socket as waiting for a message that may be accepted before it is saved. Done
    /// before the domain sees the send, so that no resolution can come first. Without room for a
    /// waiter the send is refused: saved in one phase, it could overtake earlier sends of this socket.
    fn wait_for_resolution(&mut self, command: &Command) -> Result<Option<MessageId>, Reason> {
        let (Command::Send(outgoing), Some(two_phase)) = (command, &self.gateway.chat.two_phase)
        else {
            return Ok(None);
        };
        let sender = &self.connection.user;
        let conversation = outgoing.to.conversation(sender);
        if !self.state.supports_two_phase || !two_phase.accepts(&conversation) {
            return Ok(None);
        }
        let client_id = &outgoing.client_id;
        let id = MessageId::of(sender, client_id);
        let message = MessageRef { id, conversation: &conversation, sender, client_id };
        let waiters = &self.gateway.delivery.two_phase.waiters;
        let has_room = waiters.add_sender(&message, &self.connection, self.ticks());
        if has_room { Ok(Some(id)) } else { Err(Reason::ServerBusy) }
    }

    /// Notes that the client is there, and counts a frame against this connection's limit.
    fn count_frame(&mut self) -> Result<(), SocketClose> {
        let options = &self.gateway.options;
        let ticks = self.gateway.chat.clock.ticks();
        self.connection.note_activity(ticks);
        let rate = f64::from(options.frames_per_second) / 1000.0;
        if rate == 0.0 || self.frame_limit.take(rate, f64::from(options.frames_burst), ticks) {
            return Ok(());
        }
        Meters::count_refusal(self.dialect().name(), Reason::TooManyRequests);
        Err(self.close(Reason::TooManyRequests))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<'a, F: Future>(_what: impl FnOnce(&'a mut Session) -> F) -> usize {
        size_of::<F>()
    }

    /// There is one of these futures per socket, and most sockets are idle: what is large and rare
    /// must be boxed.
    #[test]
    fn a_waiting_socket_costs_little() {
        let size = size(Session::run);
        assert!(size <= 900, "{size} bytes");
    }
}
