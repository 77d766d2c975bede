//! Structured logs on standard error. They never hold tokens, passwords or message text.

use std::io::IsTerminal;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::config::Log;

/// Starts logging for the whole process.
pub(crate) fn start(log: &Log) -> anyhow::Result<()> {
    // The storage engine's news is for its developers; whoever wants it names it after these. The
    // socket library would print what people write, so nobody can turn it up.
    let level = format!("lsm_tree=warn,{},tungstenite=warn,tokio_tungstenite=warn", log.level);
    let filter: EnvFilter = level.parse().context("log.level is not a filter")?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        // Whoever read the log may be gone: that must not take a task down with it.
        .log_internal_errors(false);
    let started = match log.format.as_str() {
        "json" => builder.json().flatten_event(true).try_init(),
        _ => builder.try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logging cannot start: {error}"))
}
