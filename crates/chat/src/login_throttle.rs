//! Slows down guesses at passwords, by account and by address, and limits registrations.
//!
//! Nobody is locked out: a guess beyond the allowance waits before it is looked at, so the right password still gets
//! in from an address where others fail, and for an account that others guess at. Who has signed in to an account
//! from an address before does not wait for what others do there.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use crate::chat::Chat;
use crate::delay_limit::{Counted, DelayLimit, DelayRule};
use crate::ids::{FoldedId, Millis, UserId};
use crate::reason::Reason;
use crate::rules::Rules;
use crate::throttle::Throttle;

/// Guesses at one account from one address: one waits at a time.
const PAIR: DelayRule =
    DelayRule { free_per_minute: 5, first_ms: 1000, most_ms: 8000, waiting_max: 1 };
/// Guesses at one account, from wherever.
const ACCOUNT: DelayRule =
    DelayRule { free_per_minute: 20, first_ms: 1000, most_ms: 8000, waiting_max: 2 };
/// Guesses from one address, which a whole office may share: short waits, and many at once.
const ADDRESS: DelayRule =
    DelayRule { free_per_minute: 100, first_ms: 250, most_ms: 4000, waiting_max: 16 };

/// Pairs of account and address per generation: between this many and twice as many are remembered.
const KNOWN_PAIRS_MAX: usize = 50_000;

/// An account (folded, so that other spellings of an id give no additional attempts) from an address.
type Pair = (FoldedId, IpAddr);

pub(crate) struct LoginThrottle {
    pairs: DelayLimit<Pair>,
    accounts: DelayLimit<FoldedId>,
    addresses: DelayLimit<IpAddr>,
    known: Mutex<KnownPairs>,
    pub(crate) registrations: Throttle<IpAddr>,
    /// Log lines about attempts beyond the limits.
    pub(crate) log_lines: Throttle<IpAddr>,
}

/// Pairs that have signed in. When the younger generation is full, it replaces the older.
#[derive(Default)]
struct KnownPairs {
    younger: HashSet<Pair>,
    older: HashSet<Pair>,
}

/// An attempt at a password. Counted before the password is verified, so that concurrent attempts count too.
pub(crate) struct Attempt<'a> {
    throttle: &'a LoginThrottle,
    pair: Pair,
    in_pair: Counted,
    /// `None` if the pair is known: then neither account nor address is counted.
    in_others: Option<(Counted, Counted)>,
}

/// An attempt that names no account before it is verified: only its address is counted.
pub(crate) struct AddressAttempt<'a> {
    throttle: &'a LoginThrottle,
    from: IpAddr,
    counted: Counted,
}

/// As [`start_attempt`], for a token: nobody can guess one, but checking many costs time.
pub(crate) async fn start_address_attempt(
    chat: &Chat,
    from: IpAddr,
) -> Result<AddressAttempt<'_>, Reason> {
    let throttle = &chat.login_throttle;
    let counted = throttle.addresses.start(from, chat.clock.ticks());
    let counted = counted.ok_or(Reason::TooManyRequests)?;
    let attempt = AddressAttempt { throttle, from, counted };
    if counted.wait_ms() > 0 {
        chat.clock.sleep(counted.wait_ms()).await;
    }
    Ok(attempt)
}

/// Counts an attempt and waits as long as it has to. Refused if too many wait already.
pub(crate) async fn start_attempt<'a>(
    chat: &'a Chat,
    account: &UserId,
    from: IpAddr,
) -> Result<Attempt<'a>, Reason> {
    let attempt = chat.login_throttle.count(account, from, chat.clock.ticks());
    let attempt = attempt.ok_or(Reason::TooManyRequests)?;
    let wait_ms = attempt.wait_ms();
    if wait_ms > 0 {
        chat.clock.sleep(wait_ms).await;
    }
    Ok(attempt)
}

impl LoginThrottle {
    pub(crate) fn new(rules: &Rules) -> Self {
        Self {
            pairs: DelayLimit::new(PAIR),
            accounts: DelayLimit::new(ACCOUNT),
            addresses: DelayLimit::new(ADDRESS),
            known: Mutex::default(),
            registrations: Throttle::per_minute(rules.registrations_per_minute),
            log_lines: Throttle::per_minute(6),
        }
    }

    fn count(&self, account: &UserId, from: IpAddr, at: Millis) -> Option<Attempt<'_>> {
        let pair = (account.folded(), from);
        let is_known = self.known.lock().unwrap_or_else(PoisonError::into_inner).contains(&pair);
        if is_known {
            let in_pair = self.pairs.start(pair.clone(), at)?;
            return Some(Attempt { throttle: self, pair, in_pair, in_others: None });
        }
        // The address first: one that waits already must not fill the other tables with ids.
        let in_address = self.addresses.start(from, at)?;
        let undo_address = || {
            self.addresses.refund(&from, in_address);
            self.addresses.finish(&from, in_address);
        };
        let Some(in_pair) = self.pairs.start(pair.clone(), at) else {
            undo_address();
            return None;
        };
        let Some(in_account) = self.accounts.start(pair.0.clone(), at) else {
            undo_address();
            self.pairs.refund(&pair, in_pair);
            self.pairs.finish(&pair, in_pair);
            return None;
        };
        let in_others = Some((in_account, in_address));
        Some(Attempt { throttle: self, pair, in_pair, in_others })
    }
}

impl Attempt<'_> {
    fn wait_ms(&self) -> u64 {
        let others =
            self.in_others.map_or(0, |(account, address)| account.wait_ms().max(address.wait_ms()));
        self.in_pair.wait_ms().max(others)
    }

    /// Undoes the count: the password could not be verified.
    pub(crate) fn refund(self) {
        self.throttle.pairs.refund(&self.pair, self.in_pair);
        self.refund_others();
    }

    /// The password was right: earlier mistakes are forgiven, and the pair is known from now on.
    pub(crate) fn succeed(self, at: Millis) {
        self.throttle.pairs.forgive(&self.pair, at);
        self.refund_others();
        let known = &self.throttle.known;
        known.lock().unwrap_or_else(PoisonError::into_inner).insert(self.pair.clone());
    }

    fn refund_others(&self) {
        if let Some((in_account, in_address)) = self.in_others {
            self.throttle.accounts.refund(&self.pair.0, in_account);
            self.throttle.addresses.refund(&self.pair.1, in_address);
        }
    }
}

/// However it ends, also if the client does not wait for the answer: the next one may wait.
impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.throttle.pairs.finish(&self.pair, self.in_pair);
        if let Some((in_account, in_address)) = self.in_others {
            self.throttle.accounts.finish(&self.pair.0, in_account);
            self.throttle.addresses.finish(&self.pair.1, in_address);
        }
    }
}

impl AddressAttempt<'_> {
    /// Undoes the count: the token was right, or could not be checked.
    pub(crate) fn refund(self) {
        self.throttle.addresses.refund(&self.from, self.counted);
    }
}

/// As for [`Attempt`].
impl Drop for AddressAttempt<'_> {
    fn drop(&mut self) {
        self.throttle.addresses.finish(&self.from, self.counted);
    }
}

impl KnownPairs {
    fn contains(&self, pair: &Pair) -> bool {
        self.younger.contains(pair) || self.older.contains(pair)
    }

    fn insert(&mut self, pair: Pair) {
        if self.younger.len() >= KNOWN_PAIRS_MAX {
            self.older = std::mem::take(&mut self.younger);
        }
        self.younger.insert(pair);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFICE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn throttle() -> LoginThrottle {
        LoginThrottle::new(&Rules::default())
    }

    fn user(id: &str) -> UserId {
        UserId::parse(id).unwrap()
    }

    fn address(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from(number).into()
    }

    /// A wrong guess; returns how long it waited.
    fn guess(throttle: &LoginThrottle, id: &str, from: IpAddr, at: u64) -> Option<u64> {
        throttle.count(&user(id), from, Millis(at)).map(|attempt| attempt.wait_ms())
    }

    #[test]
    fn an_address_where_many_fail_still_lets_everybody_in() {
        let throttle = throttle();
        let waits: Vec<Option<u64>> =
            (0..130).map(|n| guess(&throttle, &format!("wrong-{n}"), OFFICE, 0)).collect();
        assert!(waits[..100].iter().all(|wait| *wait == Some(0)));
        assert_eq!(waits[100..106], [250, 500, 1000, 2000, 4000, 4000].map(Some));
        assert_eq!(waits[129], Some(4000), "no more than that");
        // Never seen here, and the password is right.
        let alice = throttle.count(&user("alice"), OFFICE, Millis(0)).unwrap();
        assert_eq!(alice.wait_ms(), 4000);
        alice.succeed(Millis(0));
        let again = throttle.count(&user("alice"), OFFICE, Millis(0)).unwrap();
        assert_eq!(again.wait_ms(), 0, "known here now");
        drop(again);
        assert_eq!(guess(&throttle, "bob", address(7), 0), Some(0), "other addresses do not wait");
    }

    #[test]
    fn guesses_at_one_account_are_expensive_from_wherever_they_come() {
        let throttle = throttle();
        let home = throttle.count(&user("alice"), OFFICE, Millis(0)).unwrap();
        home.succeed(Millis(0));
        let waits: Vec<Option<u64>> =
            (0..30).map(|n| guess(&throttle, "alice", address(n), 0)).collect();
        assert!(waits[..20].iter().all(|wait| *wait == Some(0)));
        assert_eq!(waits[20..25], [1000, 2000, 4000, 8000, 8000].map(Some));
        // Two wait at a time, whoever they are; capitals and look-alikes are the same account.
        let waiting =
            ["alice", "ALICE", "a1ice"].map(|id| throttle.count(&user(id), address(99), Millis(0)));
        assert_eq!(waiting.iter().filter(|attempt| attempt.is_some()).count(), 2);
        assert_eq!(
            guess(&throttle, "alice", OFFICE, 0),
            Some(0),
            "its owner at home does not wait"
        );
    }

    #[test]
    fn at_one_account_from_one_address_one_guess_waits_at_a_time() {
        let throttle = throttle();
        let at_once: Vec<_> =
            (0..20).map(|_| throttle.count(&user("alice"), OFFICE, Millis(0))).collect();
        let waits: Vec<u64> = at_once.iter().flatten().map(Attempt::wait_ms).collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 1000], "the others are refused");
        drop(at_once);
        assert_eq!(guess(&throttle, "alice", OFFICE, 0), Some(2000));
        // Those that were refused took nothing from the address.
        for n in 0..93 {
            assert_eq!(guess(&throttle, &format!("u{n}"), OFFICE, 0), Some(0), "{n}");
        }
    }

    #[test]
    fn who_typed_it_wrong_and_then_right_starts_afresh() {
        let throttle = throttle();
        for _ in 0..6 {
            guess(&throttle, "alice", OFFICE, 0);
        }
        throttle.count(&user("alice"), OFFICE, Millis(0)).unwrap().succeed(Millis(0));
        assert_eq!(guess(&throttle, "alice", OFFICE, 0), Some(0));
    }
}
