//! Counts protocol violations: three within ten seconds are tolerated.

use nexo_chat::ids::Millis;

const WITHIN_MS: u64 = 10_000;
const TOLERATED: usize = 3;

/// The latest violations of one connection.
#[derive(Debug, Default)]
pub(crate) struct Strikes {
    at: [Millis; TOLERATED],
    count: usize,
}

impl Strikes {
    /// Records a violation. Returns `true` if the connection has to be closed for it.
    pub(crate) fn record(&mut self, now: Millis) -> bool {
        let oldest = self.at[self.count % TOLERATED];
        let is_out = self.count >= TOLERATED && now.since(oldest) < WITHIN_MS;
        self.at[self.count % TOLERATED] = now;
        self.count += 1;
        is_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fourth_within_ten_seconds_is_out() {
        let mut strikes = Strikes::default();
        let out: Vec<bool> =
            [0, 1, 2, 9_999].into_iter().map(|at| strikes.record(Millis(at))).collect();
        assert_eq!(out, [false, false, false, true]);
    }

    #[test]
    fn three_every_ten_seconds_are_forgiven() {
        let mut strikes = Strikes::default();
        assert!((0..30).all(|i| !strikes.record(Millis(i * 3_400))));
    }
}
