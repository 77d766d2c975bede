//! Segments of the log that a backup still copies: they are neither removed nor reused.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The first segment that each pin keeps, and how many pins keep it.
#[derive(Clone, Default)]
pub(crate) struct LogPins(Arc<Mutex<BTreeMap<u64, usize>>>);

impl LogPins {
    /// Keeps all segments that exist now. Waits while segments are being removed.
    pub(crate) fn pin(&self) -> LogPin {
        self.add(0);
        LogPin { pins: self.clone(), first: 0 }
    }

    /// Calls `retire` with the first segment that must stay; no pin is set meanwhile.
    pub(crate) fn retire(
        &self,
        before: u64,
        retire: impl FnOnce(u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let pinned = self.lock();
        retire(pinned.keys().next().map_or(before, |first| before.min(*first)))
    }

    fn add(&self, first: u64) {
        *self.lock().entry(first).or_default() += 1;
    }

    fn remove(&self, first: u64) {
        let mut pinned = self.lock();
        if let Some(count) = pinned.get_mut(&first) {
            *count -= 1;
            if *count == 0 {
                pinned.remove(&first);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps segments until it is dropped. What it kept goes when the log is retired the next time.
pub struct LogPin {
    pins: LogPins,
    first: u64,
}

impl LogPin {
    /// From now on keeps only this segment and later ones.
    pub(crate) fn move_to(&mut self, first: u64) {
        self.pins.add(first);
        self.pins.remove(self.first);
        self.first = first;
    }
}

impl Drop for LogPin {
    fn drop(&mut self) {
        self.pins.remove(self.first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_kept(pins: &LogPins, before: u64) -> u64 {
        let mut first = 0;
        pins.retire(before, |kept| {
            first = kept;
            Ok(())
        })
        .unwrap();
        first
    }

    #[test]
    fn the_lowest_pin_decides_until_it_is_dropped() {
        let pins = LogPins::default();
        let mut early = pins.pin();
        assert_eq!(first_kept(&pins, 9), 0);
        early.move_to(4);
        let mut late = pins.pin();
        late.move_to(7);
        assert_eq!(first_kept(&pins, 9), 4);
        assert_eq!(first_kept(&pins, 3), 3);
        drop(early);
        assert_eq!(first_kept(&pins, 9), 7);
        drop(late);
        assert_eq!(first_kept(&pins, 9), 9);
    }
}
