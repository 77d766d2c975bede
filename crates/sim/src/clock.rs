//! The wall clock, for what a real server compares with its own.

use nexo_chat::ids::Millis;

/// Milliseconds since 1970.
#[allow(clippy::disallowed_methods, reason = "the server under test has the real clock too")]
pub fn wall_clock() -> Millis {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Millis(since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
}
