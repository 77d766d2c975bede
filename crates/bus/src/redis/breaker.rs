//! Whether Redis can be reached, known before anybody asks: while it is away, nobody waits for it.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::{RedisError, RedisResult, Value};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::link::{Link, Lot};
use super::meters::Meters;

/// Why nothing flows before the first try.
const NOT_YET: &str = "not connected yet";

/// What is known. The link is for what we say, the ear for what others say.
struct State {
    link: Result<Joined, Arc<str>>,
    ear: Result<(), Arc<str>>,
}

/// A link and its number, so that the failure of an old one is not held against its successor.
#[derive(Clone)]
pub(crate) struct Joined {
    pub(crate) link: Link,
    number: u64,
}

/// Lets commands through while Redis answers, and nothing once it does not.
pub(crate) struct Breaker {
    state: watch::Sender<State>,
    next: AtomicU64,
    doubt: Notify,
    meters: Arc<Meters>,
}

impl Breaker {
    /// Open until the first connection is there.
    pub(crate) fn new(meters: Arc<Meters>) -> Self {
        let why: Arc<str> = NOT_YET.into();
        let state = State { link: Err(Arc::clone(&why)), ear: Err(why) };
        meters.up.set(0.0);
        let (next, doubt) = (AtomicU64::new(0), Notify::new());
        Self { state: watch::Sender::new(state), next, doubt, meters }
    }

    /// The link, or nothing while Redis is away.
    pub(crate) fn link(&self) -> Option<Joined> {
        self.state.borrow().link.as_ref().ok().cloned()
    }

    /// Whether others can be told.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.borrow().link.is_ok()
    }

    /// Why others cannot be told, or not be heard.
    pub(crate) fn health(&self) -> Result<(), String> {
        let state = self.state.borrow();
        let whole = state.link.as_ref().map(drop).and(state.ear.as_ref().map(drop));
        whole.map_err(|why| format!("redis cannot be reached: {why}"))
    }

    /// Redis answers: commands flow.
    pub(crate) fn close(&self, link: Link) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.change(|state| {
            state.link = Ok(Joined { link, number });
            true
        });
        tracing::info!(target: "nexo::bus", "redis can be reached");
    }

    /// Redis could not be reached.
    pub(crate) fn open(&self, why: &str) {
        if self.open_if(why, |_| true) {
            tracing::warn!(target: "nexo::bus", why, "redis cannot be reached");
        }
    }

    /// This node leaves: nothing is wrong.
    pub(crate) fn leave(&self) {
        self.open_if("this node has left", |_| true);
    }

    /// This link failed.
    fn trip(&self, number: u64, why: &str) {
        if self.open_if(why, |joined| joined.number == number) {
            tracing::warn!(target: "nexo::bus", why, "the link to redis broke");
        }
    }

    /// Tells whether that is news: commands flowed until now, or this was the first try.
    fn open_if(&self, why: &str, is_meant: impl FnOnce(&Joined) -> bool) -> bool {
        let mut is_news = false;
        self.change(|state| {
            let is_meant = state.link.as_ref().map_or(true, is_meant);
            if is_meant {
                is_news = state.link.as_ref().map_or_else(|why| &**why == NOT_YET, |_| true);
                state.link = Err(why.into());
            }
            is_meant
        });
        is_news
    }

    /// Others are heard, or not.
    pub(crate) fn hears(&self, ear: Result<(), &str>) {
        let mut is_news = false;
        self.change(|state| {
            let is_first = state.ear.as_ref().err().is_some_and(|why| &**why == NOT_YET);
            is_news = is_first || state.ear.is_ok() != ear.is_ok();
            state.ear = ear.map_err(Into::into);
            true
        });
        match ear {
            Ok(()) if is_news => tracing::info!(target: "nexo::bus", "other nodes are heard"),
            Err(why) if is_news => {
                tracing::warn!(target: "nexo::bus", why, "other nodes are not heard");
            }
            _ => {}
        }
    }

    fn change(&self, change: impl FnOnce(&mut State) -> bool) {
        self.state.send_if_modified(|state| {
            let is_changed = change(state);
            let is_up = state.link.is_ok() && state.ear.is_ok();
            self.meters.up.set(if is_up { 1.0 } else { 0.0 });
            is_changed
        });
    }

    /// Something is odd: the keeper should look now.
    pub(crate) fn doubt(&self) {
        self.doubt.notify_one();
    }

    /// Somebody doubts.
    pub(crate) async fn doubted(&self) {
        self.doubt.notified().await;
    }

    /// Waits until the link is gone.
    pub(crate) async fn opened(&self) {
        self.until(|state| state.link.is_err()).await;
    }

    /// Waits until others are told and heard.
    pub(crate) async fn whole(&self) {
        self.until(|state| state.link.is_ok() && state.ear.is_ok()).await;
    }

    async fn until(&self, is_so: impl FnMut(&State) -> bool) {
        if self.state.subscribe().wait_for(is_so).await.is_err() {
            pending::<()>().await; // The sender is `self`: it cannot be gone.
        }
    }

    /// Does a lot of commands, or nothing while Redis is away. No answer in time opens the breaker.
    pub(crate) async fn run(&self, lot: Lot, limit: Duration) -> Option<Vec<Value>> {
        if lot.is_empty() {
            return Some(Vec::new());
        }
        let answers = self.ask(limit, async |link| link.run(lot).await).await?;
        if let Some(Value::ServerError(error)) =
            answers.iter().find(|answer| matches!(answer, Value::ServerError(_)))
        {
            // Perhaps only this key is odd; the next heartbeat, now, tells whether all are.
            tracing::debug!(target: "nexo::bus", code = error.code(), "redis refused a command");
            self.doubt();
        }
        Some(answers)
    }

    /// The same for anything else one can ask.
    pub(crate) async fn ask<T>(
        &self,
        limit: Duration,
        act: impl AsyncFnOnce(&mut Link) -> RedisResult<T>,
    ) -> Option<T> {
        let Joined { mut link, number } = self.link()?;
        match timeout(limit, act(&mut link)).await {
            Ok(Ok(answer)) => return Some(answer),
            Ok(Err(error)) if is_refusal(&error) => self.doubt(),
            Ok(Err(error)) => self.trip(number, &error.to_string()),
            Err(_) => self.trip(number, &no_answer(limit)),
        }
        None
    }

    /// Gives several steps one limit together.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        steps: impl Future<Output = Option<T>>,
    ) -> Option<T> {
        let Joined { number, .. } = self.link()?;
        let Ok(done) = timeout(limit, steps).await else {
            self.trip(number, &no_answer(limit));
            return None;
        };
        done
    }
}

/// Whether Redis is well and only would not do this.
fn is_refusal(error: &RedisError) -> bool {
    error.code().is_some() && !error.is_cluster_error()
}

/// What a wait that was in vain is called.
pub(crate) fn no_answer(limit: Duration) -> String {
    format!("no answer in {} ms", limit.as_millis())
}
