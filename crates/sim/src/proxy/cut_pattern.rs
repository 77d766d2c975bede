//! Byte patterns in a client's stream that cut its connection.

use super::ProxyState;

const PATTERN_BYTES_MAX: usize = 256;

/// When a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CutTiming {
    /// Before the server has received all of the pattern.
    BeforeRequest,
    /// When the server responds to it.
    AfterResponse,
}

/// A pattern that cuts a connection, for a number of times.
#[derive(Debug)]
pub(super) struct CutPattern {
    when: CutTiming,
    pattern: Vec<u8>,
    left: usize,
}

/// A match of a pattern.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PatternMatch {
    pub(super) when: CutTiming,
    /// How many of the newest bytes came before the pattern.
    pub(super) before: usize,
}

/// The last bytes of a client's stream: a pattern may arrive in several chunks.
#[derive(Default)]
pub(super) struct StreamTail(Vec<u8>);

impl CutPattern {
    pub(super) fn new(when: CutTiming, pattern: &[u8], times: usize) -> Self {
        assert!(
            (1..=PATTERN_BYTES_MAX).contains(&pattern.len()),
            "a pattern of 1 to {PATTERN_BYTES_MAX} bytes"
        );
        Self { when, pattern: pattern.to_owned(), left: times }
    }
}

impl StreamTail {
    /// Appends bytes. Returns the first pattern that they complete, and uses up one of its times.
    pub(super) fn push(&mut self, bytes: &[u8], state: &ProxyState) -> Option<PatternMatch> {
        let known = self.0.len();
        self.0.extend_from_slice(bytes);
        let matched = self.take_match(known, &mut state.cut_patterns.lock().expect("no panic"));
        self.0.drain(..self.0.len().saturating_sub(PATTERN_BYTES_MAX - 1));
        matched
    }

    fn take_match(&self, known: usize, patterns: &mut Vec<CutPattern>) -> Option<PatternMatch> {
        let candidates = patterns.iter_mut().filter_map(|armed| {
            let length = armed.pattern.len();
            // Skip matches that earlier bytes had completed already.
            let from = (known + 1).saturating_sub(length);
            let at = self.0[from..].windows(length).position(|window| window == armed.pattern)?;
            Some((from + at + length, from + at, armed))
        });
        let (_, start, armed) = candidates.min_by_key(|(end, ..)| *end)?;
        armed.left -= 1;
        let matched = PatternMatch { when: armed.when, before: start.saturating_sub(known) };
        patterns.retain(|armed| armed.left > 0);
        Some(matched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, times: usize, chunks: &[&str], expect: &[Option<usize>]) {
        let mut patterns =
            vec![CutPattern::new(CutTiming::BeforeRequest, pattern.as_bytes(), times)];
        let mut tail = StreamTail::default();
        let found = chunks.iter().map(|bytes| {
            let known = tail.0.len();
            tail.0.extend_from_slice(bytes.as_bytes());
            tail.take_match(known, &mut patterns).map(|matched| matched.before)
        });
        assert_eq!(found.collect::<Vec<_>>(), expect, "{pattern} in {chunks:?}");
    }

    #[test]
    fn a_pattern_is_met_wherever_it_is() {
        check("COMMIT", 1, &["COMMIT"], &[Some(0)]);
        check("COMMIT", 1, &["INSERT;COMMIT;BEGIN"], &[Some(7)]);
        check("COMMIT", 1, &["COMM", "ENT"], &[None, None]);
    }

    #[test]
    fn a_pattern_may_come_in_pieces() {
        check("COMMIT", 1, &["BEGIN;COM", "MIT;"], &[None, Some(0)]);
        check(
            "COMMIT",
            1,
            &["C", "O", "M", "M", "I", "T"],
            &[None, None, None, None, None, Some(0)],
        );
    }

    #[test]
    fn a_pattern_is_met_as_often_as_wanted() {
        check("OK", 2, &["OK", "OK", "OK"], &[Some(0), Some(0), None]);
    }

    #[test]
    fn what_was_met_is_not_met_again() {
        check("OK", 2, &["OK", "-"], &[Some(0), None]);
    }
}
