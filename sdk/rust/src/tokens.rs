//! The sign-in of this device.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::chance::wall_ms;
use crate::error::Error;
use crate::http::{Ask, Http, Reply};
use crate::jobs::Jobs;
use crate::reason::Reason;
use crate::storage::Keeper;
use crate::timing::{Timing, ms};

const KEY: &str = "session";
/// A year: longer ones are renewed all the same, and sums stay small.
const LIFE_MS_MAX: u64 = 365 * 24 * 3_600_000;

/// What signing in gives.
#[derive(Deserialize)]
pub(crate) struct Grant {
    token: String,
    refresh_token: String,
    expires_in: u64,
    user_info: Who,
}

#[derive(Deserialize)]
struct Who {
    user_id: String,
}

/// A sign-in as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    user_id: String,
    token: String,
    refresh_token: String,
    /// By our own clock.
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

/// The sign-in of this device: keeps its tokens fresh, one refresh at a time.
#[derive(Clone)]
pub(crate) struct SignIn(Arc<Inner>);

struct Inner {
    tokens: Mutex<Option<Tokens>>,
    /// The refresh token of a sign-in from which we were kicked. It may still be in the store, and does
    /// not come back from there by itself.
    kicked: Mutex<Option<String>>,
    /// Held while a refresh is on its way: whoever asks meanwhile waits for the same answer.
    renewing: tokio::sync::Mutex<()>,
    /// How long a refresh may take.
    patience: Duration,
    http: Http,
    store: Keeper,
    jobs: Jobs,
}

impl SignIn {
    pub(crate) fn new(http: Http, timing: &Timing, store: Keeper, jobs: Jobs) -> Self {
        let (tokens, kicked) = (Mutex::default(), Mutex::default());
        let renewing = tokio::sync::Mutex::default();
        let patience = ms(timing.refresh_timeout_ms);
        Self(Arc::new(Inner { tokens, kicked, renewing, patience, http, store, jobs }))
    }

    pub(crate) fn user_id(&self) -> Option<String> {
        self.tokens().as_ref().map(|tokens| tokens.user_id.clone())
    }

    /// Takes the sign-in of an earlier run, if there is one that has not ended here.
    pub(crate) fn resume(&self) -> bool {
        let kicked = self.kicked().clone();
        let kept: Option<Tokens> = self.0.store.get(KEY);
        let kept = kept.filter(|kept| kicked.as_ref() != Some(&kept.refresh_token));
        let found = kept.is_some();
        if found {
            *self.tokens() = kept;
        }
        found
    }

    pub(crate) fn take(&self, grant: Grant) {
        self.hold(&mut self.tokens(), grant.into());
    }

    fn hold(&self, tokens: &mut Option<Tokens>, fresh: Tokens) {
        self.0.store.set(KEY, &fresh);
        *tokens = Some(fresh);
    }

    /// Asks with a token; if that one is too old, once more with a newer one.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, ask: Ask) -> Result<T, Error> {
        Ok(self.reply(&ask).await?.data)
    }

    /// The same, with all that the server says about it.
    pub(crate) async fn reply<T: DeserializeOwned>(&self, ask: &Ask) -> Result<Reply<T>, Error> {
        let who = self.user_id();
        let token = self.token().await?;
        let error = match self.0.http.reply(ask, Some(&token)).await {
            Err(Error::Refused(refused)) if refused.status == Some(401) => refused,
            answer => return answer,
        };
        if error.reason == Reason::TokenExpired {
            let token = self.renew(&token).await?;
            // What one person asked for is not done in the name of the next.
            if self.user_id() != who {
                return Err(Error::Closed);
            }
            return self.0.http.reply(ask, Some(&token)).await;
        }
        if error.reason.ends_session() {
            self.end_of(&token, error.reason);
        }
        Err(Error::Refused(error))
    }

    /// A token that is good as far as we know.
    pub(crate) async fn token(&self) -> Result<String, Error> {
        let tokens = self.tokens().clone().ok_or(Error::refused(Reason::MissingToken))?;
        if wall_ms() < tokens.expires_at {
            return Ok(tokens.token);
        }
        self.renew(&tokens.token).await
    }

    /// A token other than this one.
    pub(crate) async fn renew(&self, stale: &str) -> Result<String, Error> {
        let (sign_in, stale) = (self.clone(), stale.to_owned());
        // Whoever wants it may stop waiting; its answer is heard all the same, or it would be lost.
        let renewing = tokio::spawn(async move { sign_in.renew_now(&stale).await });
        renewing.await.map_err(|_| Error::Closed)?
    }

    async fn renew_now(&self, stale: &str) -> Result<String, Error> {
        let _one_at_a_time = self.0.renewing.lock().await;
        let used = self.tokens().clone().ok_or(Error::refused(Reason::MissingToken))?;
        if used.token != stale {
            return Ok(used.token);
        }
        // Another client with the same store may have been first, or be while we ask.
        let fresh = match self.newer(&used) {
            Some(kept) if wall_ms() < kept.expires_at => kept,
            kept => self.refresh(&used, kept.as_ref().unwrap_or(&used)).await?,
        };
        self.replace(&used, fresh)
    }

    /// Asks for the tokens after the `last` ones there are of the sign-in that `used` is of.
    async fn refresh(&self, used: &Tokens, last: &Tokens) -> Result<Tokens, Error> {
        let body = json!({ "refresh_token": last.refresh_token });
        let ask = Ask::post("/auth/refresh", body).within(self.0.patience);
        match self.0.http.ask::<Grant>(&ask, None).await {
            Ok(grant) => Ok(grant.into()),
            Err(error) if error.reason() == Some(Reason::InvalidRefreshToken) => {
                self.newer(last).ok_or_else(|| {
                    self.end_of(&used.token, Reason::InvalidRefreshToken);
                    error
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Goes on with newer tokens, unless somebody signed in or out while we asked for them.
    fn replace(&self, used: &Tokens, fresh: Tokens) -> Result<String, Error> {
        let mut tokens = self.tokens();
        if tokens.as_ref().is_none_or(|tokens| tokens.token != used.token) {
            return Err(Error::Closed);
        }
        let token = fresh.token.clone();
        self.hold(&mut tokens, fresh);
        let renewed = token.clone();
        self.0.jobs.put(move |core| {
            if core.sign_in.is_current(&renewed) {
                core.renewed(&renewed);
            }
        });
        Ok(token)
    }

    /// Forgets the sign-in, for this reason unless it is our own wish.
    pub(crate) fn end(&self, reason: Option<Reason>) {
        self.forget(&mut self.tokens(), reason);
    }

    fn forget(&self, tokens: &mut Option<Tokens>, reason: Option<Reason>) {
        let Some(ended) = tokens.take() else { return };
        if reason == Some(Reason::Kicked) {
            // Others who share the store may be the ones who stay. If none does, the server says so
            // to whoever takes it from there.
            *self.kicked() = Some(ended.refresh_token);
            return;
        }
        let kept: Option<Tokens> = self.0.store.get(KEY);
        if kept.is_some_and(|kept| kept.refresh_token == ended.refresh_token) {
            self.0.store.delete(KEY);
        }
    }

    /// The server ended the sign-in of this token. If that is an earlier one it says nothing about
    /// the one we have.
    fn end_of(&self, token: &str, reason: Reason) {
        let mut tokens = self.tokens();
        if tokens.as_ref().is_none_or(|tokens| tokens.token != token) {
            return;
        }
        self.forget(&mut tokens, Some(reason));
        self.0.jobs.put(move |core| {
            // Somebody may have signed in before we came to it.
            if core.sign_in.user_id().is_none() {
                core.ended(reason);
            }
        });
    }

    /// How long until the token should be renewed, and which one that is.
    pub(crate) fn plan(&self) -> Option<(Duration, String)> {
        let tokens = self.tokens();
        let tokens = tokens.as_ref()?;
        // The server counts in whole seconds, so a token may die one earlier than it says.
        let margin = (1000 + tokens.life_ms / 5).min(60_000);
        let left = tokens.expires_at.saturating_sub(margin).saturating_sub(wall_ms());
        Some((Duration::from_millis(left), tokens.token.clone()))
    }

    /// Whether this is the token of the sign-in we have.
    pub(crate) fn is_current(&self, token: &str) -> bool {
        self.tokens().as_ref().is_some_and(|tokens| tokens.token == token)
    }

    /// What another client with the same store has put there instead of these, of the same person.
    fn newer(&self, than: &Tokens) -> Option<Tokens> {
        let kept: Tokens = self.0.store.get(KEY)?;
        let is_newer = kept.user_id == than.user_id && kept.refresh_token != than.refresh_token;
        is_newer.then_some(kept)
    }

    fn kicked(&self) -> MutexGuard<'_, Option<String>> {
        self.0.kicked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tokens(&self) -> MutexGuard<'_, Option<Tokens>> {
        self.0.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
