//! How a session answers its client: replies, acknowledgements of sends, refusals.

use std::sync::Arc;

use nexo_chat::command::{Reply, Saved};
use nexo_chat::ids::{MessageId, Millis};
use nexo_chat::{Error, Reason};
use nexo_wire::codes::{self, Close};
use nexo_wire::dialect::Echo;

use crate::delivery::two_phase_waiters::Resolution;
use crate::meters::Meters;
use crate::socket::close::SocketClose;
use crate::socket::io::{CompletedSend, SendContext};
use crate::socket::session::Session;
use crate::socket::timings::{self, SendTimes};

impl Session {
    /// Answers a send that was saved, accepted or refused.
    pub(super) fn reply_to_send(&mut self, completed: CompletedSend) -> Result<(), SocketClose> {
        let now = self.now();
        let CompletedSend { context, result } = completed;
        let SendContext { echo, received_at, check_us, two_phase_id } = context;
        let times = SendTimes { received_at, check_us };
        if let Ok(Reply::Accepted(_)) = &result {
            self.gateway.meters.acks_accepted.increment(1);
            self.gateway.meters.accept_seconds.record(received_at.elapsed());
        } else {
            self.end_two_phase_send(two_phase_id);
        }
        match result {
            Ok(Reply::Accepted(accepted)) => {
                let cleaned = accepted.cleaned.is_some();
                let reply = Reply::Accepted(accepted);
                let frame = self.dialect().reply(&reply, &self.gateway.limits, &echo, now);
                let tell = || self.push_reply(frame);
                let two_phase = &self.gateway.delivery.two_phase;
                let accept = |id| two_phase.waiters.accept(id, &self.connection, times, tell);
                match two_phase_id.and_then(accept) {
                    Some(Resolution::Saved(message)) => {
                        let cleaned = cleaned && message.recalled.is_none();
                        let saved =
                            Saved { message: Arc::clone(&message), duplicate: false, cleaned };
                        self.reply(&Reply::Saved(saved), &echo, now);
                        self.gateway.meters.save_seconds.record(received_at.elapsed());
                        timings::log_saved(&message, times);
                    }
                    Some(Resolution::Dropped(dropped)) => two_phase.recheck_dropped(dropped),
                    None => {}
                }
                Ok(())
            }
            Ok(reply) => {
                self.gateway.meters.save_seconds.record(received_at.elapsed());
                self.reply(&reply, &echo, now);
                if let Reply::Saved(saved) = &reply {
                    timings::log_saved(&saved.message, times);
                }
                Ok(())
            }
            Err(error) => self.refuse_error(&error, &echo, now),
        }
    }

    /// Tells the two-phase waiters that a send was answered with something other than accepted.
    pub(super) fn end_two_phase_send(&self, two_phase_id: Option<MessageId>) {
        if let Some(id) = two_phase_id {
            self.gateway.delivery.two_phase.waiters.end_send(id, &self.connection);
        }
    }

    pub(super) fn reply(&mut self, reply: &Reply, echo: &Echo, now: Millis) {
        match reply {
            Reply::Saved(_) => self.gateway.meters.acks_saved.increment(1),
            Reply::Authenticated(caller) => self.connection.set_expires_at(caller.expires_at),
            Reply::Resend(page) => self.queue_page(page),
            _ => {}
        }
        self.push_reply(self.dialect().reply(reply, &self.gateway.limits, echo, now));
    }

    pub(super) fn refuse_error(
        &mut self,
        error: &Error,
        echo: &Echo,
        now: Millis,
    ) -> Result<(), SocketClose> {
        if let Error::Unavailable(_) | Error::Internal(_) = error {
            let (user, conn) = (&self.connection.user, self.connection.id.0);
            tracing::warn!(userId = %user, connId = conn, %error, "a request failed");
        }
        self.refuse(error.reason(), echo, now)
    }

    /// Sends a refusal, or returns the close if the reason ends the connection.
    pub(super) fn refuse(
        &mut self,
        reason: Reason,
        echo: &Echo,
        now: Millis,
    ) -> Result<(), SocketClose> {
        Meters::count_refusal(self.dialect().name(), reason);
        match codes::row(reason).close {
            Close::Strike if self.strikes.record(self.gateway.chat.clock.ticks()) => {
                return Err(SocketClose::strikes(self.dialect(), reason, echo, now));
            }
            Close::Strike | Close::Stays => {}
            Close::Ends(_) if matches!(reason, Reason::MissingToken | Reason::InvalidToken) => {
                return Err(SocketClose::auth_fail(self.dialect(), reason, echo, now));
            }
            Close::Ends(_) => return Err(SocketClose::error(self.dialect(), reason, echo, now)),
        }
        self.push_reply(self.dialect().refusal(reason, echo, now));
        Ok(())
    }
}
