//! A socket that has not said who it is.

use std::net::IpAddr;

use axum::extract::ws::{Message, WebSocket};
use nexo_chat::auth::{self, Register};
use nexo_chat::command::{Command, Reply};
use nexo_chat::model::{Caller, Profile};
use nexo_chat::{Error, Reason};
use nexo_wire::dialect::{Decoded, Dialect, Echo, Frame, Inbound, NewAccount, Packet, Refused};
use tokio::time::Instant;

use crate::farewell::Farewell;
use crate::gateway::Gateway;
use crate::measure::Measures;
use crate::outbox;
use crate::pump::what_broke;
use crate::strikes::Strikes;

/// Registrations and sign-ins one socket may try.
const TRIES_MAX: usize = 8;

/// A socket that has said who it is.
pub(crate) struct Opened {
    /// Who.
    pub(crate) caller: Caller,
    /// How it speaks.
    pub(crate) dialect: Dialect,
    /// What it is told once it is let in.
    pub(crate) welcome: Option<Frame>,
}

/// Waits until somebody says who they are. Only a ping is answered before.
pub(crate) async fn open(
    gateway: &Gateway,
    socket: &mut WebSocket,
    from: IpAddr,
) -> Result<Opened, Farewell> {
    let mut opening = Opening {
        gateway,
        from,
        dialect: None,
        deadline: Instant::now() + gateway.options.auth_timeout,
        tries: 0,
        strikes: Strikes::default(),
    };
    loop {
        let received = tokio::time::timeout_at(opening.deadline, socket.recv()).await;
        let answer = match received {
            Err(_) => return Err(opening.ends(Reason::AuthTimeout)),
            Ok(Some(Ok(Message::Text(text)))) => opening.hear(Packet::Text(&text)).await?,
            Ok(Some(Ok(Message::Binary(bytes)))) => opening.hear(Packet::Binary(&bytes)).await?,
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => continue,
            Ok(Some(Err(error))) => {
                let (dialect, now) = (opening.dialect(), gateway.chat.clock.now());
                let broken = what_broke(&error);
                return Err(broken.map_or(Farewell::GONE, |it| Farewell::broken(it, dialect, now)));
            }
            Ok(Some(Ok(Message::Close(_))) | None) => return Err(Farewell::GONE),
        };
        match answer {
            Said::In(opened) => return Ok(*opened),
            Said::Frame(frame) => {
                if socket.send(outbox::Frame::from(frame).into()).await.is_err() {
                    return Err(Farewell::GONE);
                }
            }
        }
    }
}

/// What a frame came to.
enum Said {
    /// They are known.
    In(Box<Opened>),
    /// Not yet; an answer.
    Frame(Frame),
}

struct Opening<'a> {
    gateway: &'a Gateway,
    from: IpAddr,
    dialect: Option<Dialect>,
    deadline: Instant,
    tries: usize,
    strikes: Strikes,
}

impl Opening<'_> {
    /// The dialect, once a frame told it.
    fn dialect(&self) -> Dialect {
        self.dialect.unwrap_or(Dialect::Typed)
    }

    fn count(&self, reason: Reason) {
        Measures::refused(self.dialect().name(), reason);
    }

    fn ends(&self, reason: Reason) -> Farewell {
        self.count(reason);
        let now = self.gateway.chat.clock.now();
        Farewell::error(self.dialect(), reason, &Echo::default(), now)
    }

    async fn hear(&mut self, packet: Packet<'_>) -> Result<Said, Farewell> {
        let now = self.gateway.chat.clock.now();
        let dialect = *self.dialect.get_or_insert_with(|| Dialect::of(packet));
        let Decoded { inbound, echo, .. } = match dialect.decode(packet) {
            Ok(decoded) => decoded,
            Err(Refused { reason: Reason::MissingToken, echo }) => {
                self.count(Reason::MissingToken);
                return Err(Farewell::auth_fail(dialect, Reason::MissingToken, &echo, now));
            }
            Err(Refused { reason, echo }) => {
                self.count(reason);
                if self.strikes.is_out(self.gateway.chat.clock.ticks()) {
                    return Err(Farewell::strikes(dialect, reason, &echo, now));
                }
                return Ok(Said::Frame(dialect.refusal(reason, &echo, now)));
            }
        };
        match inbound {
            Inbound::Auth { token, .. } => self.authenticate(&token, &echo).await,
            Inbound::Register(account) => self.register(account, &echo).await,
            Inbound::Login { user_id, password, platform } => {
                self.count_try()?;
                let chat = &self.gateway.chat;
                match auth::login(chat, self.from, &user_id, password, platform).await {
                    Ok((tokens, _)) => self.signed_in(&tokens, &echo).await,
                    Err(error) => Ok(self.refuse(&error, &echo)),
                }
            }
            Inbound::Command(Command::Ping) => {
                let limits = &self.gateway.limits;
                let pong = dialect.reply(&Reply::Pong, limits, &echo, now);
                pong.map(Said::Frame).ok_or_else(|| self.ends(Reason::Unauthorized))
            }
            Inbound::Command(_) => Err(self.ends(Reason::Unauthorized)),
        }
    }

    async fn authenticate(&self, token: &str, echo: &Echo) -> Result<Said, Farewell> {
        let (dialect, now) = (self.dialect(), self.gateway.chat.clock.now());
        match auth::authenticate(&self.gateway.chat, token).await {
            Ok(caller) => {
                let welcome = dialect.welcome(&caller, &self.gateway.limits, echo, now);
                Ok(Said::In(Box::new(Opened { caller, dialect, welcome })))
            }
            Err(error) => {
                self.count(error.reason());
                Err(Farewell::auth_fail(dialect, error.reason(), echo, now))
            }
        }
    }

    async fn signed_in(&self, tokens: &auth::Tokens, echo: &Echo) -> Result<Said, Farewell> {
        let dialect = self.dialect();
        match auth::authenticate(&self.gateway.chat, &tokens.access).await {
            Ok(caller) => {
                let welcome = dialect.signed_in(tokens, &caller, echo);
                Ok(Said::In(Box::new(Opened { caller, dialect, welcome })))
            }
            Err(error) => Ok(self.refuse(&error, echo)),
        }
    }

    async fn register(&mut self, account: NewAccount, echo: &Echo) -> Result<Said, Farewell> {
        self.count_try()?;
        let NewAccount { user_id, password, nickname, avatar } = account;
        let nickname = if nickname.is_empty() { user_id.clone() } else { nickname };
        let profile = Profile { nickname, avatar, ..Profile::default() };
        let user_id = Some(user_id).filter(|id| !id.is_empty());
        let wanted = Register { user_id, profile, password };
        match auth::register(&self.gateway.chat, self.from, wanted).await {
            Ok(user) => {
                let told = self.dialect().registered(&user, echo);
                told.map(Said::Frame).ok_or_else(|| self.ends(Reason::Unauthorized))
            }
            Err(error) => Ok(self.refuse(&error, echo)),
        }
    }

    /// Passwords take their time: each try, of which there are few, begins the wait anew.
    fn count_try(&mut self) -> Result<(), Farewell> {
        self.tries += 1;
        if self.tries > TRIES_MAX {
            return Err(self.ends(Reason::TooManyRequests));
        }
        self.deadline = Instant::now() + self.gateway.options.auth_timeout;
        Ok(())
    }

    fn refuse(&self, error: &Error, echo: &Echo) -> Said {
        self.count(error.reason());
        let now = self.gateway.chat.clock.now();
        Said::Frame(self.dialect().refusal(error.reason(), echo, now))
    }
}
