//! How logins change, the same for every engine: pure, so that the engines differ only in how they
//! store them.

use std::cmp::Reverse;

use nexo_chat::ids::{LoginId, Millis};
use nexo_chat::model::Login;
use nexo_chat::store::{RotateRequest, Rotation};

/// Live logins a user may have; a new one beyond that ends the oldest.
pub(crate) const LIVE_LOGINS_MAX: usize = 64;

pub(crate) fn is_live(login: &Login, now: Millis) -> bool {
    !login.ended && login.expires_at > now
}

/// Returns the oldest of these, as many as there are beyond `max`.
pub(crate) fn oldest_beyond<'a>(
    logins: impl Iterator<Item = &'a Login>,
    max: usize,
) -> Vec<LoginId> {
    let mut ages: Vec<_> = logins.map(|login| (login.created_at, login.id)).collect();
    ages.sort_unstable();
    ages.truncate(ages.len().saturating_sub(max));
    ages.into_iter().map(|(_, id)| id).collect()
}

/// Returns when a login begins: later than all the others, whatever the clock says.
pub(crate) fn created_after<'a>(wanted: Millis, others: impl Iterator<Item = &'a Login>) -> Millis {
    let newest = others.map(|login| login.created_at).max();
    newest.map_or(wanted, |newest| wanted.max(newest.plus(1)))
}

/// Returns those that have not ended, newest first.
pub(crate) fn newest_first(mut logins: Vec<Login>) -> Vec<Login> {
    logins.retain(|login| !login.ended);
    logins.sort_unstable_by_key(|login| Reverse((login.created_at, login.id)));
    logins
}

/// Used refresh tokens that are stored per login: three weeks' worth at one per half hour.
pub(crate) const USED_TOKENS_MAX: u64 = 1000;

/// By how much the clocks of nodes may differ: one that is behind may be asked right after another
/// rotated the token.
const CLOCK_SKEW_MS: u64 = 2000;

/// Rotates the login that has `old_hash` as its current hash, or had it before.
pub(crate) fn rotate(login: &mut Login, request: &RotateRequest) -> Rotation {
    let RotateRequest { old_hash, new_hash, expires_at, now, at, grace_ms } = *request;
    if !is_live(login, now) {
        return Rotation::Unknown;
    }
    if login.refresh_hash != old_hash {
        if login.rotated_at.since(at) > grace_ms.min(CLOCK_SKEW_MS) {
            // The clock went back. Nobody knows how long ago that was, so it is neither a retry nor a theft.
            return Rotation::Unknown;
        }
        if at.since(login.rotated_at) < grace_ms {
            // Two calls at the same time, or a retry after a lost answer.
            let is_again = login.refresh_hash == new_hash;
            return if is_again { Rotation::Again(login.clone()) } else { Rotation::Unknown };
        }
        login.ended = true;
        return Rotation::Reused(login.clone());
    }
    login.generation += 1;
    login.refresh_hash = new_hash;
    login.rotated_at = at;
    login.expires_at = expires_at;
    Rotation::Done(login.clone())
}
