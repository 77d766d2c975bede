//! The wall clock and randomness: the only module that asks the system for either.
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
pub(crate) fn random_fraction() -> f64 {
    let bits = u32::from_le_bytes(random_bytes());
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}

/// A client message id: 128 random bits.
pub(crate) fn new_client_msg_id() -> String {
    format!("{:032x}", u128::from_le_bytes(random_bytes()))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place; what depends on it takes it as a value"
)]
fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without randomness ids would collide, and messages be mixed up.
    getrandom::fill(&mut bytes).expect("the system has no random numbers");
    bytes
}
