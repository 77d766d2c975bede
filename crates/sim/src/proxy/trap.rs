//! Which bytes of a client cut its connection.

use super::Wires;

/// Long enough for any command worth waiting for.
const LONGEST: usize = 256;

/// When a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Before the server has heard all of the pattern.
    Said,
    /// When the server has answered it.
    Answered,
}

/// A pattern somebody waits for.
#[derive(Debug)]
pub(super) struct Trap {
    when: When,
    pattern: Vec<u8>,
    left: usize,
}

/// A trap that was met.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sprung {
    pub(super) when: When,
    /// How many of the bytes came before the pattern.
    pub(super) before: usize,
}

/// The end of what a client has said so far: a pattern may arrive in pieces.
#[derive(Default)]
pub(super) struct Said(Vec<u8>);

impl Trap {
    pub(super) fn new(when: When, pattern: &[u8], times: usize) -> Self {
        assert!((1..=LONGEST).contains(&pattern.len()), "a pattern of 1 to {LONGEST} bytes");
        Self { when, pattern: pattern.to_owned(), left: times }
    }
}

impl Said {
    /// Hears more; says whether that completes a pattern, and which comes first. Uses up one of the
    /// times it was armed for.
    pub(super) fn hear(&mut self, bytes: &[u8], wires: &Wires) -> Option<Sprung> {
        let known = self.0.len();
        self.0.extend_from_slice(bytes);
        let sprung = self.spring(known, &mut wires.traps.lock().expect("no panic"));
        self.0.drain(..self.0.len().saturating_sub(LONGEST - 1));
        sprung
    }

    fn spring(&self, known: usize, traps: &mut Vec<Trap>) -> Option<Sprung> {
        let met = traps.iter_mut().filter_map(|trap| {
            let length = trap.pattern.len();
            // A pattern that was complete before has had its turn.
            let from = (known + 1).saturating_sub(length);
            let at = self.0[from..].windows(length).position(|window| window == trap.pattern)?;
            Some((from + at + length, from + at, trap))
        });
        let (_, start, trap) = met.min_by_key(|(end, ..)| *end)?;
        trap.left -= 1;
        let sprung = Sprung { when: trap.when, before: start.saturating_sub(known) };
        traps.retain(|trap| trap.left > 0);
        Some(sprung)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, times: usize, heard: &[&str], expect: &[Option<usize>]) {
        let mut traps = vec![Trap::new(When::Said, pattern.as_bytes(), times)];
        let mut said = Said::default();
        let met = heard.iter().map(|bytes| {
            let known = said.0.len();
            said.0.extend_from_slice(bytes.as_bytes());
            said.spring(known, &mut traps).map(|sprung| sprung.before)
        });
        assert_eq!(met.collect::<Vec<_>>(), expect, "{pattern} in {heard:?}");
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
