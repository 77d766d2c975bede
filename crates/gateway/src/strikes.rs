//! Protocol violations: a few are forgiven.

use nexo_chat::ids::Millis;

const WITHIN_MS: u64 = 10_000;
const FORGIVEN: usize = 3;

/// The latest violations of one connection.
#[derive(Debug, Default)]
pub(crate) struct Strikes {
    at: [Millis; FORGIVEN],
    count: usize,
}

impl Strikes {
    /// Notes a violation; `true` if it is one too many within the time.
    pub(crate) fn is_out(&mut self, now: Millis) -> bool {
        let oldest = self.at[self.count % FORGIVEN];
        let is_out = self.count >= FORGIVEN && now.since(oldest) < WITHIN_MS;
        self.at[self.count % FORGIVEN] = now;
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
            [0, 1, 2, 9_999].into_iter().map(|at| strikes.is_out(Millis(at))).collect();
        assert_eq!(out, [false, false, false, true]);
    }

    #[test]
    fn three_every_ten_seconds_are_forgiven() {
        let mut strikes = Strikes::default();
        assert!((0..30).all(|i| !strikes.is_out(Millis(i * 3_400))));
    }
}
