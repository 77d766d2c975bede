//! The connection for commands. While Redis is away, callers get an error at once and do not wait.

use std::sync::Arc;
use std::time::Duration;

use nexo_redis_link::{Pipeline, RedisLink, answer_within};
use redis::{Cmd, Value};
use tokio::sync::watch;

use crate::log::LogUnavailable;

/// A link, or why there is none.
pub(super) struct LogConnection {
    link: watch::Sender<Result<RedisLink, Arc<str>>>,
    limit: Duration,
}

impl LogConnection {
    pub(super) fn new(limit: Duration) -> Self {
        Self { link: watch::Sender::new(Err("not connected yet".into())), limit }
    }

    pub(super) fn set_connected(&self, link: RedisLink) {
        drop(self.link.send_replace(Ok(link)));
        tracing::info!(target: "nexo::two_phase", "the log of accepted messages can be reached");
    }

    pub(super) fn set_disconnected(&self, why: &str) {
        let before = self.link.send_replace(Err(why.into()));
        if before.is_ok() {
            tracing::warn!(target: "nexo::two_phase", why, "the log of accepted messages is away");
        }
    }

    pub(super) fn health(&self) -> Result<(), String> {
        self.link.borrow().as_ref().map(drop).map_err(ToString::to_string)
    }

    /// Waits until Redis can be reached.
    pub(super) async fn wait_connected(&self) {
        let mut link = self.link.subscribe();
        // The sender is in `self`: this cannot fail.
        drop(link.wait_for(Result::is_ok).await);
    }

    /// Waits until Redis cannot be reached any more, and returns the reason.
    pub(super) async fn wait_disconnected(&self) -> String {
        let mut link = self.link.subscribe();
        match link.wait_for(Result::is_err).await.as_deref() {
            Ok(Err(why)) => why.to_string(),
            _ => String::new(),
        }
    }

    /// Runs a pipeline. If no answer comes in time, Redis counts as away.
    pub(super) async fn run(&self, pipeline: Pipeline) -> Result<Vec<Value>, LogUnavailable> {
        let link = self.link.borrow().clone();
        let mut link = link.map_err(|why| LogUnavailable(why.to_string()))?;
        answer_within(self.limit, link.run(pipeline)).await.map_err(|why| {
            self.set_disconnected(&why);
            LogUnavailable(why)
        })
    }

    /// Runs one command that is routed by `key`. A command that Redis refuses is an error too.
    pub(super) async fn query(&self, key: &str, cmd: Cmd) -> Result<Value, LogUnavailable> {
        let mut pipeline = Pipeline::default();
        pipeline.push(key, cmd);
        let answer = self.run(pipeline).await?.pop().unwrap_or(Value::Nil);
        answer.extract_error().map_err(|error| LogUnavailable(error.to_string()))
    }
}
