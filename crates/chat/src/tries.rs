//! How often somebody may try: wrong passwords and new accounts, by account and by address.

use std::net::IpAddr;

use crate::ids::{FoldedId, Millis, UserId};
use crate::reason::Reason;
use crate::rules::Rules;
use crate::throttle::Throttle;

/// How often wrong passwords and new accounts are heard from somewhere.
pub(crate) struct Throttles {
    // By the folded id: however a name is typed, there are no more tries for it.
    account_from_address: Throttle<(FoldedId, IpAddr)>,
    pub(crate) account: Throttle<FoldedId>,
    address: Throttle<IpAddr>,
    pub(crate) registrations: Throttle<IpAddr>,
    /// Lines in the log about tries that were too many.
    pub(crate) told: Throttle<IpAddr>,
}

/// A try at a password, counted before the password is looked at, so that many at once count too.
pub(crate) struct Try<'a> {
    throttles: &'a Throttles,
    account: FoldedId,
    from: IpAddr,
    at: Millis,
}

impl Try<'_> {
    /// It was the right password, or nobody looked: the try does not count.
    pub(crate) fn did_not_count(self) {
        let Self { throttles, account, from, at } = self;
        throttles.account_from_address.give_back((account.clone(), from), at);
        throttles.account.give_back(account, at);
        throttles.address.give_back(from, at);
    }
}

impl Throttles {
    pub(crate) fn begin(
        &self,
        account: &UserId,
        from: IpAddr,
        at: Millis,
    ) -> Result<Try<'_>, Reason> {
        let account = account.folded();
        // The address first: one that tries too often must not fill the other lists with names.
        let may_try = self.address.take(from, at)
            && self.account_from_address.take((account.clone(), from), at)
            && self.account.take(account.clone(), at);
        if !may_try {
            return Err(Reason::TooManyRequests);
        }
        Ok(Try { throttles: self, account, from, at })
    }

    pub(crate) fn new(rules: &Rules) -> Self {
        Self {
            account_from_address: Throttle::per_minute(5),
            account: Throttle::per_minute(50),
            address: Throttle::per_minute(100),
            registrations: Throttle::per_minute(rules.registrations_per_minute),
            told: Throttle::per_minute(6),
        }
    }
}
