//! Structured logs on standard error. They never hold tokens, passwords or message text.

use std::io::IsTerminal;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::config::LogSettings;

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// What is wrong with a `log.level`.
pub(crate) fn level_problem(level: &str) -> Option<String> {
    // EnvFilter accepts any word as a module name; with a misspelt level it would log nothing at all.
    let mut parts = level.split(',').map(str::trim);
    let odd = parts.find(|part| {
        let is_level = LEVELS.iter().any(|level| level.eq_ignore_ascii_case(part));
        !is_level
            && !part
                .split_once('=')
                .is_some_and(|(part, level)| !part.is_empty() && !level.is_empty())
    });
    let why = match odd {
        Some(odd) => format!("`{odd}` is none"),
        None => filter(level).err()?.to_string(),
    };
    Some(format!(
        "log.level is one of {}, and may go on with levels of parts, such as \
         info,nexo::ack=debug: {why}",
        LEVELS.join(", ")
    ))
}

fn filter(level: &str) -> Result<EnvFilter, tracing_subscriber::filter::ParseError> {
    // The storage engine's messages are for its developers, and it repeats one for every read of a damaged
    // block, which the store reports once; `log.level` can turn them up. The socket library would print message
    // texts, so it comes last and cannot be turned up.
    let level: Vec<&str> = level.split(',').map(str::trim).collect();
    let level = level.join(",");
    format!("lsm_tree=off,{level},tungstenite=warn,tokio_tungstenite=warn").parse()
}

/// Starts logging for the whole process.
pub(crate) fn start(log: &LogSettings) -> anyhow::Result<()> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter(&log.level).context("log.level is not a filter")?)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        // If the reader of the log is gone, writing fails; that must not end a task.
        .log_internal_errors(false);
    let started = match log.format.as_str() {
        "json" => builder.json().flatten_event(true).try_init(),
        _ => builder.try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logging cannot start: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_one_of_six_and_parts_have_theirs() {
        for good in
            ["info", "WARN", "off", "info,nexo::ack=debug", "warn, nexo_gateway::http=trace"]
        {
            assert_eq!(level_problem(good), None, "{good}");
        }
        for bad in [
            "",
            "loud",
            "verbose",
            "infos",
            "nexo::ack",
            "nexo=loud",
            "info,,",
            "info,=debug",
            "a=",
        ] {
            assert!(level_problem(bad).is_some_and(|told| told.starts_with("log.level")), "{bad}");
        }
    }
}
