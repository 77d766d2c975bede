//! The time of day and chance: the only places that ask the system for either.
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place; waits use tokio's clock, which tests own"
)]
pub(crate) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// From 0 up to 1, never 1.
pub(crate) fn fraction() -> f64 {
    let bits = u32::from_le_bytes(bytes());
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}

/// A name that nobody else makes up: 128 bits of chance.
pub(crate) fn new_name() -> String {
    format!("{:032x}", u128::from_le_bytes(bytes()))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place; what depends on it takes it as a value"
)]
fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without chance there are no names, and going on would mix up messages.
    getrandom::fill(&mut bytes).expect("the system has no random numbers");
    bytes
}
