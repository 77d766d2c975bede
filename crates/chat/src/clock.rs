//! Time and randomness are given, so that a test or a simulation owns them.

use crate::ids::Millis;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Now, by this server's clock. May jump either way; nothing durable depends on its order.
    fn now(&self) -> Millis;

    /// Milliseconds that only ever grow, for measuring how long something lasts.
    fn ticks(&self) -> Millis;
}

/// Throws unpredictable bytes: for tokens and ids nobody may guess.
pub trait Dice: Send + Sync {
    /// Fills the whole slice.
    fn fill(&self, bytes: &mut [u8]);
}
