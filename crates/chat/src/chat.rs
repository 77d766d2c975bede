//! The domain in one value: it owns the contracts and the rules, and routes commands to the features.

use std::sync::Arc;

use crate::bus::Bus;
use crate::clock::{Clock, Rng};
use crate::command::{Command, HandleOutcome, Reply};
use crate::event::Event;
use crate::external_token::TokenVerifier;
use crate::ids::UserId;
use crate::keys::Keys;
use crate::login_throttle::LoginThrottle;
use crate::meters::Meters;
use crate::model::Caller;
use crate::oidc::OidcSignIn;
use crate::passwords::Passwords;
use crate::reason::{Error, Reason};
use crate::rules::Rules;
use crate::steady_time::SteadyTime;
use crate::store::Store;
use crate::strangers::KnownConversations;
use crate::sync::Catchup;
use crate::throttle::Throttle;
use crate::token::TokenKey;
use crate::two_phase::TwoPhase;
use crate::{auth, presence, query, read, recall, send};

/// More typing events than this per user are dropped.
const TYPINGS_PER_SECOND: u32 = 2;

/// What the features share.
pub struct Chat {
    pub store: Arc<dyn Store>,
    pub bus: Arc<dyn Bus>,
    pub clock: Arc<dyn Clock>,
    /// Accepts messages before they are saved, if two-phase acknowledgement is on.
    pub two_phase: Option<Arc<dyn TwoPhase>>,
    pub rng: Arc<dyn Rng>,
    pub passwords: Arc<dyn Passwords>,
    pub rules: Rules,
    pub key: TokenKey,
    /// How API keys are checked.
    pub(crate) keys: Keys,
    /// Accepts tokens of the app's identity provider, if it has one.
    pub token_verifier: Option<Arc<TokenVerifier>>,
    /// Lets people sign in through the browser with an `OpenID` Connect provider, if there is one.
    pub oidc: Option<Arc<OidcSignIn>>,
    pub(crate) send_throttle: Throttle<UserId>,
    request_throttle: Throttle<UserId>,
    pub(crate) typing_throttle: Throttle<UserId>,
    pub(crate) login_throttle: LoginThrottle,
    /// Private conversations that a user begins, and those that were counted.
    pub(crate) stranger_throttle: Throttle<UserId>,
    pub(crate) counted_strangers: KnownConversations,
    /// Groups that a user is put into by people they do not know.
    pub(crate) stranger_group_throttle: Throttle<UserId>,
    /// Conversations that have begun.
    pub(crate) begun: KnownConversations,
    /// When refresh tokens were rotated.
    pub(crate) steady_time: SteadyTime,
    pub(crate) meters: Meters,
    /// The name of this process in log lines.
    pub instance: Arc<str>,
}

/// The caller of one connection, and its progress in catching up.
#[derive(Debug)]
pub struct SessionState {
    pub caller: Caller,
    pub catchup: Catchup,
    /// Whether the client understands "accepted" as an acknowledgement before "saved".
    pub supports_two_phase: bool,
}

impl SessionState {
    pub fn new(caller: Caller, supports_two_phase: bool) -> Self {
        Self { caller, catchup: Catchup::default(), supports_two_phase }
    }
}

impl Chat {
    /// Connects the parts: commits of the store are published on the bus.
    pub fn new(
        store: Arc<dyn Store>,
        bus: Arc<dyn Bus>,
        clock: Arc<dyn Clock>,
        rng: Arc<dyn Rng>,
        passwords: Arc<dyn Passwords>,
        rules: Rules,
        key: TokenKey,
    ) -> Self {
        let publisher = Arc::clone(&bus);
        store.set_commit_listener(Arc::new(move |batch: &[Event]| publisher.publish_all(batch)));
        let send_throttle =
            Throttle::per_second(rules.user_sends_per_second, rules.user_sends_burst);
        let typing_throttle = Throttle::per_second(TYPINGS_PER_SECOND, 2 * TYPINGS_PER_SECOND);
        let request_throttle =
            Throttle::per_second(rules.user_requests_per_second, rules.user_requests_burst);
        let login_throttle = LoginThrottle::new(&rules);
        let stranger_throttle = Throttle::per_hour(rules.strangers_per_hour);
        let stranger_group_throttle = Throttle::per_hour(rules.groups.by_strangers_per_hour);
        let two_phase = None;
        Self {
            store,
            bus,
            clock,
            two_phase,
            rng,
            passwords,
            rules,
            key,
            keys: Keys::default(),
            token_verifier: None,
            oidc: None,
            send_throttle,
            request_throttle,
            typing_throttle,
            login_throttle,
            stranger_throttle,
            stranger_group_throttle,
            counted_strangers: KnownConversations::default(),
            begun: KnownConversations::default(),
            steady_time: SteadyTime::default(),
            meters: Meters::default(),
            instance: "".into(),
        }
    }

    /// Names this process, to tell the logs of several nodes apart.
    #[must_use]
    pub fn with_instance(self, instance: impl Into<Arc<str>>) -> Self {
        Self { instance: instance.into(), ..self }
    }

    /// Accepts these tokens beside the keys in the store.
    #[must_use]
    pub fn with_keys(self, keys: Keys) -> Self {
        Self { keys, ..self }
    }

    /// Acknowledges messages as soon as `two_phase` accepted them, to clients that support it.
    #[must_use]
    pub fn with_two_phase(self, two_phase: Arc<dyn TwoPhase>) -> Self {
        Self { two_phase: Some(two_phase), ..self }
    }

    /// Lets people sign in with tokens of the app's identity provider.
    #[must_use]
    pub fn with_token_verifier(self, verifier: Arc<TokenVerifier>) -> Self {
        Self { token_verifier: Some(verifier), ..self }
    }

    /// Lets people sign in through the browser.
    #[must_use]
    pub fn with_oidc(self, oidc: Arc<OidcSignIn>) -> Self {
        Self { oidc: Some(oidc), ..self }
    }

    /// Counts an HTTP request against the caller's rate limit.
    pub fn count_request(&self, caller: &Caller) -> Result<(), Reason> {
        let is_allowed = self.request_throttle.take(caller.user.clone(), self.clock.ticks());
        if is_allowed { Ok(()) } else { Err(Reason::TooManyRequests) }
    }

    /// Handles one command. A session handles its commands one after the other. When this returns, a
    /// send has its place in the order; its reply comes when the message is durable.
    ///
    /// The futures of large and rare commands are boxed: otherwise every idle session would carry the size
    /// of the largest one.
    pub async fn handle(
        &self,
        session: &mut SessionState,
        command: Command,
    ) -> Result<HandleOutcome, Error> {
        Ok(HandleOutcome::Ready(match command {
            Command::Send(outgoing) => {
                let caller = &session.caller;
                // Boxed: it is large, and every idle session would carry its size.
                let sending = send::send(self, caller, outgoing, session.supports_two_phase);
                return Ok(HandleOutcome::Pending(Box::pin(sending).await?));
            }
            Command::Acknowledge(ack) => {
                read::acknowledge(self, &session.caller, &ack).await?;
                Reply::Nothing
            }
            Command::Recall { message } => {
                Reply::Recalled(Box::pin(recall::recall(self, &session.caller, message)).await?)
            }
            Command::Typing { to } => {
                Box::pin(presence::typing(self, &session.caller, to)).await?;
                Reply::Nothing
            }
            Command::Resend { cursors } => {
                let page = session.catchup.next_page(self, &session.caller, cursors);
                Reply::Resend(Box::pin(page).await?)
            }
            Command::Query(query) => {
                Reply::QueryReply(Box::pin(query::answer(self, session, query)).await?)
            }
            Command::Reauth { token } => {
                let renewed = auth::reauthenticate(self, &session.caller, &token);
                session.caller = Box::pin(renewed).await?;
                Reply::Authenticated(session.caller.clone())
            }
            Command::Ping => Reply::Pong,
            Command::Pong => Reply::Nothing,
        }))
    }
}
