//! The sign-in of this device.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::clock::wall_ms;
use crate::error::Error;
use crate::http::{ApiRequest, Http, Reply};
use crate::jobs::Jobs;
use crate::reason::Reason;
use crate::storage::BestEffortStore;
use crate::timing::{Timing, ms};

const KEY: &str = "session";
/// A year: longer lifetimes are capped, so that sums cannot overflow.
const LIFE_MS_MAX: u64 = 365 * 24 * 3_600_000;

/// The answer to a login or refresh.
#[derive(Deserialize)]
pub(crate) struct Grant {
    token: String,
    refresh_token: String,
    expires_in: u64,
    user_info: GrantUser,
}

#[derive(Deserialize)]
struct GrantUser {
    user_id: String,
}

/// Tokens that the app's backend obtained, as the server answered it.
#[derive(Clone, Deserialize)]
pub struct LoginTokens {
    pub user_id: String,
    pub token: String,
    pub refresh_token: String,
    /// How long `token` is valid, in seconds from now.
    pub expires_in: u64,
}

/// Without the tokens: what is logged must not sign anybody in.
impl std::fmt::Debug for LoginTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginTokens").field("user_id", &self.user_id).finish_non_exhaustive()
    }
}

impl From<LoginTokens> for Grant {
    fn from(tokens: LoginTokens) -> Self {
        let LoginTokens { user_id, token, refresh_token, expires_in } = tokens;
        Self { token, refresh_token, expires_in, user_info: GrantUser { user_id } }
    }
}

/// A sign-in as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    user_id: String,
    token: String,
    refresh_token: String,
    /// By the clock of this device.
    expires_at: u64,
    life_ms: u64,
}

impl From<Grant> for Tokens {
    fn from(grant: Grant) -> Self {
        let life_ms = grant.expires_in.saturating_mul(1000).min(LIFE_MS_MAX);
        Self {
            user_id: grant.user_info.user_id,
            token: grant.token,
            refresh_token: grant.refresh_token,
            expires_at: wall_ms() + life_ms,
            life_ms,
        }
    }
}

/// The sign-in of this device: refreshes its tokens, one refresh at a time.
#[derive(Clone)]
pub(crate) struct SignIn(Arc<SignInInner>);

struct SignInInner {
    tokens: Mutex<Option<Tokens>>,
    /// The refresh token of a kicked sign-in. It stays in the store for other clients that share
    /// it, and `resume` ignores it here.
    kicked_refresh_token: Mutex<Option<String>>,
    /// Locked during a refresh: concurrent calls wait for its result.
    renewing: tokio::sync::Mutex<()>,
    refresh_timeout: Duration,
    http: Http,
    store: BestEffortStore,
    jobs: Jobs,
}

impl SignIn {
    pub(crate) fn new(http: Http, timing: &Timing, store: BestEffortStore, jobs: Jobs) -> Self {
        let (tokens, kicked) = (Mutex::default(), Mutex::default());
        let renewing = tokio::sync::Mutex::default();
        let patience = ms(timing.refresh_timeout_ms);
        Self(Arc::new(SignInInner {
            tokens,
            kicked_refresh_token: kicked,
            renewing,
            refresh_timeout: patience,
            http,
            store,
            jobs,
        }))
    }

    pub(crate) fn user_id(&self) -> Option<String> {
        self.tokens().as_ref().map(|tokens| tokens.user_id.clone())
    }

    /// Loads the stored sign-in of an earlier run, unless it was kicked here.
    pub(crate) fn resume(&self) -> bool {
        let kicked = self.kicked_refresh_token().clone();
        let stored: Option<Tokens> = self.0.store.get(KEY);
        let stored = stored.filter(|stored| kicked.as_ref() != Some(&stored.refresh_token));
        let found = stored.is_some();
        if found {
            *self.tokens() = stored;
        }
        found
    }

    pub(crate) fn take(&self, grant: Grant) {
        self.save(&mut self.tokens(), grant.into());
    }

    fn save(&self, tokens: &mut Option<Tokens>, fresh: Tokens) {
        self.0.store.set(KEY, &fresh);
        *tokens = Some(fresh);
    }

    /// Sends a request with a token; if that has expired, once more with a new one.
    pub(crate) async fn fetch<T: DeserializeOwned>(&self, ask: ApiRequest) -> Result<T, Error> {
        Ok(self.fetch_reply(&ask).await?.data)
    }

    /// The same, with the whole envelope.
    pub(crate) async fn fetch_reply<T: DeserializeOwned>(
        &self,
        ask: &ApiRequest,
    ) -> Result<Reply<T>, Error> {
        let who = self.user_id();
        let token = self.token().await?;
        let error = match self.0.http.fetch_reply(ask, Some(&token)).await {
            Err(Error::Refused(refused)) if refused.concerns_sign_in() => refused,
            answer => return answer,
        };
        if error.reason == Reason::TokenExpired {
            let token = self.renew(&token).await?;
            // Another user may have signed in meanwhile: the request must not run under that
            // account.
            if self.user_id() != who {
                return Err(Error::Closed);
            }
            return self.0.http.fetch_reply(ask, Some(&token)).await;
        }
        if error.reason.ends_session() {
            self.end_if_current(&token, error.reason);
        }
        Err(Error::Refused(error))
    }

    /// A token that has not expired by our clock.
    pub(crate) async fn token(&self) -> Result<String, Error> {
        let tokens = self.tokens().clone().ok_or(Error::refused(Reason::MissingToken))?;
        if wall_ms() < tokens.expires_at {
            return Ok(tokens.token);
        }
        self.renew(&tokens.token).await
    }

    /// Returns a token other than this one.
    pub(crate) async fn renew(&self, stale: &str) -> Result<String, Error> {
        let (sign_in, stale) = (self.clone(), stale.to_owned());
        // Spawned, so that the answer is stored even if the caller stops waiting: it holds the next
        // refresh token.
        let renewing = tokio::spawn(async move { sign_in.renew_now(&stale).await });
        renewing.await.map_err(|_| Error::Closed)?
    }

    async fn renew_now(&self, stale: &str) -> Result<String, Error> {
        let _one_at_a_time = self.0.renewing.lock().await;
        let used = self.tokens().clone().ok_or(Error::refused(Reason::MissingToken))?;
        if used.token != stale {
            return Ok(used.token);
        }
        // Another client with the same store may have refreshed already, or may do so during the
        // request.
        let fresh = match self.newer_stored(&used) {
            Some(stored) if wall_ms() < stored.expires_at => stored,
            stored => self.refresh(&used, stored.as_ref().unwrap_or(&used)).await?,
        };
        self.replace(&used, fresh)
    }

    /// Requests new tokens with the refresh token of `last`, for the sign-in that `used` belongs
    /// to.
    async fn refresh(&self, used: &Tokens, last: &Tokens) -> Result<Tokens, Error> {
        let body = json!({ "refresh_token": last.refresh_token });
        let ask = ApiRequest::post("/auth/refresh", body).with_timeout(self.0.refresh_timeout);
        match self.0.http.fetch::<Grant>(&ask, None).await {
            Ok(grant) => Ok(grant.into()),
            Err(error) => match error.reason() {
                Some(reason @ (Reason::InvalidRefreshToken | Reason::AccountDisabled)) => {
                    self.newer_stored(last).ok_or_else(|| {
                        self.end_if_current(&used.token, reason);
                        error
                    })
                }
                _ => Err(error),
            },
        }
    }

    /// Switches to newer tokens, unless the user signed in or out during the request.
    fn replace(&self, used: &Tokens, fresh: Tokens) -> Result<String, Error> {
        let mut tokens = self.tokens();
        if tokens.as_ref().is_none_or(|tokens| tokens.token != used.token) {
            return Err(Error::Closed);
        }
        let token = fresh.token.clone();
        self.save(&mut tokens, fresh);
        let renewed = token.clone();
        self.0.jobs.put(move |core| {
            if core.sign_in.is_current(&renewed) {
                core.on_token_renewed(&renewed);
            }
        });
        Ok(token)
    }

    /// Ends the sign-in; without a reason it is a logout.
    pub(crate) fn end(&self, reason: Option<Reason>) {
        self.forget(&mut self.tokens(), reason);
    }

    fn forget(&self, tokens: &mut Option<Tokens>, reason: Option<Reason>) {
        let Some(ended) = tokens.take() else { return };
        if reason == Some(Reason::Kicked) {
            // Other clients that share the store may stay signed in. If the sign-in has ended for
            // all, the server refuses a client that resumes it.
            *self.kicked_refresh_token() = Some(ended.refresh_token);
            return;
        }
        let stored: Option<Tokens> = self.0.store.get(KEY);
        if stored.is_some_and(|stored| stored.refresh_token == ended.refresh_token) {
            self.0.store.delete(KEY);
        }
    }

    /// Ends the sign-in if this is its token; an earlier token says nothing about the current one.
    fn end_if_current(&self, token: &str, reason: Reason) {
        let mut tokens = self.tokens();
        if tokens.as_ref().is_none_or(|tokens| tokens.token != token) {
            return;
        }
        self.forget(&mut tokens, Some(reason));
        self.0.jobs.put(move |core| {
            // The user may have signed in again before this job runs.
            if core.sign_in.user_id().is_none() {
                core.on_session_ended(reason);
            }
        });
    }

    /// How long until the token should be refreshed, and the token.
    pub(crate) fn next_renewal(&self) -> Option<(Duration, String)> {
        let tokens = self.tokens();
        let tokens = tokens.as_ref()?;
        // The server counts in whole seconds, so a token may expire a second early.
        let margin = (1000 + tokens.life_ms / 5).min(60_000);
        let left = tokens.expires_at.saturating_sub(margin).saturating_sub(wall_ms());
        Some((Duration::from_millis(left), tokens.token.clone()))
    }

    /// Whether this is the current token.
    pub(crate) fn is_current(&self, token: &str) -> bool {
        self.tokens().as_ref().is_some_and(|tokens| tokens.token == token)
    }

    /// Newer tokens of the same user in the store, from another client that shares it.
    fn newer_stored(&self, than: &Tokens) -> Option<Tokens> {
        let stored: Tokens = self.0.store.get(KEY)?;
        let is_newer = stored.user_id == than.user_id && stored.refresh_token != than.refresh_token;
        is_newer.then_some(stored)
    }

    fn kicked_refresh_token(&self) -> MutexGuard<'_, Option<String>> {
        self.0.kicked_refresh_token.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tokens(&self) -> MutexGuard<'_, Option<Tokens>> {
        self.0.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
