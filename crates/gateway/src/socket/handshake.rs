//! Authenticates a socket by its first frames, if the HTTP upgrade did not.

use std::net::IpAddr;

use nexo_chat::auth::{self, PasswordLogin, RegisterRequest, SignInDevice};
use nexo_chat::command::{Command, Reply};
use nexo_chat::model::{Caller, Profile};
use nexo_chat::{Error, Reason};
use nexo_wire::dialect::{DecodeError, Decoded, Dialect, Echo, Frame, Inbound, NewAccount, Packet};
use tokio::time::Instant;

use crate::gateway::Gateway;
use crate::meters::Meters;
use crate::socket::close::SocketClose;
use crate::socket::outbox::OutFrame;
use crate::socket::strikes::Strikes;
use crate::websocket::{Incoming, WebSocket};

/// Registrations and logins that one socket may attempt.
const ATTEMPTS_MAX: usize = 8;

pub(crate) struct AuthenticatedSocket {
    pub(crate) caller: Caller,
    pub(crate) dialect: Dialect,
    /// Sent once the socket is registered.
    pub(crate) welcome: Option<Frame>,
}

/// Reads frames until one authenticates the socket. Before that only pings, registrations and logins
/// are answered.
pub(crate) async fn authenticate(
    gateway: &Gateway,
    socket: &mut WebSocket,
    from: IpAddr,
) -> Result<AuthenticatedSocket, SocketClose> {
    let mut handshake = SocketHandshake {
        gateway,
        from,
        dialect: None,
        deadline: Instant::now() + gateway.options.auth_timeout,
        attempts: 0,
        strikes: Strikes::default(),
    };
    loop {
        let received = tokio::time::timeout_at(handshake.deadline, socket.next()).await;
        let violation = |violation| {
            SocketClose::violation(violation, handshake.dialect(), gateway.chat.clock.now())
        };
        let packet = match received {
            Err(_) => return Err(handshake.close(Reason::AuthTimeout)),
            Ok(Incoming::Message) => socket.packet().map_err(violation)?,
            Ok(Incoming::Control) => {
                if flush_in_time(socket, handshake.deadline).await.is_err() {
                    return Err(SocketClose::GONE);
                }
                continue;
            }
            Ok(Incoming::Violation(it)) => return Err(violation(it)),
            Ok(Incoming::Closed) => return Err(SocketClose::GONE),
        };
        let step = handshake.handle(packet).await?;
        match step {
            HandshakeStep::Done(authenticated) => return Ok(*authenticated),
            HandshakeStep::Reply(frame) => {
                OutFrame::from(frame).write(socket);
                if flush_in_time(socket, handshake.deadline).await.is_err() {
                    return Err(SocketClose::GONE);
                }
            }
        }
    }
}

/// Writes to a client that may take nothing.
async fn flush_in_time(socket: &mut WebSocket, deadline: Instant) -> std::io::Result<()> {
    tokio::time::timeout_at(deadline, socket.flush()).await?
}

/// The result of one frame.
enum HandshakeStep {
    Done(Box<AuthenticatedSocket>),
    /// Not authenticated yet; the reply to the frame.
    Reply(Frame),
}

struct SocketHandshake<'a> {
    gateway: &'a Gateway,
    from: IpAddr,
    dialect: Option<Dialect>,
    deadline: Instant,
    attempts: usize,
    strikes: Strikes,
}

impl SocketHandshake<'_> {
    /// The dialect of the first frame; typed until there is one.
    fn dialect(&self) -> Dialect {
        self.dialect.unwrap_or(Dialect::Typed)
    }

    fn count_refusal(&self, reason: Reason) {
        Meters::count_refusal(self.dialect().name(), reason);
    }

    fn close(&self, reason: Reason) -> SocketClose {
        self.count_refusal(reason);
        let now = self.gateway.chat.clock.now();
        SocketClose::error(self.dialect(), reason, &Echo::default(), now)
    }

    async fn handle(&mut self, packet: Packet<'_>) -> Result<HandshakeStep, SocketClose> {
        let now = self.gateway.chat.clock.now();
        let dialect = *self.dialect.get_or_insert_with(|| Dialect::of(packet));
        let Decoded { inbound, echo, .. } = match dialect.decode(packet) {
            Ok(decoded) => decoded,
            Err(DecodeError { reason: Reason::MissingToken, echo }) => {
                self.count_refusal(Reason::MissingToken);
                return Err(SocketClose::auth_fail(dialect, Reason::MissingToken, &echo, now));
            }
            Err(DecodeError { reason, echo }) => {
                self.count_refusal(reason);
                if self.strikes.record(self.gateway.chat.clock.ticks()) {
                    return Err(SocketClose::strikes(dialect, reason, &echo, now));
                }
                return Ok(HandshakeStep::Reply(dialect.refusal(reason, &echo, now)));
            }
        };
        match inbound {
            Inbound::Auth { token, .. } => self.check_token(&token, &echo).await,
            Inbound::Register(account) => self.register(account, &echo).await,
            Inbound::Login { user_id, password, platform } => {
                self.count_attempt()?;
                let chat = &self.gateway.chat;
                let device = SignInDevice { address: self.from, platform, name: String::new() };
                // This dialect has no field for a second factor: such accounts sign in over HTTP.
                let request = PasswordLogin { user_id, password, totp_code: None };
                let login = auth::login(chat, request, &device).await;
                self.restart_timeout();
                match login {
                    Ok((tokens, _)) => self.finish_login(&tokens, &echo).await,
                    Err(error) => Ok(self.refuse(&error, &echo)),
                }
            }
            Inbound::Command(Command::Ping) => {
                let limits = &self.gateway.limits;
                let pong = dialect.reply(&Reply::Pong, limits, &echo, now);
                pong.map(HandshakeStep::Reply).ok_or_else(|| self.close(Reason::Unauthorized))
            }
            Inbound::Command(_) => Err(self.close(Reason::Unauthorized)),
        }
    }

    async fn check_token(&self, token: &str, echo: &Echo) -> Result<HandshakeStep, SocketClose> {
        let (dialect, now) = (self.dialect(), self.gateway.chat.clock.now());
        match auth::authenticate(&self.gateway.chat, token).await {
            Ok(caller) => {
                let welcome = dialect.welcome(&caller, &self.gateway.limits, echo, now);
                Ok(HandshakeStep::Done(Box::new(AuthenticatedSocket { caller, dialect, welcome })))
            }
            Err(error) => {
                self.count_refusal(error.reason());
                Err(SocketClose::auth_fail(dialect, error.reason(), echo, now))
            }
        }
    }

    async fn finish_login(
        &self,
        tokens: &auth::Tokens,
        echo: &Echo,
    ) -> Result<HandshakeStep, SocketClose> {
        let dialect = self.dialect();
        match auth::authenticate(&self.gateway.chat, &tokens.access).await {
            Ok(caller) => {
                let welcome = dialect.signed_in(tokens, &caller, echo);
                Ok(HandshakeStep::Done(Box::new(AuthenticatedSocket { caller, dialect, welcome })))
            }
            Err(error) => Ok(self.refuse(&error, echo)),
        }
    }

    async fn register(
        &mut self,
        account: NewAccount,
        echo: &Echo,
    ) -> Result<HandshakeStep, SocketClose> {
        self.count_attempt()?;
        let NewAccount { user_id, password, nickname, avatar } = account;
        let nickname = if nickname.is_empty() { user_id.clone() } else { nickname };
        let profile = Profile { nickname, avatar, ..Profile::default() };
        let user_id = Some(user_id).filter(|id| !id.is_empty());
        // This dialect has no field for an invite link.
        let request = RegisterRequest { user_id, profile, password, invite: None };
        match auth::register(&self.gateway.chat, self.from, request).await {
            Ok(user) => {
                let reply = self.dialect().registered(&user, echo);
                reply.map(HandshakeStep::Reply).ok_or_else(|| self.close(Reason::Unauthorized))
            }
            Err(error) => Ok(self.refuse(&error, echo)),
        }
    }

    /// A password takes long, and one after wrong ones has to wait: each attempt restarts the timeout when it begins
    /// and when it ends. There are few of them.
    fn count_attempt(&mut self) -> Result<(), SocketClose> {
        self.attempts += 1;
        if self.attempts > ATTEMPTS_MAX {
            return Err(self.close(Reason::TooManyRequests));
        }
        self.restart_timeout();
        Ok(())
    }

    fn restart_timeout(&mut self) {
        self.deadline = Instant::now() + self.gateway.options.auth_timeout;
    }

    fn refuse(&self, error: &Error, echo: &Echo) -> HandshakeStep {
        self.count_refusal(error.reason());
        let now = self.gateway.chat.clock.now();
        HandshakeStep::Reply(self.dialect().refusal(error.reason(), echo, now))
    }
}
