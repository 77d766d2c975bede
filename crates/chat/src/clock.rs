//! Time and randomness are injected, so that tests control them.

use crate::ids::Millis;

pub trait Clock: Send + Sync {
    /// Wall-clock time. It may jump either way; nothing durable depends on its order.
    fn now(&self) -> Millis;

    /// Monotonic time, for measuring durations.
    fn ticks(&self) -> Millis;
}

/// A cryptographic random generator, for tokens and ids that must not be guessable.
pub trait Rng: Send + Sync {
    fn fill(&self, bytes: &mut [u8]);
}
