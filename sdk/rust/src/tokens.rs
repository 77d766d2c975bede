//! The sign-in of this device.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::chance::wall_ms;
use crate::error::Error;
use crate::http::{Ask, Http};
use crate::jobs::Jobs;
use crate::reason::Reason;
use crate::storage::Keeper;

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

/// The sign-in of this device: keeps its tokens fresh, one refresh at a time.
#[derive(Clone)]
pub(crate) struct SignIn(Arc<Inner>);

struct Inner {
    tokens: Mutex<Option<Tokens>>,
    /// Held while a refresh is on its way: whoever asks meanwhile waits for the same answer.
    renewing: tokio::sync::Mutex<()>,
    http: Http,
    store: Keeper,
    jobs: Jobs,
}

impl SignIn {
    pub(crate) fn new(http: Http, store: Keeper, jobs: Jobs) -> Self {
        let (tokens, renewing) = (Mutex::default(), tokio::sync::Mutex::default());
        Self(Arc::new(Inner { tokens, renewing, http, store, jobs }))
    }

    pub(crate) fn user_id(&self) -> Option<String> {
        self.tokens().as_ref().map(|tokens| tokens.user_id.clone())
    }

    /// Takes the sign-in of an earlier run, if there is one.
    pub(crate) fn resume(&self) -> bool {
        let kept: Option<Tokens> = self.0.store.get(KEY);
        let found = kept.is_some();
        if found {
            *self.tokens() = kept;
        }
        found
    }

    pub(crate) fn take(&self, grant: Grant) -> String {
        let life_ms = grant.expires_in.saturating_mul(1000).min(LIFE_MS_MAX);
        let tokens = Tokens {
            user_id: grant.user_info.user_id,
            token: grant.token.clone(),
            refresh_token: grant.refresh_token,
            expires_at: wall_ms() + life_ms,
            life_ms,
        };
        self.0.store.set(KEY, &tokens);
        *self.tokens() = Some(tokens);
        grant.token
    }

    /// Asks with a token; if that one is too old, once more with a newer one.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, ask: Ask) -> Result<T, Error> {
        let token = self.token().await?;
        let error = match self.0.http.ask(&ask, Some(&token)).await {
            Err(Error::Refused(refused)) if refused.status == Some(401) => refused,
            answer => return answer,
        };
        if error.reason == Reason::TokenExpired {
            let token = self.renew(&token).await?;
            return self.0.http.ask(&ask, Some(&token)).await;
        }
        // A late answer about an earlier sign-in says nothing about this one.
        if error.reason.ends_session() && self.is_current(&token) {
            self.end(Some(error.reason));
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
        let _one_at_a_time = self.0.renewing.lock().await;
        let used = self.tokens().clone().ok_or(Error::refused(Reason::MissingToken))?;
        if used.token != stale {
            return Ok(used.token);
        }
        let ask = Ask::post("/auth/refresh", json!({ "refresh_token": used.refresh_token }));
        let token = match self.0.http.ask(&ask, None).await {
            Ok(grant) => self.take(grant),
            Err(error) if error.reason() == Some(Reason::InvalidRefreshToken) => {
                self.take_from_another(&used).ok_or_else(|| {
                    self.end(error.reason());
                    error
                })?
            }
            Err(error) => return Err(error),
        };
        let renewed = token.clone();
        self.0.jobs.put(move |core| core.renewed(&renewed));
        Ok(token)
    }

    /// Forgets the sign-in, and tells why unless it was our own wish.
    pub(crate) fn end(&self, reason: Option<Reason>) {
        if self.tokens().take().is_none() {
            return;
        }
        self.0.store.delete(KEY);
        if let Some(reason) = reason {
            self.0.jobs.put(move |core| core.ended(reason));
        }
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

    fn is_current(&self, token: &str) -> bool {
        self.tokens().as_ref().is_some_and(|tokens| tokens.token == token)
    }

    /// Another client with the same store may have been first.
    fn take_from_another(&self, used: &Tokens) -> Option<String> {
        let kept: Tokens = self.0.store.get(KEY)?;
        if kept.refresh_token == used.refresh_token {
            return None;
        }
        let token = kept.token.clone();
        *self.tokens() = Some(kept);
        Some(token)
    }

    fn tokens(&self) -> MutexGuard<'_, Option<Tokens>> {
        self.0.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
