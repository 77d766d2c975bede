//! Rate limits of sign-ins and registrations, by account and by address.

use std::net::IpAddr;

use crate::ids::{FoldedId, Millis, UserId};
use crate::reason::Reason;
use crate::rules::Rules;
use crate::throttle::Throttle;

pub(crate) struct LoginThrottle {
    // Keyed by folded id, so that other spellings of an id give no additional attempts.
    account_from_address: Throttle<(FoldedId, IpAddr)>,
    pub(crate) account: Throttle<FoldedId>,
    address: Throttle<IpAddr>,
    pub(crate) registrations: Throttle<IpAddr>,
    /// Log lines about attempts beyond the limits.
    pub(crate) log_lines: Throttle<IpAddr>,
}

/// An attempt at a password. Counted before the password is verified, so that concurrent attempts count too.
pub(crate) struct Attempt<'a> {
    throttle: &'a LoginThrottle,
    account: FoldedId,
    from: IpAddr,
    at: Millis,
}

impl Attempt<'_> {
    /// Undoes the count: the password was correct, or could not be verified.
    pub(crate) fn refund(self) {
        let Self { throttle, account, from, at } = self;
        throttle.account_from_address.refund((account.clone(), from), at);
        throttle.account.refund(account, at);
        throttle.address.refund(from, at);
    }
}

impl LoginThrottle {
    pub(crate) fn start_attempt(
        &self,
        account: &UserId,
        from: IpAddr,
        at: Millis,
    ) -> Result<Attempt<'_>, Reason> {
        let account = account.folded();
        // The address first: one beyond its limit must not fill the other tables with ids.
        let is_allowed = self.address.take(from, at)
            && self.account_from_address.take((account.clone(), from), at)
            && self.account.take(account.clone(), at);
        if !is_allowed {
            return Err(Reason::TooManyRequests);
        }
        Ok(Attempt { throttle: self, account, from, at })
    }

    pub(crate) fn new(rules: &Rules) -> Self {
        Self {
            account_from_address: Throttle::per_minute(5),
            account: Throttle::per_minute(50),
            address: Throttle::per_minute(100),
            registrations: Throttle::per_minute(rules.registrations_per_minute),
            log_lines: Throttle::per_minute(6),
        }
    }
}
