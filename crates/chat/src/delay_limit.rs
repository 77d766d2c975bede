//! Rate limits that slow down instead of refusing: beyond its allowance an attempt waits, longer each time up to a
//! bound, and only a few may wait at once. Per node, in memory, bounded.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ids::Millis;
use crate::throttle::Bucket;

/// Upper bound of keys; those whose allowance is whole again are evicted first.
const KEYS_MAX: usize = 100_000;

/// How attempts with one key are slowed down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DelayRule {
    /// Attempts per minute that do not wait; all of them may come at once.
    pub(crate) free_per_minute: u32,
    /// How long the first one beyond that waits. It doubles with each further one.
    pub(crate) first_ms: u64,
    pub(crate) most_ms: u64,
    /// Attempts that may wait at the same time; further ones are refused.
    pub(crate) waiting_max: u32,
}

#[derive(Debug)]
pub(crate) struct DelayLimit<K> {
    rule: DelayRule,
    keys: Mutex<HashMap<K, KeyState>>,
}

#[derive(Debug)]
struct KeyState {
    free: Bucket,
    /// Attempts that had to wait since the allowance was last whole.
    delayed: u32,
    waiting: u32,
}

/// An attempt that was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// It is within the allowance.
    Free,
    /// It has to wait, and keeps others from waiting until it is finished.
    Delayed { wait_ms: u64 },
}

impl Counted {
    pub(crate) fn wait_ms(self) -> u64 {
        match self {
            Self::Free => 0,
            Self::Delayed { wait_ms } => wait_ms,
        }
    }
}

impl DelayRule {
    fn burst(&self) -> f64 {
        f64::from(self.free_per_minute)
    }

    /// Attempts per millisecond that do not wait.
    fn rate(&self) -> f64 {
        self.burst() / 60_000.0
    }

    fn wait_ms(&self, delayed: u32) -> u64 {
        let factor = 1_u64.checked_shl(delayed).unwrap_or(u64::MAX);
        self.first_ms.saturating_mul(factor).min(self.most_ms)
    }
}

impl<K: Hash + Eq> DelayLimit<K> {
    pub(crate) fn new(rule: DelayRule) -> Self {
        Self { rule, keys: Mutex::default() }
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<K, KeyState>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an attempt. `None`: as many wait as may; it is not counted then.
    pub(crate) fn start(&self, key: K, now: Millis) -> Option<Counted> {
        let (rate, burst) = (self.rule.rate(), self.rule.burst());
        let mut keys = self.keys();
        if keys.len() >= KEYS_MAX && !keys.contains_key(&key) {
            keys.retain(|_, state| state.waiting > 0 || !state.free.is_full(rate, burst, now));
            if keys.len() >= KEYS_MAX {
                keys.retain(|_, state| state.waiting > 0); // better than refusing every new key
            }
        }
        let state = keys.entry(key).or_insert_with(|| KeyState {
            free: Bucket::full(burst, now),
            delayed: 0,
            waiting: 0,
        });
        if state.free.is_full(rate, burst, now) {
            state.delayed = 0;
        }
        if state.free.take(rate, burst, now) {
            return Some(Counted::Free);
        }
        if state.waiting >= self.rule.waiting_max {
            return None;
        }
        let wait_ms = self.rule.wait_ms(state.delayed);
        state.delayed = state.delayed.saturating_add(1);
        state.waiting += 1;
        Some(Counted::Delayed { wait_ms })
    }

    /// An attempt is over: another may wait in its place.
    pub(crate) fn finish(&self, key: &K, counted: Counted) {
        if let (Counted::Delayed { .. }, Some(state)) = (counted, self.keys().get_mut(key)) {
            state.waiting = state.waiting.saturating_sub(1);
        }
    }

    /// Undoes the count of an attempt that is to be finished as well.
    pub(crate) fn refund(&self, key: &K, counted: Counted) {
        let mut keys = self.keys();
        let Some(state) = keys.get_mut(key) else { return };
        match counted {
            Counted::Free => state.free.refund(self.rule.burst()),
            Counted::Delayed { .. } => state.delayed = state.delayed.saturating_sub(1),
        }
    }

    /// Makes the allowance of a key whole again.
    pub(crate) fn forgive(&self, key: &K, now: Millis) {
        if let Some(state) = self.keys().get_mut(key) {
            state.free = Bucket::full(self.rule.burst(), now);
            state.delayed = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: DelayRule =
        DelayRule { free_per_minute: 2, first_ms: 1000, most_ms: 8000, waiting_max: 2 };

    /// Starts and finishes an attempt; returns how long it waited.
    fn attempt(limit: &DelayLimit<&'static str>, at: u64) -> u64 {
        let counted = limit.start("k", Millis(at)).unwrap();
        limit.finish(&"k", counted);
        counted.wait_ms()
    }

    #[test]
    fn the_wait_doubles_up_to_a_bound_and_a_quiet_minute_forgives() {
        let limit = DelayLimit::new(RULE);
        let waits: Vec<u64> = (0..8).map(|_| attempt(&limit, 0)).collect();
        assert_eq!(waits, [0, 0, 1000, 2000, 4000, 8000, 8000, 8000]);
        assert_eq!(limit.start("other", Millis(0)), Some(Counted::Free));
        // Half a minute gives back one attempt, and no more patience.
        assert_eq!([attempt(&limit, 30_000), attempt(&limit, 30_000)], [0, 8000]);
        let waits: Vec<u64> = (0..3).map(|_| attempt(&limit, 90_000)).collect();
        assert_eq!(waits, [0, 0, 1000]);
    }

    #[test]
    fn many_at_once_wait_no_less_than_one_after_the_other() {
        let limit = DelayLimit::new(RULE);
        let all: Vec<Option<Counted>> = (0..6).map(|_| limit.start("k", Millis(0))).collect();
        let delayed = |wait_ms| Some(Counted::Delayed { wait_ms });
        let free = Some(Counted::Free);
        assert_eq!(all, [free, free, delayed(1000), delayed(2000), None, None]);
        limit.finish(&"k", all[2].unwrap());
        assert_eq!(limit.start("k", Millis(0)), delayed(4000), "those refused were not counted");
    }

    #[test]
    fn what_is_refunded_did_not_count() {
        let limit = DelayLimit::new(RULE);
        for _ in 0..10 {
            let counted = limit.start("k", Millis(0)).unwrap();
            limit.refund(&"k", counted);
            limit.finish(&"k", counted);
            assert_eq!(counted, Counted::Free);
        }
        for _ in 0..5 {
            attempt(&limit, 0);
        }
        limit.forgive(&"k", Millis(0));
        assert_eq!(attempt(&limit, 0), 0);
    }

    #[test]
    fn the_keys_are_bounded() {
        let limit = DelayLimit::new(RULE);
        for number in 0..KEYS_MAX + 10 {
            assert_eq!(limit.start(number, Millis(0)), Some(Counted::Free));
        }
        assert!(limit.keys().len() <= KEYS_MAX);
    }
}
