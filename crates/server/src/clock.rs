//! The system's clock and random number generator.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nexo_chat::Boxed;
use nexo_chat::clock::{Clock, Rng};
use nexo_chat::ids::Millis;

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
        jumped(Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
    }

    fn ticks(&self) -> Millis {
        Millis(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn sleep(&self, ms: u64) -> Boxed<'static, ()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(ms)))
    }
}

/// For tests: the file `NEXOTEST_CLOCK` says by how many milliseconds the clock has jumped. A release build has no
/// such file.
#[cfg(debug_assertions)]
fn jumped(now: Millis) -> Millis {
    use std::path::PathBuf;
    use std::sync::LazyLock;
    static FILE: LazyLock<Option<PathBuf>> =
        LazyLock::new(|| std::env::var_os("NEXOTEST_CLOCK").map(PathBuf::from));
    let Some(file) = &*FILE else { return now };
    let jump = std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
    Millis(now.0.saturating_add_signed(jump.unwrap_or(0)))
}

#[cfg(not(debug_assertions))]
fn jumped(now: Millis) -> Millis {
    now
}

pub(crate) struct SystemRng;

impl Rng for SystemRng {
    #[expect(clippy::disallowed_methods, reason = "this is the one Rng that asks the system")]
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes)
            .expect("the system has randomness; nothing safe can be done without");
    }
}
