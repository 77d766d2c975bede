//! The real clock and the real dice.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use nexo_chat::clock::{Clock, Dice};
use nexo_chat::ids::Millis;

/// The system's clock.
pub(crate) struct SystemClock {
    started: Instant,
}

impl SystemClock {
    pub(crate) fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one Clock that asks the system")]
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn ticks(&self) -> Millis {
        Millis(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

/// The system's randomness.
pub(crate) struct SystemDice;

impl Dice for SystemDice {
    #[expect(clippy::disallowed_methods, reason = "this is the one Dice that asks the system")]
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes)
            .expect("the system has randomness; nothing safe can be done without");
    }
}
