//! Limits a warning that a client can cause at will to one line per second.

use nexo_chat::ids::Millis;

const LINE_EVERY_MS: u64 = 1000;

#[derive(Debug, Default)]
pub(crate) struct LogLimit {
    last: Option<Millis>,
    left_out: u64,
}

impl LogLimit {
    /// The number of lines left out since the last one, if a line may be written now.
    pub(crate) fn take(&mut self, now: Millis) -> Option<u64> {
        if self.last.is_some_and(|last| now.since(last) < LINE_EVERY_MS) {
            self.left_out += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_says_how_many_were_left_out() {
        let mut limit = LogLimit::default();
        let lines = [0, 1, 999, 1000, 1001, 5000].map(|at| limit.take(Millis(at)));
        assert_eq!(lines, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
