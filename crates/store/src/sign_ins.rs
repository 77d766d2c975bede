//! What happens to sign-ins, as both engines see it: pure, so that only the keeping differs.

use nexo_chat::ids::{LoginId, Millis};
use nexo_chat::model::Login;
use nexo_chat::store::Rotated;

/// Live sign-ins a user may have; a new one beyond that ends the oldest.
pub(crate) const LIVE_MAX: usize = 64;

/// Whether a sign-in can still be used.
pub(crate) fn is_live(login: &Login, now: Millis) -> bool {
    !login.ended && login.expires_at > now
}

/// The oldest of these, as many as there are beyond `max`.
pub(crate) fn too_many<'a>(logins: impl Iterator<Item = &'a Login>, max: usize) -> Vec<LoginId> {
    let mut ages: Vec<_> = logins.map(|login| (login.created_at, login.id)).collect();
    ages.sort_unstable();
    ages.truncate(ages.len().saturating_sub(max));
    ages.into_iter().map(|(_, id)| id).collect()
}

/// When a sign-in begins: after all the others, whatever the clock says.
pub(crate) fn begin<'a>(wanted: Millis, others: impl Iterator<Item = &'a Login>) -> Millis {
    let newest = others.map(|login| login.created_at).max();
    newest.map_or(wanted, |newest| wanted.max(newest.plus(1)))
}

/// Used refresh tokens that are remembered per sign-in: three weeks' worth at one per half hour.
pub(crate) const USED_MAX: u64 = 1000;

/// Rotates the sign-in that knows `old_hash` as its current one, or as one it had before.
pub(crate) fn rotate(
    login: &mut Login,
    old_hash: [u8; 32],
    new_hash: [u8; 32],
    expires_at: Millis,
    now: Millis,
    grace_ms: u64,
) -> Rotated {
    if !is_live(login, now) {
        return Rotated::Unknown;
    }
    if login.refresh_hash != old_hash {
        if now.since(login.rotated_at) < grace_ms {
            // Two calls at once, or an answer that was lost.
            let is_again = login.refresh_hash == new_hash;
            return if is_again { Rotated::Again(login.clone()) } else { Rotated::Unknown };
        }
        login.ended = true;
        return Rotated::Reused(login.clone());
    }
    login.generation += 1;
    login.refresh_hash = new_hash;
    login.rotated_at = now;
    login.expires_at = expires_at;
    Rotated::Done(login.clone())
}
