//! The domain put together: one value that owns the contracts and the rules.

use std::sync::Arc;

use crate::bus::Bus;
use crate::clock::{Clock, Dice};
use crate::command::{Answer, Command, Reply};
use crate::ids::UserId;
use crate::intake::Intake;
use crate::meters::Meters;
use crate::model::Caller;
use crate::passwords::Passwords;
use crate::reason::{Error, Reason};
use crate::rules::Rules;
use crate::store::Store;
use crate::sync::Catchup;
use crate::throttle::Throttle;
use crate::token::TokenKey;
use crate::tries::Throttles;
use crate::{announce, auth, presence, query, read, recall, send};

/// More often nobody needs to know that somebody is writing.
const TYPINGS_PER_SECOND: u32 = 2;

/// What the features share.
pub struct Chat {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// How others hear.
    pub bus: Arc<dyn Bus>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Who takes messages in before they are saved, if anybody does.
    pub intake: Option<Arc<dyn Intake>>,
    /// Unpredictable bytes.
    pub dice: Arc<dyn Dice>,
    /// How passwords are kept.
    pub passwords: Arc<dyn Passwords>,
    /// What the operator chose.
    pub rules: Rules,
    /// Signs and checks access tokens.
    pub key: TokenKey,
    pub(crate) sends: Throttle<UserId>,
    requests: Throttle<UserId>,
    pub(crate) typings: Throttle<UserId>,
    pub(crate) logins: Throttles,
    /// What is counted about acknowledgements.
    pub(crate) meters: Meters,
    /// What this process is called in lines of the log.
    pub instance: Arc<str>,
}

/// One connection's identity and how far its catch-up has come.
#[derive(Debug)]
pub struct Session {
    /// Who it is.
    pub caller: Caller,
    /// What was already sent again.
    pub catchup: Catchup,
    /// Whether it can be told that a message is accepted and not saved yet.
    pub knows_accepted: bool,
}

impl Session {
    /// A session that has sent nothing again yet.
    pub fn new(caller: Caller, knows_accepted: bool) -> Self {
        Self { caller, catchup: Catchup::default(), knows_accepted }
    }
}

impl Chat {
    /// Puts the parts together and lets the store's commits be announced on the bus.
    pub fn new(
        store: Arc<dyn Store>,
        bus: Arc<dyn Bus>,
        clock: Arc<dyn Clock>,
        dice: Arc<dyn Dice>,
        passwords: Arc<dyn Passwords>,
        rules: Rules,
        key: TokenKey,
    ) -> Self {
        store.on_commit(Arc::new(announce::Announcer::new(Arc::clone(&bus))));
        let sends = Throttle::per_second(rules.user_sends_per_second, rules.user_sends_burst);
        let typings = Throttle::per_second(TYPINGS_PER_SECOND, 2 * TYPINGS_PER_SECOND);
        let requests =
            Throttle::per_second(rules.user_requests_per_second, rules.user_requests_burst);
        let logins = Throttles::new(&rules);
        let intake = None;
        Self {
            store,
            bus,
            clock,
            intake,
            dice,
            passwords,
            rules,
            key,
            sends,
            requests,
            typings,
            logins,
            meters: Meters::default(),
            instance: "".into(),
        }
    }

    /// Gives this process a name, by which lines of several logs can be told apart.
    #[must_use]
    pub fn with_instance(self, instance: impl Into<Arc<str>>) -> Self {
        Self { instance: instance.into(), ..self }
    }

    /// Answers senders who understand it as soon as somebody has taken their message in.
    #[must_use]
    pub fn with_intake(self, intake: Arc<dyn Intake>) -> Self {
        Self { intake: Some(intake), ..self }
    }

    /// Counts a request over HTTP; there may be too many.
    pub fn count_request(&self, caller: &Caller) -> Result<(), Reason> {
        let may_ask = self.requests.take(caller.user.clone(), self.clock.ticks());
        if may_ask { Ok(()) } else { Err(Reason::TooManyRequests) }
    }

    /// Does what a frame asks. Commands of one session are handled one after the other; a send
    /// has its place in the order when this returns, and its answer comes when it is durable.
    ///
    /// What is asked less often than a message is put aside while it lasts, since every waiting
    /// socket has room for the largest thing it may do.
    pub async fn handle(&self, session: &mut Session, command: Command) -> Result<Answer, Error> {
        Ok(Answer::Now(match command {
            Command::Send(outgoing) => {
                let caller = &session.caller;
                // Put aside while it lasts, as all that is large: else every idle socket had room for it.
                let sending = send::send(self, caller, outgoing, session.knows_accepted);
                return Ok(Answer::Later(Box::pin(sending).await?));
            }
            Command::Acknowledge(ack) => {
                read::acknowledge(self, &session.caller, &ack).await?;
                Reply::Quiet
            }
            Command::Recall { message } => {
                Reply::Recalled(Box::pin(recall::recall(self, &session.caller, message)).await?)
            }
            Command::Typing { to } => {
                Box::pin(presence::typing(self, &session.caller, to)).await?;
                Reply::Quiet
            }
            Command::Resend { cursors } => {
                let page = session.catchup.page(self, &session.caller, cursors);
                Reply::Resend(Box::pin(page).await?)
            }
            Command::Ask(query) => {
                Reply::Found(Box::pin(query::answer(self, session, query)).await?)
            }
            Command::Reauth { token } => {
                let renewed = auth::reauthenticate(self, &session.caller, &token);
                session.caller = Box::pin(renewed).await?;
                Reply::Authenticated(session.caller.clone())
            }
            Command::Ping => Reply::Pong,
            Command::Pong => Reply::Quiet,
        }))
    }
}
