//! A circuit breaker: it knows whether Redis can be reached, so that no task waits for a Redis that
//! is away.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nexo_redis_link::{Pipeline, RedisLink, no_answer};
use redis::{RedisError, RedisResult, Value};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::meters::Meters;

/// The reason before the first attempt to connect.
const NOT_YET: &str = "not connected yet";

/// The connection for commands and the subscription, or why there is none.
struct BreakerState {
    link: Result<NumberedLink, Arc<str>>,
    subscription: Result<(), Arc<str>>,
}

/// A link with a number, so that the failure of an old link does not open the breaker of its
/// successor.
#[derive(Clone)]
pub(crate) struct NumberedLink {
    pub(crate) link: RedisLink,
    number: u64,
}

/// Closed while Redis answers: commands run. Open while it does not: they fail at once.
pub(crate) struct Breaker {
    state: watch::Sender<BreakerState>,
    next_number: AtomicU64,
    check_wanted: Notify,
    meters: Arc<Meters>,
}

impl Breaker {
    /// Starts open, until the first connection.
    pub(crate) fn new(meters: Arc<Meters>) -> Self {
        let why: Arc<str> = NOT_YET.into();
        let state = BreakerState { link: Err(Arc::clone(&why)), subscription: Err(why) };
        meters.up.set(0.0);
        let (next_number, check_wanted) = (AtomicU64::new(0), Notify::new());
        Self { state: watch::Sender::new(state), next_number, check_wanted, meters }
    }

    /// The link, or nothing while Redis is away.
    pub(crate) fn link(&self) -> Option<NumberedLink> {
        self.state.borrow().link.as_ref().ok().cloned()
    }

    /// Whether commands run.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.borrow().link.is_ok()
    }

    /// Why commands or the subscription do not work.
    pub(crate) fn health(&self) -> Result<(), String> {
        let state = self.state.borrow();
        let whole = state.link.as_ref().map(drop).and(state.subscription.as_ref().map(drop));
        whole.map_err(|why| format!("redis cannot be reached: {why}"))
    }

    /// Redis answers: commands run from now on.
    pub(crate) fn close(&self, link: RedisLink) {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        self.change(|state| {
            state.link = Ok(NumberedLink { link, number });
            true
        });
        tracing::info!(target: "nexo::bus", "redis can be reached");
    }

    /// Redis cannot be reached: commands fail at once from now on.
    pub(crate) fn open(&self, why: &str) {
        if self.open_if(why, |_| true) {
            tracing::warn!(target: "nexo::bus", why, "redis cannot be reached");
        }
    }

    /// Opens the breaker for good without a warning: this node leaves.
    pub(crate) fn leave(&self) {
        self.open_if("this node has left", |_| true);
    }

    /// Opens the breaker if the link with this number, which failed, is still the current one.
    fn trip(&self, number: u64, why: &str) {
        if self.open_if(why, |numbered| numbered.number == number) {
            tracing::warn!(target: "nexo::bus", why, "the link to redis broke");
        }
    }

    /// Returns whether the breaker was closed until now, or this was the first attempt: only that
    /// is logged.
    fn open_if(&self, why: &str, is_current: impl FnOnce(&NumberedLink) -> bool) -> bool {
        let mut is_news = false;
        self.change(|state| {
            let is_current = state.link.as_ref().map_or(true, is_current);
            if is_current {
                is_news = state.link.as_ref().map_or_else(|why| &**why == NOT_YET, |_| true);
                state.link = Err(why.into());
            }
            is_current
        });
        is_news
    }

    /// Records whether the subscription works.
    pub(crate) fn set_subscription(&self, subscription: Result<(), &str>) {
        let mut is_news = false;
        self.change(|state| {
            let is_first = state.subscription.as_ref().err().is_some_and(|why| &**why == NOT_YET);
            is_news = is_first || state.subscription.is_ok() != subscription.is_ok();
            state.subscription = subscription.map_err(Into::into);
            true
        });
        match subscription {
            Ok(()) if is_news => tracing::info!(target: "nexo::bus", "the subscription works"),
            Err(why) if is_news => {
                tracing::warn!(target: "nexo::bus", why, "the subscription does not work");
            }
            _ => {}
        }
    }

    fn change(&self, change: impl FnOnce(&mut BreakerState) -> bool) {
        self.state.send_if_modified(|state| {
            let is_changed = change(state);
            let is_up = state.link.is_ok() && state.subscription.is_ok();
            self.meters.up.set(if is_up { 1.0 } else { 0.0 });
            is_changed
        });
    }

    /// A command failed for an unclear reason: the heartbeat should check the connection now.
    pub(crate) fn request_check(&self) {
        self.check_wanted.notify_one();
    }

    pub(crate) async fn check_requested(&self) {
        self.check_wanted.notified().await;
    }

    /// Waits until commands no longer run.
    pub(crate) async fn wait_open(&self) {
        self.wait_until(|state| state.link.is_err()).await;
    }

    /// Waits until commands and the subscription work.
    pub(crate) async fn wait_healthy(&self) {
        self.wait_until(|state| state.link.is_ok() && state.subscription.is_ok()).await;
    }

    async fn wait_until(&self, is_so: impl FnMut(&BreakerState) -> bool) {
        if self.state.subscribe().wait_for(is_so).await.is_err() {
            pending::<()>().await; // The sender is in `self`: this cannot happen.
        }
    }

    /// Runs a pipeline, or nothing while Redis is away. If no answer comes within `limit`, the
    /// breaker opens.
    pub(crate) async fn run(&self, pipeline: Pipeline, limit: Duration) -> Option<Vec<Value>> {
        if pipeline.is_empty() {
            return Some(Vec::new());
        }
        let answers = self.query(limit, async |link| link.run(pipeline).await).await?;
        if let Some(Value::ServerError(error)) =
            answers.iter().find(|answer| matches!(answer, Value::ServerError(_)))
        {
            // Perhaps Redis refuses this key only. The heartbeat finds out whether it refuses
            // everything.
            tracing::debug!(target: "nexo::bus", code = error.code(), "redis refused a command");
            self.request_check();
        }
        Some(answers)
    }

    /// The same for any other use of the link.
    pub(crate) async fn query<T>(
        &self,
        limit: Duration,
        act: impl AsyncFnOnce(&mut RedisLink) -> RedisResult<T>,
    ) -> Option<T> {
        let NumberedLink { mut link, number } = self.link()?;
        match timeout(limit, act(&mut link)).await {
            Ok(Ok(answer)) => return Some(answer),
            Ok(Err(error)) if is_refusal(&error) => self.request_check(),
            Ok(Err(error)) => self.trip(number, &error.to_string()),
            Err(_) => self.trip(number, &no_answer(limit)),
        }
        None
    }

    /// Gives several steps a common time limit.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        steps: impl Future<Output = Option<T>>,
    ) -> Option<T> {
        let NumberedLink { number, .. } = self.link()?;
        let Ok(done) = timeout(limit, steps).await else {
            self.trip(number, &no_answer(limit));
            return None;
        };
        done
    }
}

/// Whether Redis works and refused only this command.
fn is_refusal(error: &RedisError) -> bool {
    error.code().is_some() && !error.is_cluster_error()
}
