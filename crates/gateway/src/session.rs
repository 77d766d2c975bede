//! One WebSocket: reads frames, asks the domain, writes answers and pushes. A single task.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::ws::WebSocket;
use futures_util::{SinkExt, StreamExt};
use nexo_chat::chat::Session as State;
use nexo_chat::command::{self, Answer, Command, Page, Reply};
use nexo_chat::ids::{ConversationId, MessageId, Millis, Seq};
use nexo_chat::model::{Caller, Message as Stored};
use nexo_chat::policy::delivery::is_important;
use nexo_chat::throttle::Bucket;
use nexo_chat::{Error, Reason, auth};
use nexo_wire::codes::{self, Close};
use nexo_wire::dialect::{Claimed, Decoded, Dialect, Echo, Frame, Inbound, Packet, Refused};

use crate::connection::Connection;
use crate::farewell::{Farewell, PATIENCE};
use crate::gateway::{Counted, Gateway};
use crate::measure::Measures;
use crate::opening::{Opened, open};
use crate::perf;
use crate::present::Present;
use crate::pump::{Answered, Next, Pump, Saved};
use crate::strikes::Strikes;
use crate::unsettled::{Fate, Named};

/// How a socket came.
pub enum Arrival {
    /// From there; it has yet to say who it is.
    Unknown(IpAddr),
    /// It said at the handshake who it is and how it speaks, and what it wants to be answered with.
    Known(Caller, Dialect, Echo),
    /// It said so, was refused, and wants to hear that as a frame.
    Refused(Reason, Dialect, Echo),
}

/// Serves one upgraded socket until it ends.
///
/// What happens once in the life of a socket is put aside while it lasts: a waiting socket costs
/// what the largest thing costs that it could be doing.
pub fn serve(
    gateway: Arc<Gateway>,
    socket: WebSocket,
    arrival: Arrival,
) -> impl Future<Output = ()> + Send {
    let entering = Box::pin(enter(gateway, socket, arrival));
    async move {
        let Some((mut session, present, counted)) = entering.await else { return };
        let farewell = session.run().await;
        Measures::ended(farewell.word);
        drop(present); // it hears nothing more, and its place is free while it says goodbye
        Box::pin(session.finish(farewell)).await;
        drop(counted);
    }
}

/// Finds out who it is, and lets it in or tells it why not.
async fn enter(
    gateway: Arc<Gateway>,
    mut socket: WebSocket,
    arrival: Arrival,
) -> Option<(Box<Session>, Present, Counted)> {
    let counted = gateway.count_session();
    let opened = match arrival {
        Arrival::Unknown(from) => open(&gateway, &mut socket, from).await,
        Arrival::Known(caller, dialect, echo) => {
            let now = gateway.chat.clock.now();
            let welcome = dialect.welcome(&caller, &gateway.limits, &echo, now);
            Ok(Opened { caller, dialect, welcome })
        }
        Arrival::Refused(reason, dialect, echo) => {
            Err(Farewell::auth_fail(dialect, reason, &echo, gateway.chat.clock.now()))
        }
    };
    let present = match opened {
        Ok(opened) => Present::enter(&gateway, opened).await,
        Err(farewell) => Err(farewell),
    };
    match present {
        Ok(present) => Some((Box::new(Session::new(gateway, &present, socket)), present, counted)),
        Err(farewell) => {
            Measures::ended(farewell.word);
            farewell.say(&mut socket).await;
            None
        }
    }
}

/// An authenticated socket.
struct Session {
    gateway: Arc<Gateway>,
    connection: Arc<Connection>,
    state: State,
    pump: Pump,
    backlog: VecDeque<Backlog>,
    /// The page a client asked for while one was being written.
    asked_again: Option<BTreeMap<ConversationId, Seq>>,
    frames: Bucket,
    strikes: Strikes,
}

/// What a resend still has to write.
enum Backlog {
    Message(Arc<Stored>),
    Done { has_more: bool },
}

impl Session {
    fn new(gateway: Arc<Gateway>, present: &Present, socket: WebSocket) -> Self {
        let connection = Arc::clone(&present.connection);
        let measures = Arc::clone(&gateway.measures);
        let burst = f64::from(gateway.options.frames_burst);
        Self {
            frames: Bucket::full(burst, gateway.chat.clock.ticks()),
            pump: Pump::new(socket, Arc::clone(&connection), measures),
            state: State::new(present.caller.clone(), connection.dialect.knows_accepted()),
            gateway,
            connection,
            backlog: VecDeque::new(),
            asked_again: None,
            strikes: Strikes::default(),
        }
    }

    fn dialect(&self) -> Dialect {
        self.connection.dialect
    }

    fn ends(&self, reason: Reason) -> Farewell {
        Farewell::error(self.dialect(), reason, &Echo::default(), self.now())
    }

    fn now(&self) -> Millis {
        self.gateway.chat.clock.now()
    }

    fn ticks(&self) -> Millis {
        self.gateway.chat.clock.ticks()
    }

    fn push(&self, frame: impl Into<Option<Frame>>) {
        if let Some(frame) = frame.into() {
            self.connection.outbox.push_own(frame.into(), self.ticks());
        }
    }

    async fn run(&mut self) -> Farewell {
        if self.dialect().is_brought_up()
            && let Err(farewell) = Box::pin(self.resend(BTreeMap::new())).await
        {
            return farewell;
        }
        loop {
            // Nothing would wake the session for a page it owes, so that comes before waiting.
            self.feed();
            while self.owes_a_page() {
                if let Err(farewell) = Box::pin(self.go_on()).await {
                    return farewell;
                }
                self.feed();
            }
            let turn = match self.pump.next(!self.backlog.is_empty()).await {
                Next::Text(text) => self.read(Packet::Text(&text)).await,
                Next::Binary(bytes) => self.read(Packet::Binary(&bytes)).await,
                Next::Answered(answered) => self.answered(answered),
                Next::Control => {
                    self.connection.heard(self.ticks());
                    self.allow_frame()
                }
                Next::Room => Ok(()),
                Next::Ending(reason) => Err(self.ends(reason)),
                Next::Broken(broken) => Err(Farewell::broken(broken, self.dialect(), self.now())),
                Next::Gone => Err(Farewell::GONE),
            };
            if let Err(farewell) = turn {
                return farewell;
            }
        }
    }

    /// Lets saves under way be answered and what waits be written, then says the last word.
    async fn finish(mut self: Box<Self>, farewell: Farewell) {
        let is_slow = self.connection.ending() == Some(Reason::SlowConsumer);
        if !is_slow && !farewell.is_gone() {
            let settling = async {
                while let Some(answered) = self.pump.answers.next().await {
                    if self.answered(answered).is_err() {
                        break;
                    }
                }
                while let Some(frame) = self.connection.outbox.pop() {
                    self.pump.socket.feed(frame.into()).await?;
                }
                Ok::<_, axum::Error>(())
            };
            if !matches!(tokio::time::timeout(PATIENCE, settling).await, Ok(Ok(()))) {
                return;
            }
        }
        tracing::debug!(
            target: "nexo::session",
            userId = %self.connection.user,
            deviceId = %self.connection.login,
            connId = self.connection.id.0,
            result = farewell.word,
            "session ended",
        );
        farewell.say(&mut self.pump.socket).await;
    }

    async fn read(&mut self, packet: Packet<'_>) -> Result<(), Farewell> {
        let now = self.now();
        let since = Instant::now();
        self.connection.heard(self.ticks());
        self.gateway.measures.frames_in.increment(1);
        self.allow_frame()?;
        let Decoded { inbound, echo, claimed } = match self.dialect().decode(packet) {
            Ok(decoded) => decoded,
            Err(Refused { reason, echo }) => return self.refuse(reason, &echo, now),
        };
        if let Some(claimed) = claimed {
            let Claimed { user, token } = *claimed;
            let (user, token) = (user.as_deref(), token.as_deref());
            let fits = auth::claims_fit(&self.gateway.chat, &self.state.caller, user, token);
            if let Err(reason) = fits {
                return self.refuse(reason, &echo, now);
            }
        }
        let command = match inbound {
            Inbound::Auth { token, renews: true } => Command::Reauth { token },
            // Said again on an open connection it changes nothing.
            Inbound::Auth { .. } => {
                let limits = &self.gateway.limits;
                self.push(self.dialect().welcome(&self.state.caller, limits, &echo, now));
                return Ok(());
            }
            // One connection is one sign-in.
            Inbound::Register(_) | Inbound::Login { .. } => {
                return self.refuse(Reason::Forbidden, &echo, now);
            }
            Inbound::Command(command) => command,
        };
        let command = match command {
            Command::Resend { cursors } if !self.backlog.is_empty() => {
                self.asked_again = Some(cursors); // the latest word counts
                return Ok(());
            }
            command => command,
        };
        let awaits = match self.await_fate(&command) {
            Ok(awaits) => awaits,
            Err(reason) => return self.refuse(reason, &echo, now),
        };
        let handled = {
            let handling = std::pin::pin!(self.gateway.chat.handle(&mut self.state, command));
            self.pump.writing_until(handling).await
        };
        match handled {
            Ok(Answer::Now(reply)) => {
                self.reply(&reply, &echo, now);
                Ok(())
            }
            Ok(Answer::Later(sending)) => {
                let placed_after_us = perf::placed(since);
                let echo = Some(echo);
                self.pump.answers.push_back(Saved {
                    echo,
                    since,
                    placed_after_us,
                    awaits,
                    sending,
                });
                Ok(())
            }
            Err(error) => {
                self.is_answered(awaits);
                self.failed(&error, &echo, now)
            }
        }
    }

    /// Notes a message that may be accepted before it is saved, before anybody can tell what becomes
    /// of it. Where there is no room, it is refused: the ordinary way might overtake what this socket
    /// sent before.
    fn await_fate(&mut self, command: &Command) -> Result<Option<MessageId>, Reason> {
        let (Command::Send(outgoing), Some(intake)) = (command, &self.gateway.chat.intake) else {
            return Ok(None);
        };
        let sender = &self.connection.user;
        let conversation = outgoing.to.conversation(sender);
        if !self.state.knows_accepted || !intake.takes(&conversation) {
            return Ok(None);
        }
        let client_id = &outgoing.client_id;
        let id = MessageId::of(sender, client_id);
        let named = Named { id, conversation: &conversation, sender, client_id };
        let has_room = self.gateway.unsettled.ask(&named, &self.connection, self.ticks());
        if has_room { Ok(Some(id)) } else { Err(Reason::ServerBusy) }
    }

    fn is_answered(&self, awaits: Option<MessageId>) {
        if let Some(id) = awaits {
            self.gateway.unsettled.answered(id, &self.connection);
        }
    }

    /// Counts a frame against this connection's limit.
    fn allow_frame(&mut self) -> Result<(), Farewell> {
        let options = &self.gateway.options;
        let ticks = self.gateway.chat.clock.ticks();
        let rate = f64::from(options.frames_per_second) / 1000.0;
        if rate == 0.0 || self.frames.take(rate, f64::from(options.frames_burst), ticks) {
            return Ok(());
        }
        Measures::refused(self.dialect().name(), Reason::TooManyRequests);
        Err(self.ends(Reason::TooManyRequests))
    }

    fn answered(&mut self, answered: Answered) -> Result<(), Farewell> {
        let now = self.now();
        let Answered { echo, since, placed_after_us, awaits, result } = answered;
        if let Ok(Reply::Accepted(_)) = &result {
            self.gateway.measures.acks_accepted.increment(1);
            self.gateway.measures.accept_seconds.record(since.elapsed());
        } else {
            self.is_answered(awaits);
        }
        match result {
            Ok(Reply::Accepted(accepted)) => {
                let cleaned = accepted.cleaned.is_some();
                let reply = Reply::Accepted(accepted);
                let frame = self.dialect().reply(&reply, &self.gateway.limits, &echo, now);
                let tell = || self.push(frame);
                let unsettled = &self.gateway.unsettled;
                match awaits.and_then(|id| unsettled.accepted(id, &self.connection, tell)) {
                    Some(Fate::Saved(message)) => {
                        let cleaned = cleaned && message.recalled.is_none();
                        let saved = command::Saved { message, duplicate: false, cleaned };
                        self.reply(&Reply::Saved(saved), &echo, now);
                    }
                    Some(Fate::Dropped(dropped)) => self.gateway.delivery.doubt(dropped),
                    None => {}
                }
                Ok(())
            }
            Ok(reply) => {
                self.gateway.measures.save_seconds.record(since.elapsed());
                self.reply(&reply, &echo, now);
                if let (Some(placed), Reply::Saved(saved)) = (placed_after_us, &reply) {
                    perf::saved(&saved.message, since, placed);
                }
                Ok(())
            }
            Err(error) => self.failed(&error, &echo, now),
        }
    }

    fn reply(&mut self, reply: &Reply, echo: &Echo, now: Millis) {
        match reply {
            Reply::Saved(_) => self.gateway.measures.acks_saved.increment(1),
            Reply::Authenticated(caller) => self.connection.renew(caller.expires_at),
            Reply::Resend(page) => self.take_page(page),
            _ => {}
        }
        self.push(self.dialect().reply(reply, &self.gateway.limits, echo, now));
    }

    fn failed(&mut self, error: &Error, echo: &Echo, now: Millis) -> Result<(), Farewell> {
        if let Error::Unavailable(_) | Error::Internal(_) = error {
            let (user, conn) = (&self.connection.user, self.connection.id.0);
            tracing::warn!(userId = %user, connId = conn, %error, "a request failed");
        }
        self.refuse(error.reason(), echo, now)
    }

    fn refuse(&mut self, reason: Reason, echo: &Echo, now: Millis) -> Result<(), Farewell> {
        Measures::refused(self.dialect().name(), reason);
        match codes::row(reason).close {
            Close::Strike if self.strikes.is_out(self.gateway.chat.clock.ticks()) => {
                return Err(Farewell::strikes(self.dialect(), reason, echo, now));
            }
            Close::Strike | Close::Stays => {}
            Close::Ends(_) if matches!(reason, Reason::MissingToken | Reason::InvalidToken) => {
                return Err(Farewell::auth_fail(self.dialect(), reason, echo, now));
            }
            Close::Ends(_) => return Err(Farewell::error(self.dialect(), reason, echo, now)),
        }
        self.push(self.dialect().refusal(reason, echo, now));
        Ok(())
    }

    /// Brings the next page of what this device has not seen.
    async fn resend(&mut self, cursors: BTreeMap<ConversationId, Seq>) -> Result<(), Farewell> {
        let command = Command::Resend { cursors };
        match self.gateway.chat.handle(&mut self.state, command).await {
            Ok(Answer::Now(reply)) => self.reply(&reply, &Echo::default(), self.now()),
            Ok(Answer::Later(_)) => {}
            Err(error) => return self.failed(&error, &Echo::default(), self.now()),
        }
        Ok(())
    }

    /// Whether the last page is written and another is wanted.
    fn owes_a_page(&self) -> bool {
        self.backlog.is_empty() && (self.asked_again.is_some() || self.connection.has_recovered())
    }

    /// Brings what was dropped while the reader was slow, else what the client asked for meanwhile.
    async fn go_on(&mut self) -> Result<(), Farewell> {
        if self.connection.has_recovered() {
            let missed = self.connection.take_missed();
            let State { caller, catchup, .. } = &mut self.state;
            match catchup.recover(&self.gateway.chat, caller, missed).await {
                Ok(Some(page)) => self.take_page(&page),
                Ok(None) => {}
                // What was dropped is not known any more: a new connection starts from the cursor.
                Err(error) => {
                    let user = &self.connection.user;
                    tracing::warn!(userId = %user, %error, "what was dropped cannot be brought");
                    return Err(self.ends(Reason::SlowConsumer));
                }
            }
        }
        match self.asked_again.take() {
            Some(cursors) if self.backlog.is_empty() => self.resend(cursors).await,
            waiting => {
                self.asked_again = waiting;
                Ok(())
            }
        }
    }

    fn take_page(&mut self, page: &Page) {
        self.gateway.measures.resent.increment(page.messages.len() as u64);
        let messages = page.messages.iter().map(Arc::clone).map(Backlog::Message);
        self.backlog.extend(messages);
        self.backlog.push_back(Backlog::Done { has_more: page.has_more });
    }

    /// Moves the backlog into the outbox as far as there is room.
    fn feed(&mut self) {
        if self.backlog.is_empty() {
            return;
        }
        let now = self.now();
        while !self.backlog.is_empty() && self.connection.outbox.has_room() {
            match self.backlog.pop_front() {
                Some(Backlog::Message(message)) => {
                    self.gateway.recalls.write(&message, |message| {
                        let is_important = is_important(message, &self.connection.user);
                        self.push(self.dialect().message(message, is_important));
                    });
                }
                Some(Backlog::Done { has_more }) => {
                    self.push(self.dialect().page_end(has_more, now));
                }
                None => break,
            }
        }
        if self.backlog.is_empty() {
            self.backlog = VecDeque::new(); // an idle socket keeps no buffer
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<'a, F: Future>(_what: impl FnOnce(&'a mut Session) -> F) -> usize {
        size_of::<F>()
    }

    /// There are as many of these as there are sockets, most of them idle: what is large and rare is
    /// put aside while it lasts.
    #[test]
    fn a_waiting_socket_costs_little() {
        let size = size(Session::run);
        assert!(size <= 2200, "{size} bytes");
    }
}
