//! What has arrived of a sequence, and what is missing.
use std::collections::BTreeMap;

/// What has arrived of the dense sequence 1, 2, 3 …: everything up to `last`, and a buffer of items
/// beyond a gap. Items beyond a gap are released when the gap is filled.
pub(crate) struct Contiguous<Item> {
    last: u64,
    expected: u64,
    buffered: BTreeMap<u64, Item>,
}

impl<Item> Contiguous<Item> {
    pub(crate) fn new(last: u64) -> Self {
        Self { last, expected: last, buffered: BTreeMap::new() }
    }

    /// Everything up to this seq has arrived.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Adds an item and returns what is now contiguous, in order. Duplicates are ignored.
    pub(crate) fn add(&mut self, seq: u64, item: Item) -> Vec<Item> {
        if seq <= self.last || self.buffered.contains_key(&seq) {
            return Vec::new();
        }
        self.buffered.insert(seq, item);
        self.expect(seq);
        self.drain()
    }

    /// Records that items up to this seq exist.
    pub(crate) fn expect(&mut self, seq: u64) {
        self.expected = self.expected.max(seq);
    }

    /// Continues after this seq: earlier items are not available or not wanted.
    pub(crate) fn skip_to(&mut self, seq: u64) -> Vec<Item> {
        if seq <= self.last {
            return Vec::new();
        }
        self.buffered = self.buffered.split_off(&(seq + 1));
        self.last = seq;
        self.expect(seq);
        self.drain()
    }

    /// Corrects the expected end: nothing exists beyond this seq except what has arrived.
    pub(crate) fn lower_expected(&mut self, seq: u64) {
        let early = self.buffered.last_key_value().map_or(0, |(seq, _)| *seq);
        self.expected = seq.max(self.last).max(early);
    }

    /// The range to request: from the first missing seq to the last expected one.
    pub(crate) fn gap(&self) -> Option<(u64, u64)> {
        (self.expected > self.last).then_some((self.last + 1, self.expected))
    }

    /// The items beyond a gap, in order.
    pub(crate) fn buffered(&self) -> impl Iterator<Item = &Item> {
        self.buffered.values()
    }

    pub(crate) fn buffered_mut(&mut self) -> impl Iterator<Item = &mut Item> {
        self.buffered.values_mut()
    }

    /// Drops the items beyond a gap that `keep` rejects.
    pub(crate) fn retain_buffered(&mut self, keep: impl Fn(&Item) -> bool) {
        self.buffered.retain(|_, item| keep(item));
    }

    fn drain(&mut self) -> Vec<Item> {
        let mut ready = Vec::new();
        while let Some(item) = self.buffered.remove(&(self.last + 1)) {
            self.last += 1;
            ready.push(item);
        }
        ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_beyond_a_hole_is_given_out_before_it_is_filled() {
        let mut prefix = Contiguous::new(0);
        assert_eq!(prefix.add(1, "a"), ["a"]);
        assert!(prefix.add(3, "c").is_empty());
        assert!(prefix.add(4, "d").is_empty());
        assert_eq!(prefix.last(), 1);
        assert_eq!(prefix.gap(), Some((2, 4)));
        assert_eq!(prefix.add(2, "b"), ["b", "c", "d"]);
        assert_eq!(prefix.gap(), None);
    }

    #[test]
    fn what_comes_again_is_nothing_new() {
        let mut prefix = Contiguous::new(0);
        prefix.add(1, "a");
        prefix.add(3, "c");
        assert!(prefix.add(1, "again").is_empty());
        assert!(prefix.add(3, "again").is_empty());
        assert_eq!(prefix.add(2, "b"), ["b", "c"]);
    }

    #[test]
    fn what_somebody_told_us_of_is_a_hole_until_it_comes() {
        let mut prefix = Contiguous::<()>::new(5);
        prefix.expect(7);
        assert_eq!(prefix.gap(), Some((6, 7)));
        prefix.lower_expected(5);
        assert_eq!(prefix.gap(), None);
    }

    #[test]
    fn a_place_that_is_not_ours_is_skipped_and_what_waited_goes_on() {
        let mut prefix = Contiguous::new(0);
        prefix.add(3, "c");
        prefix.add(5, "e");
        assert_eq!(prefix.skip_to(4), ["e"]);
        assert_eq!(prefix.last(), 5);
        assert!(prefix.skip_to(2).is_empty());
        assert_eq!(prefix.last(), 5);
    }

    #[test]
    fn any_order_of_arrival_gives_the_same() {
        for stride in 1..13 {
            for start in 0..13 {
                // Thirteen is prime, so every stride visits every place.
                let order = (0..13).map(|i| (start + i * stride) % 13 + 1);
                let mut prefix = Contiguous::new(0);
                let twice = order.clone().chain(order);
                let given: Vec<u64> = twice.flat_map(|seq| prefix.add(seq, seq)).collect();
                assert_eq!(given, (1..=13).collect::<Vec<_>>());
            }
        }
    }
}
