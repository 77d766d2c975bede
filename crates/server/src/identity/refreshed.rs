//! A document of an identity provider, fetched when it is needed and kept while it is fresh.
//!
//! A provider that is away takes nothing from people who can be checked with what is known, and nothing that people
//! send makes this server ask the provider more often than the limits below.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nexo_chat::Error;
use nexo_chat::clock::Clock;
use nexo_chat::ids::Millis;
use reqwest::Client;

use super::http_client;
use crate::redact_url::without_password;

/// How long no further attempt is made: if something is known, and if nothing is.
const RETRY_MS: u64 = 30_000;
const FIRST_RETRY_MS: u64 = 2_000;

pub(crate) struct Refreshed<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    client: Client,
    clock: Arc<dyn Clock>,
    url: String,
    parse: fn(&[u8]) -> anyhow::Result<T>,
    /// How long a document counts as fresh.
    fresh_ms: u64,
    state: Mutex<State<T>>,
    /// Held by the one attempt that is under way.
    attempt: Arc<tokio::sync::Mutex<()>>,
}

struct State<T> {
    /// The newest document, and when it came.
    known: Option<(Arc<T>, Millis)>,
    tried_at: Option<Millis>,
}

impl<T: Send + Sync + 'static> Refreshed<T> {
    pub(crate) fn new(
        client: Client,
        clock: Arc<dyn Clock>,
        url: String,
        fresh_ms: u64,
        parse: fn(&[u8]) -> anyhow::Result<T>,
    ) -> Self {
        let state = Mutex::new(State { known: None, tried_at: None });
        let attempt = Arc::default();
        Self { shared: Arc::new(Shared { client, clock, url, parse, fresh_ms, state, attempt }) }
    }

    pub(crate) fn url(&self) -> &str {
        &self.shared.url
    }

    /// The newest document. It is fetched again if it is old, or if it is not enough for the caller, at most every
    /// 30 seconds. Whatever is known is returned then; fails only if nothing is.
    pub(crate) async fn get(&self, is_enough: impl Fn(&T) -> bool) -> Result<Arc<T>, Error> {
        let shared = &self.shared;
        if let Some(document) = shared.fresh(&is_enough) {
            return Ok(document);
        }
        let attempt = Arc::clone(&shared.attempt);
        let attempt = match shared.known().filter(|known| is_enough(known)) {
            // An old document is good enough while somebody else renews it.
            Some(known) => match attempt.try_lock_owned() {
                Ok(attempt) => attempt,
                Err(_) => return Ok(known),
            },
            None => attempt.lock_owned().await,
        };
        if let Some(document) = shared.fresh(&is_enough) {
            return Ok(document); // the attempt before this one brought it
        }
        if shared.may_try() {
            let shared = Arc::clone(shared);
            // In a task of its own: a client that hangs up must not use up the attempt.
            let fetching = tokio::spawn(async move {
                shared.fetch().await;
                drop(attempt);
            });
            if let Err(error) = fetching.await {
                tracing::error!(%error, "fetching from the identity provider ended early");
            }
        }
        let known = self.shared.known();
        known.ok_or_else(|| Error::Unavailable("the identity provider has not answered".into()))
    }
}

impl<T> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> Option<Arc<T>> {
        self.state().known.as_ref().map(|(document, _)| Arc::clone(document))
    }

    fn fresh(&self, is_enough: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let now = self.clock.ticks();
        let state = self.state();
        let (document, fetched_at) = state.known.as_ref()?;
        let is_fresh = now.since(*fetched_at) < self.fresh_ms && is_enough(document);
        is_fresh.then(|| Arc::clone(document))
    }

    fn may_try(&self) -> bool {
        let now = self.clock.ticks();
        let state = self.state();
        let wait_ms = if state.known.is_some() { RETRY_MS } else { FIRST_RETRY_MS };
        state.tried_at.is_none_or(|tried_at| now.since(tried_at) >= wait_ms)
    }

    async fn fetch(&self) {
        self.state().tried_at = Some(self.clock.ticks());
        let fetched = http_client::get(&self.client, &self.url).await;
        match fetched.and_then(|body| (self.parse)(&body)) {
            Ok(document) => {
                let known = (Arc::new(document), self.clock.ticks());
                self.state().known = Some(known);
            }
            Err(error) => {
                let url = without_password(&self.url);
                let error = crate::error_chain::describe(&error);
                tracing::warn!(url, error, "the identity provider's document cannot be fetched");
            }
        }
    }
}
