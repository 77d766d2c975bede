//! Time and randomness are injected, so that tests control them.

use crate::Boxed;
use crate::ids::Millis;

pub trait Clock: Send + Sync {
    /// Wall-clock time. It may jump either way; nothing durable depends on its order.
    fn now(&self) -> Millis;

    /// Monotonic time, for measuring durations.
    fn ticks(&self) -> Millis;

    /// Returns when so many of these ticks have passed.
    fn sleep(&self, ms: u64) -> Boxed<'static, ()>;
}

/// A cryptographic random generator, for tokens and ids that must not be guessable.
pub trait Rng: Send + Sync {
    fn fill(&self, bytes: &mut [u8]);
}
