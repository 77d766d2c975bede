//! Users that are known to have an account, so that a send asks the database for none of them.
//!
//! Only a deletion makes such knowledge wrong. The node that deletes an account calls
//! [`KnownUsers::forget`] after the commit; a lookup that began before it may have read the account as
//! it was, so what it found is not remembered. The other nodes ask again after [`KNOWN_FOR`]: until
//! then they store messages to the deleted account, which nobody reads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nexo_chat::ids::UserId;

use super::core::RecentCache;

const KNOWN_USERS_MAX: usize = 400_000;
/// How long an account is believed to exist.
const KNOWN_FOR: Duration = Duration::from_mins(1);

pub(crate) struct KnownUsers {
    users: RecentCache<UserId, Instant>,
    /// How often [`KnownUsers::forget`] was called.
    forgotten: AtomicU64,
}

/// The state of [`KnownUsers`] when a lookup began.
#[derive(Clone, Copy)]
pub(crate) struct LookupStart(u64);

impl KnownUsers {
    pub(crate) fn new() -> Self {
        Self { users: RecentCache::new(KNOWN_USERS_MAX), forgotten: AtomicU64::new(0) }
    }

    pub(crate) fn contains(&self, id: &UserId) -> bool {
        self.users.get(id).is_some_and(|since| since.elapsed() < KNOWN_FOR)
    }

    /// To be called before the database is asked.
    pub(crate) fn begin_lookup(&self) -> LookupStart {
        LookupStart(self.forgotten.load(Ordering::SeqCst))
    }

    /// Remembers a user that the database has, unless any was forgotten since the lookup began.
    pub(crate) fn remember(&self, id: &UserId, start: LookupStart) {
        self.users.insert(id.clone(), Instant::now());
        // Checked afterwards: whoever forgets counts first and removes then, so one of both removes it.
        if self.forgotten.load(Ordering::SeqCst) != start.0 {
            self.users.remove(id);
        }
    }

    /// To be called after a change of the account was committed.
    pub(crate) fn forget(&self, id: &UserId) {
        self.forgotten.fetch_add(1, Ordering::SeqCst);
        self.users.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_from_before_a_deletion_is_not_remembered() {
        let (known, alice) = (KnownUsers::new(), UserId::parse("alice").unwrap());
        let start = known.begin_lookup();
        known.remember(&alice, start);
        assert!(known.contains(&alice));
        let before = known.begin_lookup();
        known.forget(&alice);
        assert!(!known.contains(&alice));
        known.remember(&alice, before);
        assert!(!known.contains(&alice), "it read the account as it was");
        known.remember(&alice, known.begin_lookup());
        assert!(known.contains(&alice));
    }
}
