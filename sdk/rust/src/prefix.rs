//! What has arrived of a sequence, and what is missing.
use std::collections::BTreeMap;

/// What has arrived of a dense sequence 1, 2, 3 …: everything up to `last`, and some beyond a hole.
/// Nothing beyond a hole is given out before the hole is filled.
pub(crate) struct Prefix<Item> {
    last: u64,
    known: u64,
    beyond: BTreeMap<u64, Item>,
}

impl<Item> Prefix<Item> {
    pub(crate) fn new(last: u64) -> Self {
        Self { last, known: last, beyond: BTreeMap::new() }
    }

    /// Everything up to here has arrived.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Takes an item and gives out what is now without a hole, in order. What was there is nothing
    /// new.
    pub(crate) fn add(&mut self, seq: u64, item: Item) -> Vec<Item> {
        if seq <= self.last || self.beyond.contains_key(&seq) {
            return Vec::new();
        }
        self.beyond.insert(seq, item);
        self.expect(seq);
        self.drain()
    }

    /// There is something up to here, as somebody told us.
    pub(crate) fn expect(&mut self, seq: u64) {
        self.known = self.known.max(seq);
    }

    /// Nothing up to here is to be had, or wanted: goes on after it.
    pub(crate) fn skip_to(&mut self, seq: u64) -> Vec<Item> {
        if seq <= self.last {
            return Vec::new();
        }
        self.beyond = self.beyond.split_off(&(seq + 1));
        self.last = seq;
        self.expect(seq);
        self.drain()
    }

    /// There is nothing beyond here after all, except what has arrived.
    pub(crate) fn ends_at(&mut self, seq: u64) {
        let early = self.beyond.last_key_value().map_or(0, |(seq, _)| *seq);
        self.known = seq.max(self.last).max(early);
    }

    /// The places to ask for: from the first that is missing to the last that is known.
    pub(crate) fn hole(&self) -> Option<(u64, u64)> {
        (self.known > self.last).then_some((self.last + 1, self.known))
    }

    /// What waits beyond a hole, in order.
    pub(crate) fn early(&self) -> impl Iterator<Item = &Item> {
        self.beyond.values()
    }

    pub(crate) fn early_mut(&mut self) -> impl Iterator<Item = &mut Item> {
        self.beyond.values_mut()
    }

    /// Forgets what waits, except what is to be kept.
    pub(crate) fn forget_early(&mut self, keep: impl Fn(&Item) -> bool) {
        self.beyond.retain(|_, item| keep(item));
    }

    fn drain(&mut self) -> Vec<Item> {
        let mut ready = Vec::new();
        while let Some(item) = self.beyond.remove(&(self.last + 1)) {
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
        let mut prefix = Prefix::new(0);
        assert_eq!(prefix.add(1, "a"), ["a"]);
        assert!(prefix.add(3, "c").is_empty());
        assert!(prefix.add(4, "d").is_empty());
        assert_eq!(prefix.last(), 1);
        assert_eq!(prefix.hole(), Some((2, 4)));
        assert_eq!(prefix.add(2, "b"), ["b", "c", "d"]);
        assert_eq!(prefix.hole(), None);
    }

    #[test]
    fn what_comes_again_is_nothing_new() {
        let mut prefix = Prefix::new(0);
        prefix.add(1, "a");
        prefix.add(3, "c");
        assert!(prefix.add(1, "again").is_empty());
        assert!(prefix.add(3, "again").is_empty());
        assert_eq!(prefix.add(2, "b"), ["b", "c"]);
    }

    #[test]
    fn what_somebody_told_us_of_is_a_hole_until_it_comes() {
        let mut prefix = Prefix::<()>::new(5);
        prefix.expect(7);
        assert_eq!(prefix.hole(), Some((6, 7)));
        prefix.ends_at(5);
        assert_eq!(prefix.hole(), None);
    }

    #[test]
    fn a_place_that_is_not_ours_is_skipped_and_what_waited_goes_on() {
        let mut prefix = Prefix::new(0);
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
                let mut prefix = Prefix::new(0);
                let twice = order.clone().chain(order);
                let given: Vec<u64> = twice.flat_map(|seq| prefix.add(seq, seq)).collect();
                assert_eq!(given, (1..=13).collect::<Vec<_>>());
            }
        }
    }
}
