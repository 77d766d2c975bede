//! The connection for commands, known before anybody asks: while Redis is away, nobody waits for it.

use std::sync::Arc;
use std::time::Duration;

use nexo_bus::{Link, Lot};
use redis::{Cmd, Value};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::log::Away;

/// A link, or why there is none.
pub(super) struct Line {
    link: watch::Sender<Result<Link, Arc<str>>>,
    limit: Duration,
}

impl Line {
    pub(super) fn new(limit: Duration) -> Self {
        Self { link: watch::Sender::new(Err("not connected yet".into())), limit }
    }

    /// Redis can be reached.
    pub(super) fn open(&self, link: Link) {
        drop(self.link.send_replace(Ok(link)));
        tracing::info!(target: "nexo::intake", "the log of accepted messages can be reached");
    }

    /// Redis cannot be reached.
    pub(super) fn close(&self, why: &str) {
        let before = self.link.send_replace(Err(why.into()));
        if before.is_ok() {
            tracing::warn!(target: "nexo::intake", why, "the log of accepted messages is away");
        }
    }

    pub(super) fn health(&self) -> Result<(), String> {
        self.link.borrow().as_ref().map(drop).map_err(ToString::to_string)
    }

    /// Waits until Redis can be reached.
    pub(super) async fn is_open(&self) {
        let mut link = self.link.subscribe();
        // The sender is here: it cannot be gone.
        drop(link.wait_for(Result::is_ok).await);
    }

    /// Waits until Redis cannot be reached any more.
    pub(super) async fn is_closed(&self) -> String {
        let mut link = self.link.subscribe();
        match link.wait_for(Result::is_err).await.as_deref() {
            Ok(Err(why)) => why.to_string(),
            _ => String::new(),
        }
    }

    /// Does commands together. No answer in time, and Redis counts as away.
    pub(super) async fn run(&self, lot: Lot) -> Result<Vec<Value>, Away> {
        let link = self.link.borrow().clone();
        let mut link = link.map_err(|why| Away(why.to_string()))?;
        let why = match timeout(self.limit, link.run(lot)).await {
            Ok(Ok(answers)) => return Ok(answers),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer in {} ms", self.limit.as_millis()),
        };
        self.close(&why);
        Err(Away(why))
    }

    /// Does one command about a key. What Redis refuses is an error too.
    pub(super) async fn ask(&self, key: &str, cmd: Cmd) -> Result<Value, Away> {
        let mut lot = Lot::default();
        lot.push(key, cmd);
        let answer = self.run(lot).await?.pop().unwrap_or(Value::Nil);
        answer.extract_error().map_err(|error| Away(error.to_string()))
    }
}

/// A script about the keys of a shard.
pub(super) fn script(code: &str, keys: &[&str]) -> Cmd {
    let mut cmd = redis::cmd("EVAL");
    cmd.arg(code).arg(keys.len()).arg(keys);
    cmd
}
