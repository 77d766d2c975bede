//! Sign-ins: the record by its id, a list per user, and the refresh hashes it has and had.

use nexo_chat::ids::{LoginId, Millis, UserId};
use nexo_chat::model::Login;
use nexo_chat::store::{Rotated, SignedIn};

use super::accounts;
use super::engine::Engine;
use super::keys::{self, Space};
use super::pending::Pending;
use super::poison::Fault;
use super::record::{self, LoginRecord};
use crate::sign_ins::{self, LIVE_MAX, USED_MAX};

/// Reads a sign-in.
pub(crate) fn get(engine: &Engine, id: LoginId) -> Result<Option<Login>, Fault> {
    engine.get(Space::Logins, &id.0)?.map(|bytes| decode(id, &bytes)).transpose()
}

/// Keeps a new sign-in, forgets what is over, and ends the oldest beyond the bound.
pub(crate) fn create(
    pending: &mut Pending<'_>,
    mut login: Login,
    session_version: u64,
    now: Millis,
) -> Result<Option<SignedIn>, Fault> {
    let user = accounts::current(pending, &login.user)?;
    if user.is_none_or(|user| user.session_version != session_version) {
        return Ok(None);
    }
    let others = of_user(pending, &login.user)?;
    login.created_at = sign_ins::begin(login.created_at, others.iter());
    let mut live = Vec::new();
    for old in others {
        if sign_ins::is_live(&old, now) {
            live.push(old);
        } else {
            forget(pending, &old)?;
        }
    }
    let ended = sign_ins::too_many(live.iter(), LIVE_MAX - 1);
    for mut old in live.into_iter().filter(|old| ended.contains(&old.id)) {
        old.ended = true;
        put(pending, &old)?;
    }
    put(pending, &login)?;
    pending.set(Space::UserLogins, keys::user_login(&login.user, login.id), &())?;
    pending.set(Space::Refresh, login.refresh_hash.to_vec(), &login.id.0)?;
    Ok(Some(SignedIn { login, ended }))
}

/// Replaces a refresh token by the next one.
pub(crate) fn rotate(
    pending: &mut Pending<'_>,
    old_hash: [u8; 32],
    new_hash: [u8; 32],
    expires_at: Millis,
    now: Millis,
    grace_ms: u64,
) -> Result<Rotated, Fault> {
    let Some(bytes) = pending.get(Space::Refresh, &old_hash)? else { return Ok(Rotated::Unknown) };
    let id = LoginId(record::decode(Space::Refresh, &old_hash, &bytes)?);
    let mut login = current(pending, id)?;
    let generation = login.generation;
    let rotated = sign_ins::rotate(&mut login, old_hash, new_hash, expires_at, now, grace_ms);
    match rotated {
        Rotated::Unknown | Rotated::Again(_) => return Ok(rotated),
        Rotated::Reused(_) => {}
        Rotated::Done(_) => {
            pending.set(Space::Refresh, new_hash.to_vec(), &id.0)?;
            pending.set(Space::Used, keys::used(id, generation), &old_hash)?;
            if let Some(oldest) = generation.checked_sub(USED_MAX) {
                forget_used(pending, id, oldest)?;
            }
        }
    }
    put(pending, &login)?;
    Ok(rotated)
}

/// Ends those of a user's live sign-ins that `which` picks.
pub(crate) fn end(
    pending: &mut Pending<'_>,
    user: &UserId,
    which: &dyn Fn(&Login) -> bool,
) -> Result<Vec<LoginId>, Fault> {
    let mut ended = Vec::new();
    for mut login in of_user(pending, user)? {
        if !login.ended && which(&login) {
            login.ended = true;
            put(pending, &login)?;
            ended.push(login.id);
        }
    }
    Ok(ended)
}

/// All remembered sign-ins of a user, by id.
fn of_user(pending: &Pending<'_>, user: &UserId) -> Result<Vec<Login>, Fault> {
    let keys = pending.keys(Space::UserLogins, keys::logins_of(user))?;
    let ids = keys.iter().map(|key| {
        keys::login_of(key).ok_or_else(|| record::impossible(Space::UserLogins, "no login id"))
    });
    ids.map(|id| current(pending, id?)).collect()
}

/// A sign-in that must be there, as it will be after the batch.
fn current(pending: &Pending<'_>, id: LoginId) -> Result<Login, Fault> {
    match pending.get(Space::Logins, &id.0)? {
        Some(bytes) => decode(id, &bytes),
        None => Err(record::impossible(Space::Logins, "a sign-in is missing")),
    }
}

fn decode(id: LoginId, bytes: &[u8]) -> Result<Login, Fault> {
    record::decode::<LoginRecord<'_>>(Space::Logins, &id.0, bytes)?.login(id)
}

fn put(pending: &mut Pending<'_>, login: &Login) -> Result<(), Fault> {
    pending.set(Space::Logins, login.id.0.to_vec(), &LoginRecord::from(login))
}

fn forget(pending: &mut Pending<'_>, login: &Login) -> Result<(), Fault> {
    pending.delete(Space::Logins, login.id.0.to_vec());
    pending.delete(Space::UserLogins, keys::user_login(&login.user, login.id));
    pending.delete(Space::Refresh, login.refresh_hash.to_vec());
    for generation in login.generation.saturating_sub(USED_MAX)..login.generation {
        forget_used(pending, login.id, generation)?;
    }
    Ok(())
}

/// Forgets a refresh hash that was replaced.
fn forget_used(pending: &mut Pending<'_>, id: LoginId, generation: u64) -> Result<(), Fault> {
    let key = keys::used(id, generation);
    if let Some(bytes) = pending.get(Space::Used, &key)? {
        let hash: [u8; 32] = record::decode(Space::Used, &key, &bytes)?;
        pending.delete(Space::Refresh, hash.to_vec());
        pending.delete(Space::Used, key);
    }
    Ok(())
}
